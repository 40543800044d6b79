//! What a fuzzer tries, as an ordinary function.

use asyncagents_core::{
    fork::{OverBudget, Preset, Setting, fork},
    read::Format,
    tokens,
};

/// Reads arbitrary bytes as a session and forks it with arbitrary limits. Panics if a
/// promise of the pipeline is broken.
///
/// The first four bytes choose the limits, so that small sessions meet every limit; the
/// rest is the session.
pub fn read_and_fork(data: &[u8]) {
    let Some((&[preset, results, chars, budget], session)) = data.split_first_chunk() else {
        return;
    };
    let session = String::from_utf8_lossy(session);
    let Ok(parent) = Format::OpenCode.read(&session) else {
        return;
    };
    let (_, preset) = Preset::ALL[usize::from(preset) % Preset::ALL.len()];
    let mut limits = preset.limits();
    let budget = 1_000 + 20 * usize::from(budget);
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
        let set = limits.set(key, &Setting::One(value.to_string()));
        assert_eq!(set, Ok(()), "{key}={value} is allowed");
    }
    let refuses = limits.when_over() == OverBudget::Refuse;
    let Ok(made) = fork(&parent, &limits, tokens::o200k) else {
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
    let lower = context.to_lowercase();
    assert_eq!(
        lower.matches("</inherited_context").count(),
        1,
        "closed once"
    );
    assert!(context.ends_with("</inherited_context>"), "at its end");
    let messages = &stats.messages;
    let accounted = messages.kept + messages.removed + messages.compacted + messages.empty;
    assert_eq!(accounted, messages.r#in, "every message is accounted for");
    assert_eq!(
        fork(&parent, &limits, tokens::o200k).as_ref(),
        Ok(&made),
        "the same again"
    );
}
