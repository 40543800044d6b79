//! Claude Code's transcripts, also when they are not what we expect.

use asyncagents_core::{
    fork::{Fork, Parent, Preset, fork},
    read::{Format, LineFormat, Reached, Reading},
    tokens,
    transcript::Transcript as Read,
};
use asyncagents_testkit::claude_code::{Transcript, call, text, thinking, uuid};
use rstest::rstest;
use serde_json::{Value, json};

use super::refusal;

fn forked(read: Read) -> Fork {
    let parent = Parent::new(read);
    fork(&parent, &Preset::Graduated.limits(), tokens::o200k).expect("a fork")
}

fn inherited_of(read: Read) -> String {
    let context = forked(read).context;
    let body = context.strip_prefix("<inherited_context>\n\n");
    let body = body.and_then(|body| body.strip_suffix("\n</inherited_context>"));
    body.unwrap_or_default().to_owned()
}

fn inherited(file: impl AsRef<[u8]>) -> String {
    let read = LineFormat::ClaudeCode.read(file.as_ref());
    inherited_of(read.expect("a transcript"))
}

fn skipped(file: impl AsRef<[u8]>) -> usize {
    let read = LineFormat::ClaudeCode.read(file.as_ref());
    read.expect("a transcript").skipped().messages
}

/// What a child inherits that is launched by this call.
fn asked_in(file: &str, call: &str) -> String {
    let reading = Reading {
        asked_in: Some(call),
        ..Reading::default()
    };
    let end = LineFormat::ClaudeCode.read_end(file.as_bytes(), &reading);
    assert_eq!(end.reached, Reached::Beginning);
    inherited_of(end.transcript)
}

fn a_call(id: &str) -> Value {
    call(id, "Read", json!({"file_path": "a.rs"}))
}

#[test]
fn an_answer_in_several_records_is_one_message() {
    let session = Transcript::new().user("why?").answer(vec![
        thinking("hm"),
        text("Let me look."),
        a_call("c1"),
        text("And there."),
    ]);
    let session = session.result("c1", "fn main() {}");
    assert_eq!(
        inherited(session.jsonl()),
        "User:\nwhy?\n\nAgent:\nLet me look.\n[Tool: Read] {\"file_path\":\"a.rs\"}\n[Tool result]\n\
         fn main() {}\nAnd there."
    );
}

/// Claude Code starts a tool as soon as its block is complete, and goes on writing.
#[test]
fn a_result_may_come_between_the_pieces_of_an_answer() {
    let session = Transcript::new()
        .user("why?")
        .piece("msg_a", a_call("c1"))
        .result("c1", "one")
        .piece("msg_a", a_call("c2"))
        .result("c2", "two")
        .answer(vec![text("done")]);
    let context = inherited(session.jsonl());
    assert_eq!(context.matches("Agent:").count(), 2, "{context}");
    assert!(context.contains("one\n[Tool: Read] {\"file_path\":\"a.rs\"}\n[Tool result]\ntwo\n"));
}

/// Each result follows its own call; what comes next follows the last of them only.
#[rstest]
#[case::in_order(["c1", "c2"])]
#[case::the_other_way_round(["c2", "c1"])]
fn calls_at_once_all_have_their_results(#[case] order: [&str; 2]) {
    let session = Transcript::new()
        .user("why?")
        .answer(vec![a_call("c1"), a_call("c2")]);
    let session = order.into_iter().fold(session, |session, call| {
        let record = if call == "c1" { 1 } else { 2 };
        session
            .back_to(Some(record))
            .result(call, &format!("of {call}"))
    });
    let context = inherited(session.answer(vec![text("done")]).jsonl());
    let read = "[Tool: Read] {\"file_path\":\"a.rs\"}\n[Tool result]\n";
    assert_eq!(
        context,
        format!("User:\nwhy?\n\nAgent:\n{read}of c1\n{read}of c2\n\nAgent:\ndone")
    );
}

#[test]
fn what_the_user_went_back_from_is_not_inherited() {
    let session = Transcript::new()
        .user("first")
        .answer(vec![text("one")])
        .user("wrong way")
        .answer(vec![text("lost"), a_call("c1")])
        .result("c1", "lost too")
        .notice("told to the lost branch")
        .back_to(Some(1))
        .user("second")
        .answer(vec![text("two")]);
    assert_eq!(
        inherited(session.jsonl()),
        "User:\nfirst\n\nAgent:\none\n\nUser:\nsecond\n\nAgent:\ntwo"
    );
}

#[test]
fn a_summary_stands_for_what_was_before_and_is_followed_by_what_was_kept() {
    let session = Transcript::new()
        .user("old question")
        .answer(vec![text("old answer")])
        .user("kept question")
        .answer(vec![text("kept answer")])
        .compacted("the summary", 2)
        .user("new question");
    let made = forked(
        LineFormat::ClaudeCode
            .read(session.jsonl().as_bytes())
            .expect("read"),
    );
    assert_eq!(
        made.context,
        "<inherited_context>\n\nAgent:\nthe summary\n\nUser:\nkept question\n\nAgent:\nkept answer\n\n\
         User:\nnew question\n</inherited_context>"
    );
    assert_eq!(made.stats.compaction.expect("a compaction").stands_for, 2);
}

#[test]
fn the_latest_compaction_counts_also_where_it_keeps_some_of_what_the_one_before_kept() {
    let session = Transcript::new()
        .user("a")
        .user("b")
        .compacted("first summary", 1)
        .user("c")
        .compacted_keeping("second summary", vec![uuid(1), uuid(4)])
        .user("d");
    assert_eq!(
        inherited(session.jsonl()),
        "Agent:\nsecond summary\n\nUser:\nb\n\nUser:\nc\n\nUser:\nd"
    );
}

/// After a compaction Claude Code goes on from what it kept, or from the summary.
#[test]
fn what_comes_after_a_compaction_may_follow_what_was_kept() {
    let session = Transcript::new()
        .user("a")
        .user("kept")
        .compacted("summary", 1)
        .back_to(Some(1))
        .user("next");
    assert_eq!(
        inherited(session.jsonl()),
        "Agent:\nsummary\n\nUser:\nkept\n\nUser:\nnext"
    );
}

/// Whether or not what is older than the compaction was read.
#[test]
fn what_the_user_went_back_from_after_a_compaction_is_not_inherited() {
    let session = Transcript::new().user("a").user("kept");
    let old = session.lines().len() - 1;
    let session = session
        .compacted("summary", 1)
        .back_to(Some(1))
        .hook("said to a lost branch")
        .back_to(Some(3))
        .user("next");
    let expected = "Agent:\nsummary\n\nUser:\nkept\n\nUser:\nnext";
    assert_eq!(inherited(session.jsonl()), expected);
    let newest: String = session.lines()[old..]
        .iter()
        .map(|line| format!("{line}\n"))
        .collect();
    let reading = Reading {
        has_more: true,
        ..Reading::default()
    };
    let end = LineFormat::ClaudeCode.read_end(newest.as_bytes(), &reading);
    assert_eq!(end.reached, Reached::Compaction);
    assert_eq!(inherited_of(end.transcript), expected);
}

#[rstest]
#[case::no_summary(Transcript::new().user("kept").record(json!({
    "type": "system", "subtype": "compact_boundary", "parentUuid": null, "logicalParentUuid": uuid(0),
})))]
#[case::summary_unreadable(Transcript::new().user("kept").record(json!({
    "type": "system", "subtype": "compact_boundary", "parentUuid": null, "logicalParentUuid": uuid(0),
})).record(json!({"type": "user", "isCompactSummary": true, "message": {"content": 7}})))]
fn a_boundary_without_a_summary_stands_for_nothing(#[case] session: Transcript) {
    let context = inherited(session.answer(vec![text("and on")]).jsonl());
    assert_eq!(context, "User:\nkept\n\nAgent:\nand on");
}

#[test]
fn kept_records_that_are_not_in_the_file_are_passed_over() {
    let session = Transcript::new()
        .user("a")
        .user("b")
        .compacted_keeping("summary", vec!["nowhere".to_owned(), uuid(1), uuid(999)])
        .user("next");
    assert_eq!(
        inherited(session.jsonl()),
        "Agent:\nsummary\n\nUser:\nb\n\nUser:\nnext"
    );
}

#[test]
fn of_a_session_the_records_of_sub_agents_are_left_out_and_of_a_sub_agent_they_are_all_there_is() {
    let said = |transcript: Transcript| transcript.user("search").answer(vec![text("found")]);
    assert_eq!(
        inherited(said(Transcript::of_sub_agent("a1")).jsonl()),
        "User:\nsearch\n\nAgent:\nfound"
    );
    let session = Transcript::new()
        .user("delegate")
        .record(json!({"type": "user", "isSidechain": true, "message": {"content": "search"}}))
        .back_to(Some(0))
        .answer(vec![text("delegated")]);
    assert_eq!(
        inherited(session.jsonl()),
        "User:\ndelegate\n\nAgent:\ndelegated"
    );
}

#[test]
fn what_hosts_and_hooks_say_to_the_model_is_inherited_and_what_they_say_to_the_user_is_not() {
    let session = Transcript::new()
        .user("hi")
        .hook("The release is on Friday.")
        .notice("<task-notification>done</task-notification>")
        .attachment(json!({
            "type": "hook_blocking_error",
            "blockingError": {"blockingError": "NOTICE: 3 findings", "command": "Stop"},
        }))
        .attachment(json!({"type": "skill_listing", "content": "- review"}))
        .attachment(json!({"type": "hook_success", "content": "ok", "stdout": "ok"}))
        .user("<command-name>/cost</command-name>")
        .record(json!({"type": "user", "message": {
            "content": "<local-command-stdout>$1</local-command-stdout>",
        }}))
        .record(json!({"type": "user", "isMeta": true, "message": {
            "content": "<system-reminder>the date has changed</system-reminder>",
        }}))
        .record(json!({"type": "assistant", "message": {
            "id": "x", "model": "<synthetic>", "content": [text("API Error: 529")],
        }}))
        .system("turn_duration")
        .bookkeeping("last-prompt")
        .record(json!({"type": "hologram", "deep": [[{}]]}));
    assert_eq!(
        inherited(session.jsonl()),
        "User:\nhi\n\nUser:\nThe release is on Friday.\n\nUser:\n\
         <task-notification>done</task-notification>\n\nUser:\nNOTICE: 3 findings"
    );
    assert_eq!(skipped(session.jsonl()), 0);
}

#[test]
fn the_message_that_asks_contributes_its_text_and_no_pending_call() {
    let asking = Transcript::new()
        .user("go")
        .answer(vec![a_call("c1")])
        .result("c1", "seen")
        .answer(vec![
            text("I delegate this."),
            call("ask", "asyncagents_task", json!({})),
        ]);
    let expected = "User:\ngo\n\nAgent:\n[Tool: Read] {\"file_path\":\"a.rs\"}\n[Tool result]\nseen\n\n\
                    Agent:\nI delegate this.";
    assert_eq!(inherited(asking.jsonl()), expected);
    assert_eq!(asked_in(&asking.jsonl(), "ask"), expected);
    let later = asking
        .result("ask", "launched")
        .answer(vec![text("and on")]);
    assert_eq!(
        asked_in(&later.jsonl(), "ask"),
        expected,
        "also when it is read after the answer came"
    );
    let interrupted = Transcript::new()
        .user("go")
        .answer(vec![text("I try."), a_call("c1")])
        .user("stop, do something else");
    assert!(
        inherited(interrupted.jsonl()).contains("I try.\n[Tool: Read] {\"file_path\":\"a.rs\"}\n"),
        "one that the user went on without is shown without a result"
    );
}

#[test]
fn calls_beside_the_one_that_asks_are_pending_as_they_were() {
    let session = Transcript::new()
        .user("go")
        .answer(vec![
            text("Three at once."),
            call("ask", "asyncagents_task", json!({"n": 1})),
            a_call("c2"),
        ])
        .back_to(Some(3))
        .result("c2", "a later result")
        .back_to(Some(2))
        .result("ask", "launched");
    assert_eq!(
        asked_in(&session.jsonl(), "ask"),
        "User:\ngo\n\nAgent:\nThree at once."
    );
}

#[test]
fn a_call_that_is_not_there_means_everything_or_that_more_must_be_read() {
    let session = Transcript::new().user("go").jsonl();
    assert_eq!(asked_in(&session, "nobody's"), "User:\ngo");
    let reading = Reading {
        asked_in: Some("nobody's"),
        has_more: true,
        of_sub_agent: false,
    };
    let end = LineFormat::ClaudeCode.read_end(session.as_bytes(), &reading);
    assert_eq!(end.reached, Reached::TooLittle);
}

#[test]
fn a_last_line_that_is_half_written_is_not_there_yet() {
    let session = Transcript::new().user("go").answer(vec![text("done 漢字")]);
    let file = session.jsonl();
    let first = session.lines()[0].len() + 1;
    for end in first..file.len() - 1 {
        assert_eq!(
            inherited(&file.as_bytes()[..end]),
            "User:\ngo",
            "cut at {end}"
        );
        assert_eq!(skipped(&file.as_bytes()[..end]), 0);
    }
    let without_break = file.trim_end();
    assert_eq!(inherited(without_break), "User:\ngo\n\nAgent:\ndone 漢字");
}

#[rstest]
#[case::no_json(b"{\"type\": \"assistant\", oops")]
#[case::a_list(b"[1, 2]")]
#[case::a_number(b"7")]
#[case::no_type(b"{\"uuid\": \"x\"}")]
#[case::no_text(b"{\"type\": \"user\xff\xfe\"}")]
#[case::nul(b"\0\0\0\0")]
fn a_broken_line_is_skipped_and_counted_and_the_chain_goes_on(#[case] broken: &[u8]) {
    let session = Transcript::new()
        .user("first")
        .answer(vec![text("one")])
        .user("second");
    let mut lines: Vec<&[u8]> = session.lines().iter().map(String::as_bytes).collect();
    lines[1] = broken;
    let mut file = lines.join(&b'\n');
    file.push(b'\n');
    assert_eq!(inherited(&file), "User:\nfirst\n\nUser:\nsecond");
    assert_eq!(skipped(&file), 1);
}

#[rstest]
#[case::a_list(json!([null, null, "no message"]))]
#[case::a_text(json!("no message"))]
#[case::no_content(json!({"role": "user"}))]
fn what_is_no_message_is_skipped_and_counted(#[case] message: Value) {
    let session = Transcript::new()
        .user("first")
        .record(json!({"type": "user", "message": message}))
        .user("second");
    assert_eq!(inherited(session.jsonl()), "User:\nfirst\n\nUser:\nsecond");
    assert_eq!(skipped(session.jsonl()), 1);
}

#[test]
fn line_ends_of_another_system_blank_lines_and_a_mark_are_no_trouble() {
    let session = Transcript::new().user("go").answer(vec![text("done")]);
    let file = format!("\u{feff}{}\r\n\n", session.lines().join("\r\n \n\n"));
    assert_eq!(inherited(&file), "User:\ngo\n\nAgent:\ndone");
    assert_eq!(skipped(&file), 0);
}

/// Nobody writes such files; they must not keep us busy for ever either.
#[test]
fn records_that_follow_themselves_or_each_other_end_the_chain() {
    let follows = |own: &str, parent: &str, said: &str| {
        json!({"type": "user", "uuid": own, "parentUuid": parent, "message": {"content": said}})
            .to_string()
    };
    let circle = [
        follows("a", "c", "one"),
        follows("b", "a", "two"),
        follows("c", "b", "three"),
    ];
    assert_eq!(
        inherited(circle.join("\n")),
        "User:\none\n\nUser:\ntwo\n\nUser:\nthree"
    );
    assert_eq!(inherited(follows("a", "a", "alone")), "User:\nalone");
    let twins = [
        follows("a", "z", "one"),
        follows("a", "a", "two"),
        follows("a", "a", "three"),
    ];
    assert_eq!(
        inherited(twins.join("\n")),
        "User:\none\n\nUser:\ntwo\n\nUser:\nthree"
    );
}

/// A resumed session may write records again that it has.
#[test]
fn a_record_that_is_there_twice_is_read_once() {
    let session = Transcript::new()
        .user("go")
        .answer(vec![text("looking"), a_call("c1")])
        .result("c1", "seen");
    let again = session.lines().to_vec();
    for first in 0..again.len() {
        let copies = again[first..].iter().cloned();
        let twice = copies.clone().fold(session.clone(), Transcript::line);
        let one_more = again[first].clone();
        for twice in [twice, session.clone().line(one_more)] {
            let context = inherited(twice.answer(vec![text("done")]).jsonl());
            assert_eq!(context.matches("looking").count(), 1, "{context}");
            assert_eq!(context.matches("seen").count(), 1, "{context}");
        }
    }
}

#[test]
fn values_of_other_types_than_expected_spoil_nothing_else() {
    let session = Transcript::new()
        .user("go")
        .record(json!({
            "type": "assistant", "isMeta": "no", "isSidechain": 0, "subtype": 7,
            "message": {"id": 9, "model": [], "content": [
                {"type": "text"}, {"type": "tool_use", "id": 1, "name": "Read", "input": "x"},
                7, {"type": 3}, text("still here"),
            ]},
        }))
        .record(json!({"type": "attachment", "attachment": "nothing"}))
        .record(json!({"type": "user", "message": {"content": [
            {"type": "tool_result", "content": "for nobody"}, text("and here"),
        ]}}));
    let read = LineFormat::ClaudeCode
        .read(session.jsonl().as_bytes())
        .expect("read")
        .skipped();
    assert_eq!((read.messages, read.parts), (0, 4));
    assert_eq!(
        inherited(session.jsonl()),
        "User:\ngo\n\nAgent:\n[Tool: Read] \"x\"\nstill here\n\nUser:\nand here"
    );
}

#[test]
fn half_an_emoji_is_one_replacement_character() {
    let line = r#"{"type":"user","uuid":"a","parentUuid":null,"message":{"content":"cut \ud83d"}}"#;
    assert_eq!(inherited(line), "User:\ncut \u{fffd}");
}

#[test]
fn a_line_of_many_megabytes_is_read() {
    let session = Transcript::new()
        .user("go")
        .answer(vec![a_call("c1")])
        .result("c1", &"x".repeat(20_000_000))
        .answer(vec![text("done")]);
    let made = forked(
        LineFormat::ClaudeCode
            .read(session.jsonl().as_bytes())
            .expect("read"),
    );
    assert!(made.context.ends_with("Agent:\ndone\n</inherited_context>"));
    assert!(made.stats.characters.after <= 200_000);
}

#[test]
fn what_is_no_transcript_is_refused_in_one_line() {
    let refused: Vec<String> = [
        "",
        " \n\n",
        "hello\nworld\n",
        "{\"type\":\"user\"}\n{\"type\":\"user\"}",
        "[{\"info\": {}, \"parts\": []}]",
        "{\"timestamp\":\"t\",\"type\":\"response_item\",\"payload\":{\"type\":\"message\"}}\n",
    ]
    .into_iter()
    .map(|input| refusal(Format::ClaudeCode, input))
    .collect();
    insta::assert_snapshot!(refused.join("\n"));
}
