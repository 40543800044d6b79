//! A file that is read again: a sentence where the model still has its text, and the text
//! everywhere else.

use asyncagents_core::{
    agent::{
        Answer, Block, Call, Conversation, Entry, Filed, Stop, ToolOutcome, Turn, Usage, transcript,
    },
    fork::{Limits, Parent, fork},
    moment::Moment,
    tokens,
};
use proptest::prelude::*;
use rstest::rstest;

/// Something that happens in a session.
#[derive(Debug, Clone)]
enum Event {
    /// Reads in one answer: the arguments, and what the file says by then.
    Read(Vec<(String, String)>),
    Compacted,
    /// What follows is a child's, which begins with these messages.
    Branched,
}

use Event::{Branched, Compacted, Read};

fn entries_of(events: &[Event]) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut number = 0;
    for event in events {
        match event {
            Read(reads) => {
                let calls: Vec<Call> = reads
                    .iter()
                    .map(|(input, _)| {
                        number += 1;
                        Call {
                            id: format!("call_{number}"),
                            name: "read".to_owned(),
                            input: input.clone(),
                        }
                    })
                    .collect();
                let blocks = calls.iter().cloned().map(Block::Call).collect();
                entries.push(answered(blocks));
                let ended = calls.into_iter().zip(reads);
                entries.extend(ended.map(|(call, (_, text))| Entry::ToolEnded {
                    call: call.id,
                    outcome: ToolOutcome::Done(text.clone()),
                }));
            }
            Compacted => entries.push(Entry::Compacted {
                seen: 0,
                answer: answer(vec![Block::Text("what was read".to_owned())]),
            }),
            Branched => {}
        }
    }
    entries
}

fn answer(blocks: Vec<Block>) -> Answer {
    Answer {
        model: "test/model".into(),
        blocks,
        stop: Stop::Tools,
        usage: Usage::default(),
        cost: None,
    }
}

fn answered(blocks: Vec<Block>) -> Entry {
    Entry::Answered {
        seen: u64::MAX,
        answer: answer(blocks),
    }
}

fn filed(entries: Vec<Entry>) -> Vec<Filed> {
    let filed = (1..).zip(entries).map(|(seq, entry)| Filed {
        seq,
        at: Moment::from_millis(0),
        entry,
    });
    filed.collect()
}

/// The session after these events.
fn conversation(events: &[Event]) -> Conversation {
    let mut conversation = Conversation::default();
    let mut done = 0;
    for end in 1..=events.len() {
        let entries = filed(entries_of(&events[..end]));
        entries[done..]
            .iter()
            .for_each(|filed| conversation.take(filed));
        done = entries.len();
        if matches!(events[end - 1], Branched) {
            conversation.branch();
        }
    }
    conversation
}

/// The results that the model is shown.
fn shown(events: &[Event]) -> Vec<String> {
    let turns = conversation(events).shown().turns;
    let results = turns.into_iter().filter_map(|turn| match turn {
        Turn::Result { outcome, .. } => Some(outcome.text().to_owned()),
        Turn::Said(_) | Turn::Answered(_) => None,
    });
    results.collect()
}

fn read(input: &str, text: &str) -> Event {
    Read(vec![(input.to_owned(), text.to_owned())])
}

const A: &str = r#"{"path":"a.rs"}"#;
const LONG: &str = "1\tthe text of a file that is longer than any sentence about it would be\n";
const OTHER: &str = "1\tanother text of that file, which is about as long as the first one was\n";
const SAME: &str = "[a.rs: this read gives the same as the one above]";

#[rstest]
#[case::again(&[read(A, LONG), read(A, LONG)], &[LONG, SAME])]
#[case::and_again(&[read(A, LONG), read(A, LONG), read(A, LONG)], &[LONG, SAME, SAME])]
#[case::written_otherwise(&[read(A, LONG), read(r#"{ "offset": null, "path": "a.rs" }"#, LONG)], &[LONG, SAME])]
#[case::together(&[Read(vec![(A.into(), LONG.into()), (A.into(), LONG.into())])], &[LONG, SAME])]
#[case::changed(&[read(A, LONG), read(A, OTHER), read(A, OTHER)], &[LONG, OTHER, SAME])]
#[case::changed_back(&[read(A, LONG), read(A, OTHER), read(A, LONG)], &[LONG, OTHER, LONG])]
#[case::another_file(&[read(A, LONG), read(r#"{"path":"b.rs"}"#, LONG)], &[LONG, LONG])]
#[case::another_range(&[read(A, LONG), read(r#"{"path":"a.rs","limit":9}"#, LONG)], &[LONG, LONG])]
#[case::the_same_range(
    &[read(r#"{"path":"a.rs","offset":7,"limit":9}"#, LONG), read(r#"{"path":"a.rs","offset":"7","limit":9}"#, LONG)],
    &[LONG, "[a.rs from line 7, 9 lines: this read gives the same as the one above]"]
)]
#[case::short(&[read(A, "1\tx\n"), read(A, "1\tx\n")], &["1\tx\n", "1\tx\n"])]
#[case::after_a_compaction(&[read(A, LONG), Compacted, read(A, LONG), read(A, LONG)], &[LONG, SAME])]
#[case::in_a_child_with_these_messages(&[read(A, LONG), Branched, read(A, LONG)], &[LONG, SAME])]
#[case::no_arguments(&[read("[", LONG), read("[", LONG)], &[LONG, LONG])]
fn a_file_that_is_the_same_is_one_sentence(#[case] events: &[Event], #[case] expected: &[&str]) {
    assert_eq!(shown(events), expected);
}

#[test]
fn only_a_result_that_says_something_counts() {
    let call = |id: &str| {
        Block::Call(Call {
            id: id.to_owned(),
            name: "read".to_owned(),
            input: A.to_owned(),
        })
    };
    let failed = |id: &str| Entry::ToolEnded {
        call: id.to_owned(),
        outcome: ToolOutcome::Failed(LONG.to_owned()),
    };
    let entries = vec![
        answered(vec![call("1")]),
        failed("1"),
        answered(vec![call("2")]),
        failed("2"),
    ];
    let mut conversation = Conversation::default();
    filed(entries)
        .iter()
        .for_each(|filed| conversation.take(filed));
    let turns = conversation.shown().turns;
    let whole = |turn: &&Turn| matches!(turn, Turn::Result { outcome: ToolOutcome::Failed(text), .. } if text == LONG);
    assert_eq!(turns.iter().filter(whole).count(), 2);
}

/// The sentence costs the window nothing like the file.
#[test]
fn the_weight_is_that_of_what_is_shown() {
    let long = LONG.repeat(1_000);
    let once = conversation(&[read(A, &long)]).weight();
    let twice = conversation(&[read(A, &long), read(A, &long)]).weight();
    assert!(once > 10_000 && twice < 100, "{once}, {twice}");
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let input = prop_oneof![
        Just(A.to_owned()),
        Just(r#"{"path":"b.rs"}"#.to_owned()),
        Just(r#"{"path":"a.rs","offset":2}"#.to_owned()),
    ];
    let text = prop_oneof![Just(LONG.to_owned()), Just(OTHER.to_owned())];
    let reads = prop::collection::vec((input, text), 1..3).prop_map(Read);
    let event = prop_oneof![12 => reads, 1 => Just(Compacted), 1 => Just(Branched)];
    prop::collection::vec(event, 0..40)
}

proptest! {
    /// Nobody is left with the sentence alone: before each there is the text, of the same call.
    #[test]
    fn the_text_is_always_there(events in events()) {
        let turns = conversation(&events).shown().turns;
        for (at, turn) in turns.iter().enumerate() {
            let Turn::Result { call, outcome } = turn else { continue };
            if !outcome.text().starts_with('[') {
                continue;
            }
            let is_text = |turn: &&Turn| matches!(
                turn,
                Turn::Result { call: before, outcome } if before.input == call.input && outcome.text().starts_with('1')
            );
            let newest = turns[..at].iter().rev().find(is_text);
            // What the session keeps is what the sentence stands for.
            let kept = entries_of(&events).into_iter().find_map(|entry| match entry {
                Entry::ToolEnded { call: ended, outcome } if ended == call.id => Some(outcome),
                _ => None,
            });
            let Some(Turn::Result { outcome, .. }) = newest else {
                return Err(TestCaseError::fail(format!("no text above {at} of {turns:#?}")));
            };
            prop_assert_eq!(Some(outcome), kept.as_ref());
        }
    }

    /// What is shown only grows at its end, until a compaction.
    #[test]
    fn what_was_shown_stays(events in events()) {
        let mut before: Vec<Turn> = Vec::new();
        for end in 0..=events.len() {
            let now = conversation(&events[..end]).shown().turns;
            let compacted = end > 0 && matches!(events[end - 1], Compacted);
            prop_assert!(compacted || now.starts_with(&before));
            before = now;
        }
    }

    /// A child that inherits the conversation as a text has the texts themselves.
    #[test]
    fn a_fork_has_the_text(events in events()) {
        let events: Vec<Event> = events.into_iter().filter(|event| !matches!(event, Branched)).collect();
        let entries = filed(entries_of(&events));
        let forked = fork(&Parent::new(transcript(&entries)), &Limits::default(), tokens::o200k);
        let context = forked.expect("it fits").context;
        prop_assert!(!context.contains("is the same as when you read it above"));
        if let Some(Read(reads)) = events.last() {
            let (_, newest) = &reads[reads.len() - 1];
            prop_assert!(context.contains(newest.trim_end()));
        }
    }
}
