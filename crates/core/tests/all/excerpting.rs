//! The messages of a parent that a child is given as they are.

use asyncagents_core::{
    fork::{CutResult, Excerpt, Limits, Parent, Preset, excerpt},
    tokens,
    transcript::{MessageId, Skipped, Transcript},
};
use asyncagents_testkit::opencode2::{Session, tool};
use serde_json::json;

use super::{filler, reading2::read, with};

/// The excerpt of a session, or of its end.
fn excerpt_of(parent: &Parent, limits: &Limits) -> Excerpt {
    let made = excerpt(parent, limits, tokens::o200k).expect("allowed");
    made.expect("possible")
}

fn names(kept: &[MessageId]) -> Vec<String> {
    kept.iter().map(|id| id.as_str().to_owned()).collect()
}

#[test]
fn an_excerpt_begins_with_the_compaction() {
    let session = Session::new()
        .user("forgotten")
        .compacted("all of it", "[User]: forgotten")
        .agent(vec![tool("read", json!({"n": 0}), &filler(0, 900))])
        .shell("make", &filler(1, 900))
        .agent(vec![json!({"type": "reasoning", "text": "nothing to see"})])
        .agent(vec![tool("read", json!({"n": 2}), &filler(2, 900))]);
    let limits = with(
        Preset::Graduated,
        &[
            ("whole_results", 1),
            ("middle_results", 0),
            ("old_result_chars", 10),
        ],
    );
    let json = session.json();
    let made = excerpt_of(&Parent::new(read(&json)), &limits);
    assert_eq!(names(&made.kept), ["msg_1", "msg_2", "msg_3", "msg_5"]);
    let cut = |cut: &CutResult| format!("{} {}", cut.message.as_str(), cut.call.as_str());
    let cut: Vec<String> = made.cut.iter().map(cut).collect();
    assert_eq!(cut, ["msg_2 call_read", "msg_3 sh_1"]);
    assert!(made.preamble.contains("The conversation above"));
}

#[test]
fn an_excerpt_needs_only_the_end_of_a_conversation() {
    let session = (0..50).fold(Session::new(), |session, n| session.user(&filler(n, 100)));
    let limits = with(Preset::Graduated, &[("max_chars", 1_000)]);
    let json = session.json();
    let all = Parent::new(read(&json));
    let end = Transcript::new(
        all.transcript().messages()[30..].to_vec(),
        Skipped::default(),
    );
    let end = excerpt_of(&Parent::end_of(end), &limits);
    let whole = excerpt_of(&all, &limits);
    assert_eq!(end.kept, whole.kept);
    assert_eq!(names(&end.kept).last().expect("some"), "msg_49");
    assert!(end.preamble.contains("Removed: everything before"));
    assert!(whole.preamble.contains("Removed: 42 messages"));
}

#[test]
fn what_is_too_long_by_itself_has_no_excerpt() {
    let json = Session::new().user(&filler(0, 3_000)).json();
    let limits = with(Preset::Graduated, &[("max_chars", 1_000)]);
    let made = excerpt(&Parent::new(read(&json)), &limits, tokens::o200k);
    assert_eq!(made, Ok(None));
}
