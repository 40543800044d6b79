//! OpenCode 2's messages, also when they are not what we expect.

use asyncagents_core::{
    fork::{Fork, Limits, Parent, Preset, Reach, fork},
    read::Format,
    tokens,
    transcript::{Outcome, Part, Text, Transcript},
};
use asyncagents_testkit::opencode2::{Session, call, result, text, tool, tool_error, tool_running};
use rstest::rstest;
use serde_json::{Value, json};

use super::{assert_truncated_anywhere, filler, put, refusal};

pub(super) fn read(json: &str) -> Transcript<'_> {
    Format::OpenCode2.read(json).expect("a session")
}

pub(super) fn forked(json: &str, limits: &Limits) -> Fork {
    fork(&Parent::new(read(json)), limits, tokens::o200k).expect("a fork")
}

fn graduated(session: &Session) -> Fork {
    forked(&session.json(), &Preset::Graduated.limits())
}

fn inherited(session: &Session) -> String {
    let context = graduated(session).context;
    let body = context.strip_prefix("<inherited_context>\n\n");
    let body = body.and_then(|body| body.strip_suffix("\n</inherited_context>"));
    body.expect("a wrapper").to_owned()
}

#[test]
fn what_opencode_shows_its_model_is_inherited() {
    let session = Session::new()
        .user("hi")
        .synthetic("<notice>task 1 is done</notice>", "task 1 is done")
        .message(json!({"type": "skill", "skill": "s", "name": "review", "text": "Review it."}))
        .message(json!({
            "type": "user", "text": "with a skill", "skills": [{"name": "s", "text": "Be brief."}],
        }))
        .shell("make test", "3 failed")
        .message(
            json!({"type": "location-switched", "location": {"directory": "/home/user/other"}}),
        )
        .agent(vec![
            json!({"type": "reasoning", "text": "hm", "state": {"reasoningField": "x"}}),
            text("Let me look."),
            tool("read", json!({"path": "a.rs"}), "fn main() {}"),
            tool_error("read", json!({"path": "b.rs"}), "no such file"),
        ]);
    insta::assert_snapshot!(inherited(&session));
}

#[test]
fn what_is_not_conversation_is_passed_over_and_not_counted() {
    let session = Session::new()
        .user("hi")
        .message(json!({"type": "agent-switched", "agent": "plan"}))
        .message(json!({"type": "model-switched", "model": {"id": "m", "providerID": "p"}}))
        .message(json!({"type": "system", "text": "today is another day"}))
        .message(json!({"type": "idle", "outcome": "succeeded"}))
        .message(json!({"type": "hologram", "text": {"deep": [1]}, "content": 7, "status": []}));
    let made = graduated(&session);
    assert_eq!(
        made.context,
        "<inherited_context>\n\nUser:\nhi\n</inherited_context>"
    );
    assert_eq!(
        (made.stats.messages.r#in, made.stats.messages.skipped),
        (1, 0)
    );
    let nothing_else = Session::new().message(json!({"type": "idle"}));
    assert_eq!(read(&nothing_else.page()).messages().len(), 0);
}

#[test]
fn a_summary_stands_for_all_before_it_and_brings_the_tail_that_was_kept() {
    let session = Session::new()
        .user("the first question")
        .agent(vec![text("the first answer")])
        .user("what was asked when it was full")
        .compacted(
            "## Objective\n- be quick",
            "[User]: what was asked when it was full",
        )
        .agent(vec![text("the second answer")]);
    let made = graduated(&session);
    insta::assert_snapshot!(format!("{}\n\n{}", made.preamble, made.context));
    assert_eq!(
        made.context
            .matches("what was asked when it was full")
            .count(),
        1,
        "the message that caused it is in the tail already"
    );
    let stands_for = made.stats.compaction.expect("a compaction").stands_for;
    assert_eq!((made.stats.messages.compacted, stands_for), (3, 3));
}

#[rstest]
#[case::failed(Session::new().user("kept").compaction_failed())]
#[case::running(Session::new().user("kept").compaction_unfinished("half a summary"))]
#[case::without_a_summary(Session::new().user("kept").message(json!({"type": "compaction", "status": "completed"})))]
fn a_compaction_that_is_not_complete_stands_for_nothing(#[case] session: Session) {
    let made = graduated(&session.agent(vec![text("and on")]));
    assert_eq!(
        made.context,
        "<inherited_context>\n\nUser:\nkept\n\nAgent:\nand on\n</inherited_context>"
    );
    assert_eq!(made.stats.compaction, None);
}

#[test]
fn the_latest_of_several_compactions_counts() {
    let session = Session::new()
        .user("one")
        .compacted("the old summary", "")
        .user("two")
        .compacted("the new summary", " \n")
        .user("three")
        .compaction_failed();
    assert_eq!(
        inherited(&session),
        "Agent:\nthe new summary\n\nUser:\nthree"
    );
}

#[test]
fn the_message_that_asks_contributes_its_text_and_no_running_call() {
    let session = Session::new().user("go").agent_in_flight(vec![
        text("I delegate this."),
        result("seen"),
        tool_running("asyncagents_task", json!({"prompt": "x"})),
    ]);
    let context = inherited(&session);
    assert!(context.contains("I delegate this.\n[Tool: read]") && context.contains("seen"));
    assert!(!context.contains("asyncagents_task"));
    let later = session.user("and then?").agent(vec![text("done")]);
    assert!(
        inherited(&later).contains("[Tool: asyncagents_task] {\"prompt\":\"x\"}\n"),
        "one that was interrupted for good is shown without a result"
    );
}

#[rstest]
#[case::list(|session: &Session| session.json())]
#[case::page(|session: &Session| session.page())]
#[case::page_oldest_first(|session: &Session| session.page_oldest_first())]
#[case::context(|session: &Session| session.context())]
#[case::export(|session: &Session| session.export().to_string())]
#[case::export_by_http(|session: &Session| json!({"data": session.export()}).to_string())]
#[case::byte_order_mark(|session: &Session| format!("\u{feff}{}", session.json()))]
fn however_it_was_saved_it_is_the_same(#[case] saved: impl Fn(&Session) -> String) {
    let session = Session::new()
        .user("one")
        .agent(vec![text("two")])
        .user("three")
        .agent_in_flight(vec![tool_running("x", json!({}))]);
    assert_eq!(read(&saved(&session)), read(&session.json()));
}

#[test]
fn a_page_whose_times_do_not_tell_is_newest_first() {
    let at_once = |text: &str| json!({"type": "user", "text": text, "time": {"created": 5}});
    let session = Session::new()
        .message(at_once("one"))
        .message(at_once("two"));
    assert_eq!(read(&session.page()), read(&session.json()));
    let one_is_late = Session::new()
        .user("one")
        .user("two")
        .message(json!({"type": "synthetic", "text": "sent long ago", "time": {"created": 7}}))
        .user("three");
    for page in [one_is_late.page(), one_is_late.page_oldest_first()] {
        assert_eq!(read(&page), read(&one_is_late.json()));
    }
}

#[rstest]
#[case::streaming(json!({"status": "streaming", "input": "{\"pa"}), Outcome::Pending)]
#[case::running(json!({"status": "running", "input": {}, "metadata": {"step": 1}}), Outcome::Pending)]
#[case::two_texts(json!({"status": "completed", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}), completed("a\nb"))]
#[case::a_file(json!({"status": "completed", "content": [{"type": "file", "uri": "data:…", "mime": "image/png"}, {"type": "text", "text": "an image"}]}), completed("an image"))]
#[case::nothing(json!({"status": "completed", "content": []}), completed(""))]
#[case::cleared(json!({"status": "completed", "content": [{"type": "text", "text": Outcome::CLEARED}]}), Outcome::Cleared)]
#[case::failed(json!({"status": "error", "error": {"type": "unknown", "message": "boom"}}), failed("boom"))]
#[case::failed_after_output(json!({"status": "error", "error": {"type": "aborted", "message": "boom"}, "content": [{"type": "text", "text": "so far"}]}), failed("boom\nso far"))]
#[case::failed_silently(json!({"status": "error"}), failed(""))]
#[case::of_a_later_version(json!({"status": "archived", "content": [{"type": "text", "text": "kept"}]}), completed("kept"))]
#[case::of_a_later_version_without_output(json!({"status": "queued"}), Outcome::Pending)]
fn the_state_of_a_call_says_what_came_of_it(
    #[case] state: Value,
    #[case] expected: Outcome<'static>,
) {
    let json = Session::new().agent(vec![call("read", state)]).json();
    let transcript = read(&json);
    let [Part::Tool(call)] = &*transcript.messages()[0].parts else {
        panic!("one call: {transcript:?}");
    };
    assert_eq!(call.outcome, expected);
}

fn completed(text: &'static str) -> Outcome<'static> {
    Outcome::Completed(Text::new(text))
}

fn failed(text: &'static str) -> Outcome<'static> {
    Outcome::Failed(Text::new(text))
}

#[rstest]
#[case::a_number(json!(7))]
#[case::null(json!(null))]
#[case::a_list(json!(["user", "x"]))]
#[case::no_type(json!({"text": "?"}))]
#[case::type_is_no_string(json!({"type": 5, "text": "?"}))]
#[case::user_without_text(json!({"type": "user"}))]
#[case::text_is_no_string(json!({"type": "synthetic", "text": ["a"]}))]
#[case::agent_without_content(json!({"type": "assistant"}))]
#[case::content_is_no_list(json!({"type": "assistant", "content": {"type": "text"}}))]
#[case::only_broken_parts(json!({"type": "assistant", "content": [{"type": "text", "text": 42}]}))]
#[case::shell_without_command(json!({"type": "shell", "output": {"output": "x"}}))]
#[case::moved_nowhere(json!({"type": "location-switched"}))]
fn a_malformed_message_is_skipped_and_counted(#[case] entry: Value) {
    let made = graduated(&Session::new().user("before").entry(entry).user("after"));
    assert_eq!(made.stats.messages.skipped, 1);
    assert_eq!(made.stats.messages.kept, 2);
}

#[rstest]
#[case::text_is_no_string(json!({"type": "text", "text": ["a"]}))]
#[case::text_is_missing(json!({"type": "text"}))]
#[case::part_without_a_type(json!({"text": "?"}))]
#[case::tool_without_a_name(json!({"type": "tool", "state": {"status": "completed"}}))]
#[case::tool_without_a_state(json!({"type": "tool", "name": "read"}))]
#[case::state_without_a_status(json!({"type": "tool", "name": "read", "state": {}}))]
#[case::content_is_no_list(json!({"type": "tool", "name": "read", "state": {"status": "completed", "content": 5}}))]
fn a_broken_part_does_not_cost_its_message(#[case] broken: Value) {
    let session = Session::new().user("go");
    let made = graduated(&session.agent(vec![broken, result("precious")]));
    assert!(made.context.contains("precious"));
    let skipped = &made.stats.messages;
    assert_eq!((skipped.skipped, skipped.skipped_parts), (0, 1));
}

#[rstest]
#[case::of_the_part(json!({"id": 7, "text": {"a": 1}, "executed": "no"}), json!({}), json!({}))]
#[case::of_the_state(json!({}), json!({"error": [], "metadata": 5}), json!({}))]
#[case::of_the_message(json!({}), json!({}), json!({"id": 5, "time": "now", "summary": {}, "status": 1, "text": [], "skills": 2, "command": {}, "output": "x", "location": 5, "recent": 1}))]
fn a_field_that_does_not_matter_may_be_anything(
    #[case] of_part: Value,
    #[case] of_state: Value,
    #[case] of_message: Value,
) {
    let mut part = tool("read", json!({}), "precious");
    let mut message = json!({"type": "assistant"});
    put(&mut part, &of_part);
    put(&mut part["state"], &of_state);
    put(&mut message, &of_message);
    let odd_text = json!({"type": "text", "text": "also precious", "state": "done", "name": {}});
    message["content"] = json!([part, odd_text]);
    let made = graduated(&Session::new().entry(message).user("and now?"));
    assert!(
        made.context.contains("]\nprecious\nalso precious\n"),
        "{}",
        made.context
    );
    assert_eq!(
        made.stats.messages.skipped + made.stats.messages.skipped_parts,
        0
    );
}

#[test]
fn half_an_emoji_and_a_key_said_twice_cost_nothing() {
    let json = r#"[{"type":"user","\ud800":1,"text":"cut \ud83d"},
        {"type":"synthetic","text":"old","text":"second"},
        {"type":"assistant","time":{"completed":1},"content":[{"type":"text","\ud800":1,"text":"third"}]}]"#;
    let context = forked(json, &Preset::Graduated.limits()).context;
    assert!(context.contains("User:\ncut \u{fffd}\n"));
    assert!(context.contains("User:\nsecond\n\nAgent:\nthird\n"));
}

#[rstest]
#[case::nothing("", "the input is empty; expected a JSON list of messages")]
#[case::not_json(
    "hello",
    "the input is not valid JSON: expected value at line 1 column 1"
)]
#[case::a_string(
    "\"hi\"",
    "expected a list of messages (`[{\"type\": \"user\", \"text\": …}, …]`), found a string"
)]
#[case::an_object(
    "{\"info\": {}}",
    "expected a list of messages (`[{\"type\": \"user\", \"text\": …}, …]`), found an object without `data` or `messages`"
)]
#[case::data_without_messages(
    "{\"data\": {\"info\": {}}}",
    "expected a list of messages (`[{\"type\": \"user\", \"text\": …}, …]`), found an object without `messages`"
)]
#[case::wrapped_thrice(
    "{\"data\": {\"messages\": {\"data\": []}}}",
    "expected a list of messages (`[{\"type\": \"user\", \"text\": …}, …]`), found an object"
)]
#[case::of_opencode_1(
    "[{\"info\":{\"role\":\"user\"},\"parts\":[]}]",
    "expected messages with a `type`, found none in 1 entries; the first: missing field `type`"
)]
fn what_is_not_a_session_is_refused_in_one_sentence(#[case] input: &str, #[case] sentence: &str) {
    assert_eq!(refusal(Format::OpenCode2, input), sentence);
}

#[test]
fn a_truncated_file_says_where_it_ends() {
    let json = Session::new()
        .user("one")
        .message(json!({"type": "idle"}))
        .agent(vec![tool("read", json!({}), "x")])
        .page();
    assert_truncated_anywhere(Format::OpenCode2, &json);
    let in_the_third = json.rfind("\"one\"").expect("the oldest");
    assert!(
        refusal(Format::OpenCode2, &json[..in_the_third])
            .starts_with("the input ends too early, after 2 complete messages (line 1, column ")
    );
}

#[test]
fn texts_and_results_are_borrowed() {
    let json = Session::new()
        .user("a question")
        .agent(vec![result("an answer")])
        .page();
    let within = |text: &str| {
        let start = text.as_ptr() as usize;
        let all = json.as_ptr() as usize..json.as_ptr() as usize + json.len();
        all.contains(&start)
    };
    let transcript = read(&json);
    let parts = transcript.messages().iter().flat_map(|one| &one.parts);
    let texts = parts.map(|part| match part {
        Part::Text(text) => text.as_str(),
        Part::Tool(call) => match &call.outcome {
            Outcome::Completed(text) => text.as_str(),
            other => panic!("a result: {other:?}"),
        },
    });
    let texts: Vec<&str> = texts.collect();
    assert_eq!(texts, ["a question", "an answer"]);
    assert!(texts.into_iter().all(within));
}

#[test]
fn a_fork_reads_back_to_the_compaction_and_no_further() {
    let session = (0..50).fold(Session::new(), |session, n| session.user(&filler(n, 100)));
    let session = session
        .compacted("all of it", "[User]: the last")
        .user("and?");
    let json = session.json();
    let all = read(&json);
    let newest_first: Vec<_> = all.messages().iter().rev().cloned().collect();
    let limits = Preset::Graduated.limits();
    let mut reach = Reach::new(&limits);
    let enough = (1..=newest_first.len()).find(|read| reach.is_enough(&newest_first[..*read]));
    assert_eq!(enough, Some(2));
}
