//! OpenCode's messages, also when they are not what we expect.

use asyncagents_core::{
    fork::{Parent, Preset, fork},
    read::Format,
    tokens,
    transcript::{Outcome, Part, Role, Transcript},
};
use asyncagents_testkit::opencode::{Session, result, text, tool};
use rstest::rstest;
use serde_json::{Value, json};

use super::{assert_truncated_anywhere, graduated, put, refusal};

fn read(json: &str) -> Transcript<'_> {
    Format::OpenCode.read(json).expect("a session")
}

#[test]
fn synthetic_text_is_for_the_model_and_ignored_text_is_not() {
    let session = Session::new().user_parts(vec![
        json!({"type": "text", "text": "hidden hint", "synthetic": true}),
        json!({"type": "text", "text": "for the screen only", "ignored": true}),
        json!({"type": "text", "text": "said", "ignored": false}),
    ]);
    let context = graduated(&session).context;
    assert_eq!(
        context,
        "<inherited_context>\n\nUser:\nhidden hint\nsaid\n</inherited_context>"
    );
}

#[test]
fn parts_that_are_not_conversation_are_left_out() {
    let others = [
        "reasoning",
        "snapshot",
        "patch",
        "step-start",
        "step-finish",
        "file",
        "agent",
        "subtask",
        "retry",
    ];
    let mut parts: Vec<Value> = others
        .iter()
        .map(|kind| json!({"type": kind, "text": "not inherited", "url": "data:…"}))
        .collect();
    parts.push(text("answer"));
    let made = graduated(&Session::new().user("go").agent(parts));
    assert_eq!(
        made.context,
        "<inherited_context>\n\nUser:\ngo\n\nAgent:\nanswer\n</inherited_context>"
    );
    assert_eq!(made.stats.messages.skipped_parts, 0);
}

#[test]
fn unknown_kinds_and_fields_are_passed_over_whatever_they_hold() {
    let session = Session::new()
        .agent(vec![
            json!({"type": "hologram", "text": {"deep": [1]}, "state": "on", "tool": 7}),
            json!({"type": "text", "text": "still here", "colour": {"r": 1}, "metadata": null}),
        ])
        .entry(json!({
            "info": {"role": "user", "mood": "fine", "time": {"created": 1, "lunar": true}},
            "parts": [text("and here")], "extra": [],
        }));
    let made = graduated(&session);
    assert!(made.context.contains("still here") && made.context.contains("and here"));
    assert_eq!(
        (
            made.stats.messages.skipped,
            made.stats.messages.skipped_parts
        ),
        (0, 0)
    );
}

#[rstest]
#[case::a_number(json!(7))]
#[case::null(json!(null))]
#[case::no_info(json!({"parts": []}))]
#[case::no_role(json!({"info": {"id": "x"}, "parts": []}))]
#[case::another_role(json!({"info": {"role": "system"}, "parts": []}))]
#[case::no_parts(json!({"info": {"role": "user"}}))]
#[case::parts_not_a_list(json!({"info": {"role": "user"}, "parts": {"type": "text"}}))]
#[case::only_broken_parts(json!({"info": {"role": "user"}, "parts": [{"type": "text", "text": 42}]}))]
#[case::part_without_a_type(json!({"info": {"role": "user"}, "parts": [{"text": "?"}]}))]
fn a_malformed_message_is_skipped_and_counted(#[case] entry: Value) {
    let made = graduated(&Session::new().user("before").entry(entry).user("after"));
    assert_eq!(made.stats.messages.skipped, 1);
    assert_eq!(made.stats.messages.kept, 2);
}

#[rstest]
#[case::text_is_no_string(json!({"type": "text", "text": ["a"]}))]
#[case::text_is_missing(json!({"type": "text"}))]
#[case::tool_without_a_name(json!({"type": "tool", "state": {"status": "completed"}}))]
#[case::tool_without_a_state(json!({"type": "tool", "tool": "read"}))]
#[case::output_is_no_string(json!({"type": "tool", "tool": "read", "state": {"status": "completed", "output": 5}}))]
fn a_broken_part_does_not_cost_its_message(#[case] broken: Value) {
    let made = graduated(
        &Session::new()
            .user("go")
            .agent(vec![broken, result("precious")]),
    );
    assert!(made.context.contains("precious"));
    assert_eq!(
        (
            made.stats.messages.skipped,
            made.stats.messages.skipped_parts
        ),
        (0, 1)
    );
}

#[rstest]
#[case::of_the_call(json!({"callID": 7, "text": {"a": 1}, "tail_start_id": 5}), json!({}), json!({}))]
#[case::of_the_state(json!({}), json!({"time": "yesterday", "error": {"x": 1}, "title": 5}), json!({}))]
#[case::of_the_message(json!({}), json!({}), json!({"id": 5, "parentID": [], "time": 5, "summary": "no"}))]
fn a_field_that_does_not_matter_may_be_anything(
    #[case] of_part: Value,
    #[case] of_state: Value,
    #[case] of_info: Value,
) {
    let mut part = tool("read", json!({}), "precious");
    let mut info = json!({"role": "assistant", "time": {"completed": 1}});
    put(&mut part, &of_part);
    put(&mut part["state"], &of_state);
    put(&mut info, &of_info);
    let odd_text =
        json!({"type": "text", "text": "also precious", "state": "done", "tool": {"a": 1}});
    let entry = json!({"info": info, "parts": [part, odd_text]});
    let made = graduated(&Session::new().entry(entry).user("and now?"));
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
fn a_key_with_half_an_emoji_or_said_twice_costs_nothing() {
    let json = r#"[{"info":{"role":"user","\ud800":1},"parts":[
        {"\ud800":1,"type":"text","text":"first"},{"type":"text","text":"old","text":"second"}]}]"#;
    let parent = Parent::new(read(json));
    let context = fork(&parent, &Preset::Graduated.limits(), tokens::o200k)
        .expect("a fork")
        .context;
    assert!(context.contains("User:\nfirst\nsecond\n"));
}

#[rstest]
#[case::pending("pending", json!({}), Outcome::Pending)]
#[case::running("running", json!({"metadata": {"output": "so far"}}), Outcome::Pending)]
#[case::completed_without_text("completed", json!({}), completed(""))]
#[case::of_a_later_version("archived", json!({"output": "text"}), completed("text"))]
#[case::of_a_later_version_without_output("archived", json!({}), Outcome::Pending)]
fn the_state_of_a_call_says_what_came_of_it(
    #[case] status: &str,
    #[case] mut state: Value,
    #[case] expected: Outcome<'static>,
) {
    state["status"] = json!(status);
    let part = json!({"type": "tool", "tool": "read", "state": state});
    let json = Session::new().agent(vec![part]).json();
    let transcript = read(&json);
    let [Part::Tool(call)] = &*transcript.messages()[0].parts else {
        panic!("one call: {transcript:?}");
    };
    assert_eq!(call.outcome, expected);
}

fn completed(text: &'static str) -> Outcome<'static> {
    Outcome::Completed(asyncagents_core::transcript::Text::new(text))
}

#[test]
fn parameters_are_compact_json_in_the_order_they_came() {
    let json = r#"[{"info":{"role":"assistant","time":{"completed":1}},"parts":[{"type":"tool","tool":"t","state":
        {"status":"completed","output":"","input": { "z" : [ 1 , 2 ],
            "a" : "two  spaces, a \" quote : and a \\" , "é" : "\u00e9" } }}]}]"#;
    let transcript = read(json);
    let [Part::Tool(call)] = &*transcript.messages()[0].parts else {
        panic!("one call");
    };
    assert_eq!(
        call.input.as_str(),
        r#"{"z":[1,2],"a":"two  spaces, a \" quote : and a \\","é":"é"}"#
    );
}

#[test]
fn parameters_read_the_same_whoever_saved_them() {
    let plain = json!({"q": "😀é/\"\n".repeat(100)}).to_string();
    let escaped = plain
        .replace('😀', "\\ud83d\\ude00")
        .replace('é', "\\u00e9")
        .replace('/', "\\/");
    let context = |input: &str| {
        let json = format!(
            r#"[{{"info":{{"role":"user"}},"parts":[{{"type":"tool","tool":"t","state":{{"status":"completed","input":{input}}}}}]}}]"#
        );
        let parent = Parent::new(read(&json));
        fork(&parent, &Preset::Graduated.limits(), tokens::o200k)
            .expect("a fork")
            .context
    };
    assert_eq!(context(&escaped), context(&plain));
    assert!(context(&plain).contains("{\"q\":\"😀é/\\\"\\n😀é/"));
}

#[test]
fn half_an_emoji_becomes_one_replacement_character() {
    let json = r#"[{"info":{"role":"user","id":"\udc00"},"parts":[{"type":"text","text":"cut \ud83d"},
        {"type":"text","text":"\ude00 and whole \ud83d\ude00, \ud800\ud800"}]}]"#;
    let transcript = read(json);
    let said: Vec<&str> = transcript.messages()[0]
        .parts
        .iter()
        .map(|part| match part {
            Part::Text(text) => text.as_str(),
            Part::Tool(_) => panic!("no call here"),
        })
        .collect();
    assert_eq!(
        said,
        ["cut \u{fffd}", "\u{fffd} and whole 😀, \u{fffd}\u{fffd}"]
    );
}

#[test]
fn what_opencode_export_prints_is_read_too() {
    let transcript = read(include_str!("../fixtures/opencode/session.export.json"));
    assert_eq!(transcript.messages().len(), 1);
    assert_eq!(transcript.messages()[0].role, Role::User);
}

#[test]
fn a_byte_order_mark_is_no_obstacle() {
    let json = format!("\u{feff}{}", Session::new().user("hi").json());
    assert_eq!(read(&json).messages().len(), 1);
}

#[rstest]
#[case::nothing("", "the input is empty; expected a JSON list of messages")]
#[case::blank(" \n", "the input is empty; expected a JSON list of messages")]
#[case::not_json(
    "hello",
    "the input is not valid JSON: expected value at line 1 column 1"
)]
#[case::a_string(
    "\"hi\"",
    "expected a list of messages (`[{\"info\": …, \"parts\": […]}, …]`), found a string"
)]
#[case::a_number(
    "-1.5",
    "expected a list of messages (`[{\"info\": …, \"parts\": […]}, …]`), found a number"
)]
#[case::null(
    "null",
    "expected a list of messages (`[{\"info\": …, \"parts\": […]}, …]`), found null"
)]
#[case::an_object(
    "{\"info\": {}}",
    "expected a list of messages (`[{\"info\": …, \"parts\": […]}, …]`), found an object without `messages`"
)]
#[case::messages_not_a_list(
    "{\"messages\": 5}",
    "expected a list of messages (`[{\"info\": …, \"parts\": […]}, …]`), found a number"
)]
#[case::wrapped_twice(
    "{\"messages\": {\"messages\": []}}",
    "expected a list of messages (`[{\"info\": …, \"parts\": […]}, …]`), found an object"
)]
#[case::of_something_else(
    "[1, 2]",
    "expected messages with `info.role` and `parts`, found none in 2 entries; the first: invalid type: integer `1`, expected an object"
)]
#[case::of_lists(
    "[[{\"role\":\"user\"},[{\"type\":\"text\",\"text\":\"x\"}]]]",
    "expected messages with `info.role` and `parts`, found none in 1 entries; the first: invalid type: sequence, expected an object"
)]
#[case::of_an_unknown_role(
    "[{\"info\":{\"role\":\"sys\\ntem\\u001b[31m\"},\"parts\":[]}]",
    "expected messages with `info.role` and `parts`, found none in 1 entries; the first: unknown variant `sys tem [31m`, expected `user` or `assistant`"
)]
#[case::garbage_behind(
    "[] []",
    "the input is not valid JSON: trailing characters at line 1 column 4"
)]
fn what_is_not_a_session_is_refused_in_one_sentence(#[case] input: &str, #[case] sentence: &str) {
    assert_eq!(refusal(Format::OpenCode, input), sentence);
}

#[test]
fn a_truncated_file_says_where_it_ends() {
    let json = Session::new()
        .user("one")
        .user("two")
        .agent(vec![tool("read", json!({}), "x")])
        .json();
    assert_truncated_anywhere(Format::OpenCode, &json);
    let in_the_third = json.rfind("call_read").expect("the call");
    assert!(
        refusal(Format::OpenCode, &json[..in_the_third])
            .starts_with("the input ends too early, after 2 complete messages (line 1, column ")
    );
}
