//! Long files are read from their end. Whatever is in them and however much of them is read at
//! once, a child inherits what it would of the whole file.

use asyncagents_core::{
    fork::{Fork, Limits, Parent, Preset, Reach, fork},
    read::{LineFormat, Reached, Reading},
    tokens,
    transcript::Message,
};
use asyncagents_testkit::{
    claude_code::{self, Transcript},
    codex::Rollout,
};
use proptest::{collection::vec, prelude::*};
use serde_json::json;

use super::{filler, with};

/// Something that happens in a session.
#[derive(Debug, Clone)]
enum Event {
    User(usize),
    /// An answer with a text and so many calls at once, and which of them have results.
    Answer {
        chars: usize,
        calls: Vec<Option<usize>>,
    },
    Hook(usize),
    Noise,
    Broken,
    /// A compaction that keeps so many of the records before it.
    Compacted(usize),
    /// The user goes back so many records, or turns.
    Back(usize),
}

fn event() -> impl Strategy<Value = Event> {
    let answer = (1..200_usize, vec(proptest::option::of(1..400_usize), 0..3));
    prop_oneof![
        6 => (1..200_usize).prop_map(Event::User),
        10 => answer.prop_map(|(chars, calls)| Event::Answer { chars, calls }),
        2 => (1..50_usize).prop_map(Event::Hook),
        3 => Just(Event::Noise),
        1 => Just(Event::Broken),
        1 => (0..6_usize).prop_map(Event::Compacted),
        1 => (1..8_usize).prop_map(Event::Back),
    ]
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    vec(event(), 0..60)
}

/// As Claude Code would write it. Calls are named after their numbers.
fn transcript(events: &[Event]) -> Transcript {
    let mut session = Transcript::new();
    let mut calls = 0;
    for (n, event) in events.iter().enumerate() {
        let records = session.records();
        session = match event {
            Event::User(chars) => session.user(&filler(n, 8 + chars)),
            Event::Answer { chars, calls: made } => {
                let names: Vec<String> = (calls..)
                    .map(|n| format!("call_{n}."))
                    .take(made.len())
                    .collect();
                calls += made.len();
                let mut blocks = vec![claude_code::text(&filler(n, 8 + chars))];
                let input = |name: &String| json!({"name": name});
                blocks.extend(
                    names
                        .iter()
                        .map(|name| claude_code::call(name, "Read", input(name))),
                );
                let mut session = session.answer(blocks);
                for (at, (name, result)) in names.iter().zip(made).enumerate() {
                    if let Some(chars) = result {
                        session = session
                            .back_to(Some(records + 1 + at))
                            .result(name, &filler(n, 8 + chars));
                    }
                }
                session
            }
            Event::Hook(chars) => session.hook(&filler(n, 8 + chars)),
            Event::Noise => session.bookkeeping("last-prompt").system("turn_duration"),
            Event::Broken => session.line("{broken"),
            Event::Compacted(keep) => session.compacted(&filler(n, 50), *keep),
            Event::Back(by) => session.back_to(records.checked_sub(1 + by)),
        };
    }
    session
}

/// As Codex would.
fn rollout(events: &[Event]) -> Rollout {
    let mut thread = Rollout::new();
    let mut calls = 0;
    for (n, event) in events.iter().enumerate() {
        thread = match event {
            Event::User(chars) => thread.user(&filler(n, 8 + chars)),
            Event::Answer { chars, calls: made } => {
                let names: Vec<String> = (calls..)
                    .map(|n| format!("call_{n}."))
                    .take(made.len())
                    .collect();
                calls += made.len();
                let said = thread.reasoning("hm").says(&filler(n, 8 + chars));
                let called = names.iter().fold(said, |thread, name| {
                    thread.calls(name, "shell", &json!({"name": name}))
                });
                let results = names.iter().zip(made);
                results.fold(called.answered(), |thread, (name, result)| match result {
                    Some(chars) => thread.result(name, &filler(n, 8 + chars)),
                    None => thread,
                })
            }
            Event::Hook(chars) => thread.hook(&filler(n, 8 + chars)),
            Event::Noise => thread.turn_over(),
            Event::Broken => thread.text("{broken"),
            Event::Compacted(keep) => {
                let kept: Vec<String> = (0..*keep).map(|at| format!("kept {at}")).collect();
                let kept: Vec<&str> = kept.iter().map(String::as_str).collect();
                thread.compacted(&filler(n, 50), &kept)
            }
            Event::Back(turns) => thread.rolled_back(*turns),
        };
    }
    thread
}

fn file(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Reads a file as hosts do: so many bytes at its end, then more, until it is enough.
fn read_from_end(
    format: LineFormat,
    file: &str,
    limits: &Limits,
    first: usize,
    asked_in: Option<&str>,
) -> (Fork, bool) {
    let mut size = first;
    loop {
        let start = file.len().saturating_sub(size);
        let has_more = start > 0;
        let bytes = &file.as_bytes()[start..];
        let lines = match bytes.iter().position(|byte| *byte == b'\n') {
            _ if !has_more => bytes,
            Some(end) => &bytes[end + 1..],
            None => &[],
        };
        let reading = Reading {
            asked_in,
            has_more,
            of_sub_agent: false,
        };
        let end = format.read_end(lines, &reading);
        let newest_first: Vec<Message> = end.transcript.messages().iter().rev().cloned().collect();
        let is_enough = match end.reached {
            Reached::Beginning | Reached::Compaction => true,
            Reached::TooLittle => false,
            Reached::Middle => Reach::new(limits).is_enough(&newest_first),
        };
        if is_enough || !has_more {
            let unread = has_more && end.reached != Reached::Beginning;
            let parent = if unread {
                Parent::end_of(end.transcript)
            } else {
                Parent::new(end.transcript)
            };
            return (
                fork(&parent, limits, tokens::o200k).expect("a fork"),
                has_more,
            );
        }
        size *= 2;
    }
}

fn same_from_the_end(
    format: LineFormat,
    file: &str,
    first: usize,
    asked_in: Option<&str>,
) -> Result<bool, TestCaseError> {
    // A short budget, so that ends are often enough.
    let limits = with(
        Preset::Graduated,
        &[
            ("max_chars", 2_000),
            ("whole_results", 2),
            ("middle_results", 2),
        ],
    );
    let whole = Reading {
        asked_in,
        ..Reading::default()
    };
    let whole = format.read_end(file.as_bytes(), &whole).transcript;
    let whole = fork(&Parent::new(whole), &limits, tokens::o200k).expect("a fork");
    let (end, has_more) = read_from_end(format, file, &limits, first, asked_in);
    prop_assert_eq!(whole.context, end.context);
    Ok(has_more)
}

/// One of the calls of these events, if there is one.
fn some_call(events: &[Event], nth: usize) -> Option<String> {
    let calls: usize = events
        .iter()
        .map(|event| match event {
            Event::Answer { calls, .. } => calls.len(),
            _ => 0,
        })
        .sum();
    (calls > 0).then(|| format!("call_{}.", nth % calls))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn the_end_of_a_transcript_forks_like_the_whole(events in events(), first in 200..6_000_usize) {
        same_from_the_end(LineFormat::ClaudeCode, &transcript(&events).jsonl(), first, None)?;
    }

    #[test]
    fn the_end_of_a_transcript_in_which_a_call_asks_forks_like_the_whole(events in events(), first in 200..6_000_usize, nth in 0..100_usize) {
        let call = some_call(&events, nth);
        same_from_the_end(LineFormat::ClaudeCode, &transcript(&events).jsonl(), first, call.as_deref())?;
    }

    #[test]
    fn the_end_of_a_rollout_forks_like_the_whole(events in events(), first in 200..6_000_usize) {
        same_from_the_end(LineFormat::Codex, &rollout(&events).jsonl(), first, None)?;
    }

    #[test]
    fn the_end_of_a_rollout_in_which_a_call_asks_forks_like_the_whole(events in events(), first in 200..6_000_usize, nth in 0..100_usize) {
        let call = some_call(&events, nth);
        same_from_the_end(LineFormat::Codex, &rollout(&events).jsonl(), first, call.as_deref())?;
    }

    /// Records that are not part of the conversation may stand anywhere.
    #[test]
    fn bookkeeping_and_broken_lines_change_nothing_but_the_count(events in events(), places in vec((0..1_000_usize, 0..4_usize), 0..20)) {
        let noise = [
            r#"{"type":"last-prompt","sessionId":"s","payload":{}}"#,
            r#"{"type":"api-request","sessionId":"s","message":{"role":"user","content":"no"},"payload":{"type":"message"}}"#,
            r#"{"type":"world_state","sessionId":"s","payload":{"full":true}}"#,
            "{broken",
        ];
        for (format, lines) in [
            (LineFormat::ClaudeCode, transcript(&events).lines().to_vec()),
            (LineFormat::Codex, rollout(&events).lines().to_vec()),
        ] {
            let mut noisy = lines.clone();
            for (place, which) in &places {
                noisy.insert(place % (noisy.len() + 1), noise[*which].to_owned());
            }
            let broken = places.iter().filter(|(_, which)| *which == 3).count();
            let (plain, noisy) = (file(&lines), file(&noisy));
            let reading = Reading::default();
            let plain = format.read_end(plain.as_bytes(), &reading).transcript;
            let noisy = format.read_end(noisy.as_bytes(), &reading).transcript;
            prop_assert_eq!(plain.messages(), noisy.messages());
            prop_assert_eq!(plain.skipped().messages + broken, noisy.skipped().messages);
        }
    }

    /// Lines of a file in any order, doubled or torn, are read without a panic, and every promise of a
    /// fork holds.
    #[test]
    fn files_that_were_torn_apart_are_read(events in vec(event(), 1..20), picks in vec((0..1_000_usize, 0..2_000_usize), 0..60), of_codex in any::<bool>()) {
        let lines = if of_codex { rollout(&events).lines().to_vec() } else { transcript(&events).lines().to_vec() };
        let mut torn = vec![0, 5, 40, 60];
        for (line, length) in picks {
            if let Some(line) = lines.get(line % (lines.len().max(1))) {
                let length = if length > 1_000 { line.len() } else { length.min(line.len()) };
                torn.extend(line.as_bytes().iter().take(length));
                torn.push(b'\n');
            }
        }
        asyncagents_testkit::fuzz::read_and_fork(&torn);
    }

    #[test]
    fn arbitrary_bytes_are_read(bytes in vec(any::<u8>(), 0..300)) {
        for format in [LineFormat::ClaudeCode, LineFormat::Codex] {
            let _ = format.read(&bytes);
            let reading = Reading { asked_in: Some("x"), has_more: true, of_sub_agent: true };
            format.read_end(&bytes, &reading);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    /// So long that there is enough before a compaction or the beginning is reached.
    #[test]
    fn so_does_the_end_of_a_long_one(events in events(), first in 1_000..200_000_usize) {
        let before = (0..700).map(|_| Event::User(100));
        let events: Vec<Event> = before.chain(events).collect();
        same_from_the_end(LineFormat::ClaudeCode, &transcript(&events).jsonl(), first, None)?;
        same_from_the_end(LineFormat::Codex, &rollout(&events).jsonl(), first, None)?;
    }
}

/// The properties above would say little if ends were never enough.
#[test]
fn ends_are_enough_of_long_files() {
    let turn = [
        Event::User(100),
        Event::Answer {
            chars: 100,
            calls: vec![Some(100)],
        },
    ];
    let long: Vec<Event> = turn.iter().cycle().take(3_000).cloned().collect();
    for (format, file) in [
        (LineFormat::ClaudeCode, transcript(&long).jsonl()),
        (LineFormat::Codex, rollout(&long).jsonl()),
    ] {
        let has_more = same_from_the_end(format, &file, 4_000, None);
        assert!(has_more.expect("the same"), "{format:?}");
    }
}
