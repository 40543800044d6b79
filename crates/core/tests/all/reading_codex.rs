//! Codex's rollouts, also when they are not what we expect.

use asyncagents_core::{
    fork::{Fork, Parent, Preset, fork},
    read::{Format, LineFormat, Reached, Reading},
    tokens,
    transcript::Transcript as Read,
};
use asyncagents_testkit::codex::{Rollout, message};
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
    let read = LineFormat::Codex.read(file.as_ref());
    inherited_of(read.expect("a rollout"))
}

fn skipped(file: impl AsRef<[u8]>) -> usize {
    let read = LineFormat::Codex.read(file.as_ref());
    read.expect("a rollout").skipped().messages
}

fn asked_in(file: &str, call: &str) -> String {
    let reading = Reading {
        asked_in: Some(call),
        ..Reading::default()
    };
    let end = LineFormat::Codex.read_end(file.as_bytes(), &reading);
    assert_eq!(end.reached, Reached::Beginning);
    inherited_of(end.transcript)
}

fn with_call(rollout: Rollout, call: &str, result: &str) -> Rollout {
    let rollout = rollout.calls(call, "shell", &json!({"command": "ls"}));
    rollout.answered().result(call, result)
}

#[test]
fn what_was_said_and_done_is_inherited_and_how_the_model_is_to_work_is_not() {
    let rollout = Rollout::new()
        .developer("<permissions instructions>\nBe careful.")
        .item(message(
            "user",
            "<environment_context>\n  <cwd>/project</cwd>",
            "environment.context",
        ))
        .item(message(
            "user",
            "# AGENTS.md instructions for /project",
            "agents_md",
        ))
        .user("go")
        .hook("The release is on Friday.")
        .reasoning("**Thinking**")
        .says("Let me look.");
    let rollout = with_call(rollout, "c1", "a.rs")
        .says("One file.")
        .answered()
        .turn_over();
    assert_eq!(
        inherited(rollout.jsonl()),
        "User:\ngo\n\nUser:\nThe release is on Friday.\n\nAgent:\nLet me look.\n\
         [Tool: shell] {\"command\":\"ls\"}\n[Tool result]\na.rs\n\nAgent:\nOne file."
    );
    assert_eq!(skipped(rollout.jsonl()), 0);
}

#[rstest]
#[case::text(json!("printed"), "[Tool result]\nprinted")]
#[case::pieces(json!([{"type": "input_text", "text": "one"}, {"type": "input_image", "image_url": "data:"}, {"type": "input_text", "text": "two"}]), "[Tool result]\none\ntwo")]
#[case::object(json!({"content": "done", "success": true}), "[Tool result]\ndone")]
#[case::failure(json!({"content": "no such file", "success": false}), "[Tool error]\nno such file")]
#[case::shell(json!("{\"output\":\"a.rs\\n\",\"metadata\":{\"exit_code\":0}}"), "[Tool result]\na.rs")]
#[case::nothing(json!(null), "[Tool result]")]
fn results_are_read_in_every_form(#[case] output: Value, #[case] expected: &str) {
    let rollout = Rollout::new()
        .user("go")
        .calls("c1", "shell", &json!({}))
        .item(json!({"type": "function_call_output", "call_id": "c1", "output": output}))
        .says("done");
    assert_eq!(
        inherited(rollout.jsonl()),
        format!("User:\ngo\n\nAgent:\n[Tool: shell] {{}}\n{expected}\n\nAgent:\ndone")
    );
}

#[rstest]
#[case::custom(json!({"type": "custom_tool_call", "call_id": "c1", "name": "apply_patch", "input": "*** Begin \"x\""}), "[Tool: apply_patch] {\"input\":\"*** Begin \\\"x\\\"\"}")]
#[case::of_a_server(json!({"type": "function_call", "call_id": "c1", "name": "slow", "namespace": "mcp__log", "arguments": "{ \"s\": 4 }"}), "[Tool: mcp__log__slow] {\"s\":4}")]
#[case::shell(json!({"type": "local_shell_call", "call_id": "c1", "action": {"type": "exec", "command": ["ls"]}}), "[Tool: local_shell] {\"type\":\"exec\",\"command\":[\"ls\"]}")]
#[case::no_arguments(json!({"type": "function_call", "call_id": "c1", "name": "x"}), "[Tool: x] {}")]
#[case::no_json(json!({"type": "function_call", "call_id": "c1", "name": "x", "arguments": "{half"}), "[Tool: x] {half")]
fn calls_are_read_in_every_form(#[case] call: Value, #[case] expected: &str) {
    let rollout = Rollout::new()
        .user("go")
        .item(call)
        .result("c1", "ok")
        .says("done");
    assert_eq!(
        inherited(rollout.jsonl()),
        format!("User:\ngo\n\nAgent:\n{expected}\n[Tool result]\nok\n\nAgent:\ndone")
    );
}

#[test]
fn a_compaction_replaces_everything_before_by_its_summary_and_what_it_kept() {
    let rollout = with_call(Rollout::new().user("old"), "c1", "lost").says("lost too");
    let rollout = rollout
        .compacted("the summary", &["old"])
        .user("new")
        .says("and on");
    let made = forked(
        LineFormat::Codex
            .read(rollout.jsonl().as_bytes())
            .expect("read"),
    );
    assert_eq!(
        made.context,
        "<inherited_context>\n\nAgent:\nthe summary\n\nUser:\nold\n\nUser:\nnew\n\nAgent:\nand on\n\
         </inherited_context>"
    );
    assert!(made.preamble.contains("Compaction: found"));
}

#[rstest]
#[case::empty(json!({}))]
#[case::blank(json!({"message": " ", "replacement_history": []}))]
#[case::unreadable(json!({"message": "summary", "replacement_history": [7]}))]
fn a_compaction_without_a_summary_that_can_be_read_replaces_nothing(#[case] payload: Value) {
    let rollout = Rollout::new()
        .user("kept")
        .line("compacted", payload)
        .says("and on");
    assert_eq!(inherited(rollout.jsonl()), "User:\nkept\n\nAgent:\nand on");
}

#[test]
fn turns_that_the_user_went_back_from_are_not_inherited() {
    let turn = |rollout: Rollout, n: usize| {
        let said = rollout.user(&format!("question {n}"));
        with_call(said, &format!("c{n}"), &format!("seen {n}"))
            .says(&format!("answer {n}"))
            .turn_over()
    };
    let three = (1..=3).fold(Rollout::new(), turn);
    let context = inherited(turn(three.clone().rolled_back(2), 4).jsonl());
    assert!(
        context.contains("answer 1") && context.ends_with("answer 4"),
        "{context}"
    );
    assert!(
        !context.contains(" 2") && !context.contains(" 3"),
        "{context}"
    );
    assert_eq!(
        inherited(three.clone().rolled_back(9).user("anew").jsonl()),
        "User:\nanew"
    );
    assert_eq!(
        inherited(three.clone().rolled_back(0).jsonl()),
        inherited(three.jsonl())
    );
}

/// What a compaction replaced cannot come back.
#[test]
fn going_back_further_than_a_compaction_ends_at_its_summary() {
    let rollout = Rollout::new().user("old").says("lost");
    let rollout = rollout.compacted("the summary", &["old"]).user("new");
    assert_eq!(
        inherited(rollout.rolled_back(9).user("anew").jsonl()),
        "Agent:\nthe summary\n\nUser:\nanew"
    );
}

#[test]
fn the_message_that_asks_contributes_its_text_and_no_pending_call() {
    let asking = with_call(Rollout::new().user("go"), "c1", "seen")
        .says("I delegate this.")
        .calls("ask", "asyncagents_task", &json!({}));
    let expected = "User:\ngo\n\nAgent:\n[Tool: shell] {\"command\":\"ls\"}\n[Tool result]\nseen\n\n\
                    Agent:\nI delegate this.";
    assert_eq!(inherited(asking.jsonl()), expected);
    assert_eq!(asked_in(&asking.jsonl(), "ask"), expected);
    let later = asking.calls("c2", "shell", &json!({})).answered();
    let later = later
        .result("c2", "first")
        .result("ask", "launched")
        .says("and on");
    let later = later.user("more").compacted("summary", &[]).says("more");
    assert_eq!(
        asked_in(&later.jsonl(), "ask"),
        expected,
        "also when it is read after the answer came"
    );
}

#[test]
fn a_thread_of_a_sub_agent_is_read_as_any_other() {
    let rollout = Rollout::new().line(
        "session_meta",
        json!({"parent_thread_id": "x", "source": {}}),
    );
    assert_eq!(
        inherited(rollout.user("search").says("found").jsonl()),
        "User:\nsearch\n\nAgent:\nfound"
    );
}

#[test]
fn what_a_hook_says_at_the_end_of_a_turn_is_inherited_without_its_tag() {
    let said = "<hook_prompt hook_run_id=\"stop:0\">NOTICE: 3 findings</hook_prompt>";
    let rollout = Rollout::new()
        .user("go")
        .says("done")
        .item(message("user", said, "hook"));
    assert_eq!(
        inherited(rollout.jsonl()),
        "User:\ngo\n\nAgent:\ndone\n\nUser:\nNOTICE: 3 findings"
    );
}

#[test]
fn a_last_line_that_is_half_written_is_not_there_yet() {
    let rollout = Rollout::new().user("go").says("done 漢字");
    let file = rollout.jsonl();
    let last = rollout.lines().last().expect("a line").len() + 1;
    for end in file.len() - last..file.len() - 1 {
        assert_eq!(
            inherited(&file.as_bytes()[..end]),
            "User:\ngo",
            "cut at {end}"
        );
        assert_eq!(skipped(&file.as_bytes()[..end]), 0);
    }
}

#[rstest]
#[case::no_json(b"{\"type\": \"response_item\", oops")]
#[case::a_list(b"[\"response_item\", {}]")]
#[case::no_text(b"{\"type\": \"\xff\xfe\"}")]
#[case::message_without_content(
    b"{\"type\":\"response_item\",\"payload\":{\"type\":\"message\",\"role\":\"user\"}}"
)]
#[case::item_without_type(b"{\"type\":\"response_item\",\"payload\":{\"role\":\"user\"}}")]
#[case::result_of_nothing(b"{\"type\":\"response_item\",\"payload\":{\"type\":\"function_call_output\",\"output\":\"x\"}}")]
fn a_broken_line_is_skipped_and_counted(#[case] broken: &[u8]) {
    let rollout = Rollout::new().user("first");
    let mut file = rollout.jsonl().into_bytes();
    file.extend_from_slice(broken);
    file.push(b'\n');
    file.extend(Rollout::new().user("second").jsonl().into_bytes());
    assert_eq!(inherited(&file), "User:\nfirst\n\nUser:\nsecond");
    assert_eq!(skipped(&file), 1);
}

#[test]
fn records_and_items_that_are_not_known_are_passed_over_and_not_counted() {
    let rollout = Rollout::new()
        .user("go")
        .line("hologram", json!([1]))
        .item(json!({"type": "ghost_snapshot", "ghost_commit": {}}))
        .item(json!({"type": "web_search_call", "action": {"query": "x"}}))
        .event(json!({"type": "token_count", "info": null}))
        .says("done");
    assert_eq!(inherited(rollout.jsonl()), "User:\ngo\n\nAgent:\ndone");
    assert_eq!(skipped(rollout.jsonl()), 0);
}

#[test]
fn what_is_no_rollout_is_refused_in_one_line() {
    let refused: Vec<String> = [
        "",
        "hello\nworld\n",
        "{\"type\":\"user\",\"uuid\":\"a\",\"message\":{\"content\":\"x\"}}\n",
        "[{\"info\": {}, \"parts\": []}]",
    ]
    .into_iter()
    .map(|input| refusal(Format::Codex, input))
    .collect();
    insta::assert_snapshot!(refused.join("\n"));
}
