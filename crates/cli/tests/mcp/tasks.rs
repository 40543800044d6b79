//! A task from its launch to its end, by the tools.

use asyncagents_scripted_model::{Gate, Reply, Script, When};
use rstest::rstest;
use serde_json::json;

use crate::client::{Home, STATELESS};

#[rstest]
#[case::older("2025-06-18")]
#[case::stateless(STATELESS)]
fn a_task_ends_and_the_next_answer_tells_of_it(#[case] version: &str) {
    let gate = Gate::closed();
    let script = Script::new().rule(
        When::always(),
        Reply::text("Nine tests, all green.").behind(&gate),
    );
    let home = Home::new(script);
    let mut client = home.client_of(version, &[]);
    let launched = client.launch("Run the tests", "Run all tests");
    insta::assert_snapshot!("launched", home.plain(&launched.text));
    home.wait_for(|requests| requests.len() == 1);
    let running = client.done("list", json!({}));
    assert!(running.text.contains("running"), "{}", running.text);
    gate.open();
    let told = client.call_until("list", &json!({}), "asyncagents notice");
    // It may have ended after the list was made, and before the notice was added to it.
    let (_, notice) = told.split_once('✓').expect("a notice");
    insta::assert_snapshot!("told", home.plain(notice));
    let again = client.done("list", json!({}));
    assert!(!again.text.contains("notice"), "told twice: {}", again.text);
    let output = client.done("output", json!({"task_id": launched.task()}));
    assert!(output.text.contains("Nine tests, all green."));
}

#[test]
fn a_blocked_output_returns_the_result_and_nothing_more_is_told() {
    let script = Script::new().rule(When::always(), Reply::text("Done it."));
    let home = Home::new(script);
    let mut client = home.client();
    let task = client.launch("Work", "Work").task();
    let output = client.done("output", json!({"task_id": task, "block": true}));
    assert!(output.text.contains("Done it."), "{}", output.text);
    let list = client.done("list", json!({}));
    assert!(!list.text.contains("notice"), "{}", list.text);
}

#[test]
fn a_running_task_is_told_something_and_a_finished_one_is_resumed() {
    let gate = Gate::closed();
    let script = Script::new()
        .rule(
            When::turn(0),
            Reply::call("bash", json!({"command": "true"})).behind(&gate),
        )
        .rule(
            When::always().last("And the tests?"),
            Reply::text("The tests too."),
        )
        .rule(
            When::always().contains("leave the docs alone"),
            Reply::text("The docs are left alone."),
        )
        // It may be at its next step before it is told.
        .rule(
            When::always(),
            Reply::call("bash", json!({"command": "true"})),
        );
    let home = Home::new(script);
    let mut client = home.client();
    let task = client.launch("Tidy up", "Tidy up").task();
    home.wait_for(|requests| requests.len() == 1);
    let message = json!({"task_id": task, "text": "Please leave the docs alone"});
    client.done("message", message);
    gate.open();
    let ended = client.done("output", json!({"task_id": task, "block": true}));
    assert!(ended.text.contains("The docs are left"), "{}", ended.text);
    let more =
        json!({"description": "", "prompt": "And the tests?", "agent": "general", "resume": task});
    client.done("task", more);
    let ended = client.done("output", json!({"task_id": task, "block": true}));
    assert!(ended.text.contains("The tests too."), "{}", ended.text);
}

#[test]
fn a_cancelled_task_is_told_and_a_cleared_list_is_empty() {
    let script = Script::new().rule(When::always(), Reply::text("never").behind(&Gate::closed()));
    let home = Home::new(script);
    let mut client = home.client();
    let task = client.launch("First", "First").task();
    client.launch("Second", "Second");
    home.wait_for(|requests| requests.len() == 2);
    let cancelled = client.done("cancel", json!({"task_id": task}));
    assert!(cancelled.text.contains("Cancelled"), "{}", cancelled.text);
    let list = client.done("list", json!({"status": "cancelled"}));
    assert!(list.text.contains("First") && !list.text.contains("Second"));
    client.done("clear", json!({}));
    let list = client.done("list", json!({}));
    assert!(
        list.text.contains("No background tasks found"),
        "{}",
        list.text
    );
}

#[test]
fn a_question_of_a_task_is_answered() {
    let script = Script::new()
        .rule(
            When::turn(0),
            Reply::call("bash", json!({"command": "echo asked > asked"})),
        )
        .rule(When::turn(1), Reply::text("I may not, so I did not."));
    let home = Home::new(script);
    let mut command = home.command(&["mcp"]);
    command.env("ASYNCAGENTS_PERMISSIONS_MODE", "ask");
    let mut client = crate::client::Client::start(command, "2025-11-25");
    client.connect();
    let task = client.launch("Write", "Write a file").task();
    let about = json!({"task_id": task});
    let asked = client.call_until("output", &about, "echo asked");
    assert!(asked.contains("echo asked > asked"), "{asked}");
    let rejects = json!({"task_id": task, "decision": "reject", "text": "Not now"});
    client.done("answer", rejects);
    let ended = client.done("output", json!({"task_id": task, "block": true}));
    assert!(ended.text.contains("I may not"), "{}", ended.text);
    assert!(!home.path("asked").exists());
}

#[test]
fn a_skill_is_used() {
    let home = Home::new(Script::new());
    home.write(
        ".claude/skills/release/SKILL.md",
        "---\nname: release\ndescription: Write release notes\n---\nWrite them for $ARGUMENTS.",
    );
    let mut client = home.client();
    let skill = client.done("skill", json!({"name": "release", "arguments": "1.2"}));
    assert!(skill.text.contains("Write them for 1.2."), "{}", skill.text);
}
