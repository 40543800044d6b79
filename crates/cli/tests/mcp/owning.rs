//! Whose a task is.

use asyncagents_scripted_model::{Reply, Script, When};
use serde_json::json;

use crate::client::{Home, STATELESS, answer};

fn says_done() -> Home {
    Home::new(Script::new().rule(When::always(), Reply::text("Done.")))
}

#[test]
fn the_first_answer_says_once_that_tasks_belong_to_the_connection() {
    let home = says_done();
    let mut client = home.client();
    let first = client.done("list", json!({}));
    insta::assert_snapshot!(first.text);
    let second = client.done("list", json!({}));
    assert!(!second.text.contains("--session"), "{}", second.text);
}

#[test]
fn a_named_session_keeps_its_tasks_over_connections() {
    let home = says_done();
    let mut before = home.client_of("2025-11-25", &["--session", "editor"]);
    let launched = before.launch("Look around", "Look around");
    assert!(!launched.text.contains("--session"), "{}", launched.text);
    let task = launched.task();
    before.done("output", json!({"task_id": task, "block": true}));
    assert!(before.close().success());
    let mut after = home.client_of(STATELESS, &["--session", "editor"]);
    let list = after.done("list", json!({}));
    assert!(list.text.contains("Look around"), "{}", list.text);
    let output = after.done("output", json!({"task_id": task}));
    assert!(output.text.contains("Done."), "{}", output.text);
}

#[test]
fn an_end_that_came_between_connections_is_told_to_the_next_of_the_session() {
    let home = says_done();
    let mut before = home.client_of("2025-11-25", &["--session", "editor"]);
    before.launch("Look around", "Look around");
    assert!(before.close().success());
    let mut after = home.client_of("2025-11-25", &["--session", "editor"]);
    let told = after.call_until("list", &json!({}), "asyncagents notice");
    assert!(told.contains("\"Look around\" finished"), "{told}");
}

#[test]
fn clients_do_not_see_or_stop_each_others_tasks() {
    let home = says_done();
    let (mut one, mut other) = (home.client(), home.client());
    let task = one.launch("Secret work", "Secret work").task();
    one.done("output", json!({"task_id": task, "block": true}));
    let list = other.done("list", json!({}));
    assert!(
        list.text.contains("No background tasks found"),
        "{}",
        list.text
    );
    for tool in ["output", "cancel"] {
        let refused = other.call(tool, json!({"task_id": task}));
        assert!(refused.is_error, "{tool}: {}", refused.text);
        assert!(!refused.text.contains("Secret work"), "{}", refused.text);
        assert!(!refused.text.contains("Done."), "{}", refused.text);
    }
}

#[test]
fn a_client_cannot_name_itself_a_session_of_another_agent() {
    let home = says_done();
    let mut client = home.client();
    // What a hook of Claude Code would say; nobody has proved it here.
    let arguments = json!({
        "description": "Pretend", "prompt": "Pretend", "agent": "general",
        "asyncagents_caller": {"session": "0b1c2d3e-0000-4000-8000-000000000000"},
    });
    let launched = client.done("task", arguments);
    assert!(launched.text.contains("belong to this connection"));
}

/// Codex says by the ID of a thread who calls. A session of another kind has another name.
#[test]
fn a_thread_is_no_name_for_another_clients_session() {
    let home = says_done();
    let mut editor = home.client_of("2025-11-25", &["--session", "editor"]);
    editor.launch("Look around", "Look around");
    let mut other = home.client();
    for thread in ["mcp/editor", "", "../x"] {
        let call = json!({"name": "list", "arguments": {}, "_meta": {"threadId": thread}});
        let result = other.ask("tools/call", call);
        let answer = answer(&result);
        assert!(answer.is_error, "{}", answer.text);
        assert!(answer.text.contains("no ID"), "{}", answer.text);
    }
}
