//! Clients that follow tasks of the protocol themselves: they are given a handle where others wait.

use asyncagents_scripted_model::{Gate, Reply, Script, When};
use rstest::rstest;
use serde_json::{Value, json};

use crate::client::{Client, Home, STATELESS, until};

const TASKS: &str = "io.modelcontextprotocol/tasks";

/// A task that ends when the gate opens.
fn home(gate: &Gate) -> Home {
    let reply = Reply::text("Nine of them.").behind(gate);
    Home::new(Script::new().rule(When::always(), reply))
}

/// Waits for a task, at most so many seconds.
fn wait(client: &mut Client, task: &str, timeout: u64) -> Value {
    let arguments = json!({"task_id": task, "block": true, "timeout": timeout});
    client.ask(
        "tools/call",
        json!({"name": "output", "arguments": arguments}),
    )
}

fn get(client: &mut Client, handle: &Value) -> Value {
    client.ask("tasks/get", json!({"taskId": handle["taskId"]}))
}

/// Asks until it is in this state.
fn get_until(client: &mut Client, handle: &Value, status: &str) -> Value {
    let mut task = Value::Null;
    until(status, || {
        task = get(client, handle);
        task["status"] == json!(status)
    });
    task
}

fn text(task: &Value) -> &str {
    let text = task["result"]["content"][0]["text"].as_str();
    text.expect("a text")
}

/// Some clients follow a handle until there is a result, so a launch must not be one.
#[test]
fn a_launch_returns_at_once_and_a_wait_is_followed_by_its_handle() {
    let gate = Gate::closed();
    let home = home(&gate);
    let mut client = home.client_with(STATELESS, &[], &[TASKS]);
    let task = client.launch("Count", "Count them").task();
    let handle = wait(&mut client, &task, 600);
    assert_eq!(handle["resultType"], json!("task"), "{handle}");
    assert_eq!(handle["status"], json!("working"));
    assert_eq!(handle["ttlMs"], Value::Null);
    let working = get(&mut client, &handle);
    assert_eq!(working["status"], json!("working"), "{working}");
    assert_eq!(working.get("result"), None);
    gate.open();
    let task = get_until(&mut client, &handle, "completed");
    assert!(text(&task).contains("Nine of them."), "{task}");
    assert_eq!(task["result"]["isError"], json!(false));
    // It has the result, so it is not told of it.
    let list = client.done("list", json!({}));
    assert!(!list.text.contains("notice"), "{}", list.text);
}

#[test]
fn what_has_ended_is_returned_without_a_handle() {
    let gate = Gate::closed();
    gate.open();
    let home = home(&gate);
    let mut client = home.client_with(STATELESS, &[], &[TASKS]);
    let task = client.launch("Count", "Count them").task();
    let mut answer = Value::Null;
    until("it has ended", || {
        answer = wait(&mut client, &task, 30);
        answer["resultType"] != json!("task")
    });
    let said = answer["content"][0]["text"].as_str().expect("a text");
    assert!(said.contains("Nine of them."), "{said}");
}

#[test]
fn a_wait_that_is_over_returns_how_far_the_task_has_come() {
    let gate = Gate::closed();
    let home = home(&gate);
    let mut client = home.client_with(STATELESS, &[], &[TASKS]);
    let task = client.launch("Count", "Count them").task();
    home.wait_for(|requests| requests.len() == 1);
    let handle = wait(&mut client, &task, 0);
    let task = get_until(&mut client, &handle, "completed");
    assert!(text(&task).contains("is running"), "{task}");
}

/// In older versions tasks were something else.
#[rstest]
#[case::that_does_not_say_so(STATELESS, &[])]
#[case::of_an_older_version("2025-11-25", &[TASKS])]
fn a_client_is_given_no_handle(#[case] version: &str, #[case] extensions: &[&str]) {
    let gate = Gate::closed();
    let home = home(&gate);
    let mut client = home.client_with(version, &[], extensions);
    let task = client.launch("Count", "Count them").task();
    let output = wait(&mut client, &task, 1);
    let said = output["content"][0]["text"].as_str().expect("a text");
    assert!(said.contains(&task), "{said}");
    let refused = client.request("tasks/get", json!({"taskId": task}));
    assert!(refused.get("error").is_some(), "{refused}");
}

#[test]
fn the_next_process_knows_the_handle_of_a_named_session_and_nobody_else_does() {
    let gate = Gate::closed();
    let home = home(&gate);
    let named = ["--session", "editor"];
    let mut client = home.client_with(STATELESS, &named, &[TASKS]);
    let task = client.launch("Count", "Count them").task();
    let handle = wait(&mut client, &task, 600);
    client.close();
    gate.open();
    let mut next = home.client_with(STATELESS, &named, &[TASKS]);
    let done = get_until(&mut next, &handle, "completed");
    assert!(text(&done).contains("Nine of them."), "{done}");
    let mut other = home.client_with(STATELESS, &[], &[TASKS]);
    for handle in [&handle["taskId"], &json!(task), &json!("x.wait.1.1")] {
        for method in ["tasks/get", "tasks/cancel", "tasks/update"] {
            let asked = json!({"taskId": handle, "inputResponses": {}});
            let refused = other.request(method, asked);
            assert_eq!(refused["error"]["code"], json!(-32602), "{refused}");
        }
    }
}

#[test]
fn a_wait_is_given_up_by_its_handle_and_the_task_goes_on() {
    let gate = Gate::closed();
    let home = home(&gate);
    let mut client = home.client_with(STATELESS, &[], &[TASKS]);
    let task = client.launch("Count", "Count them").task();
    let handle = wait(&mut client, &task, 600);
    let done = client.ask("tasks/cancel", json!({"taskId": handle["taskId"]}));
    assert_eq!(done["resultType"], json!("complete"), "{done}");
    assert_eq!(get(&mut client, &handle)["status"], json!("cancelled"));
    gate.open();
    // It did not get the result, so it is told.
    let told = client.call_until("list", &json!({}), "asyncagents notice");
    assert!(told.contains("Nine of them."), "{told}");
}
