//! What a fuzzer tries, as an ordinary function.

use asyncagents_core::{
    fork::{Limits, OverBudget, Parent, Preset, fork},
    read::{Format, LineFormat, Reading},
    tokens,
};

/// Reads arbitrary bytes as a session of each format and forks it with arbitrary limits. Panics if a
/// promise of the pipeline is broken.
///
/// The first four bytes choose the limits, so that small sessions meet every limit; the
/// rest is the session.
pub fn read_and_fork(data: &[u8]) {
    let Some((&[preset, results, chars, budget], session)) = data.split_first_chunk() else {
        return;
    };
    let session = String::from_utf8_lossy(session);
    let budget = 1_000 + 20 * usize::from(budget);
    let limits = limits(preset, results, chars, budget);
    for (_, format) in Format::ALL {
        if let Ok(transcript) = format.read(&session) {
            fork_within(&Parent::new(transcript), &limits, budget);
        }
        if let Some(lines) = format.lines() {
            read_end(lines, session.as_bytes(), &limits, budget);
        }
    }
}

/// The second half of a file, as its end, and all of it up to a call that asks.
fn read_end(format: LineFormat, file: &[u8], limits: &Limits, budget: usize) {
    let ends = [(file.len() / 2, true, None), (0, false, Some("c"))];
    for (start, has_more, asked_in) in ends {
        let reading = Reading {
            asked_in,
            has_more,
            of_sub_agent: false,
        };
        let end = format.read_end(&file[start..], &reading);
        fork_within(&Parent::end_of(end.transcript), limits, budget);
    }
}

fn limits(preset: u8, results: u8, chars: u8, budget: usize) -> Limits {
    let (_, preset) = Preset::ALL[usize::from(preset) % Preset::ALL.len()];
    let mut limits = preset.limits();
    for (key, value) in [
        ("whole_results", usize::from(results % 4)),
        ("middle_results", usize::from(results / 4 % 4)),
        ("middle_result_chars", usize::from(chars)),
        ("old_result_chars", usize::from(chars / 4)),
        ("old_param_chars", usize::from(chars / 8)),
        ("head_percent", usize::from(chars) % 101),
        ("max_chars", budget),
        ("max_tokens", 1_000),
    ] {
        let set = limits.set(key, value);
        assert_eq!(set, Ok(()), "{key}={value} is allowed");
    }
    limits
}

fn fork_within(parent: &Parent, limits: &Limits, budget: usize) {
    let refuses = limits.when_over() == OverBudget::Refuse;
    let Ok(made) = fork(parent, limits, tokens::o200k) else {
        assert!(refuses, "only a preset that refuses may");
        return;
    };

    let context = &made.context;
    let stats = &made.stats;
    let length = context.chars().count();
    let counted = tokens::o200k(context);
    assert!(length <= budget && counted <= 1_000, "within the limits");
    assert_eq!(
        (length, counted),
        (stats.characters.after, stats.tokens.after)
    );
    assert_eq!(tags(context), 2, "opened once, closed once");
    assert!(context.ends_with("</inherited_context>"), "at its end");
    let messages = &stats.messages;
    let accounted = messages.kept + messages.removed + messages.compacted + messages.empty;
    assert_eq!(accounted, messages.r#in, "every message is accounted for");
    assert_eq!(
        fork(parent, limits, tokens::o200k).as_ref(),
        Ok(&made),
        "the same again"
    );
}

/// How many times a context opens or closes something of the wrapper's name.
fn tags(context: &str) -> usize {
    let after_bracket = context.split('<').skip(1);
    let names = after_bracket.map(|rest| {
        let rest = rest.trim_start();
        rest.strip_prefix('/').unwrap_or(rest).trim_start()
    });
    let is_tag = |name: &&str| {
        let name: String = name.chars().take("inherited_context".len()).collect();
        name.eq_ignore_ascii_case("inherited_context")
    };
    names.filter(is_tag).count()
}
