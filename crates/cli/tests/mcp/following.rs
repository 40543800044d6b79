//! Clients that follow tasks of the protocol themselves: they are given handles.

use asyncagents_scripted_model::{Gate, Reply, Script, When};
use rstest::rstest;
use serde_json::{Value, json};

use crate::client::{Client, Home, STATELESS, until};

const TASKS: &str = "io.modelcontextprotocol/tasks";

fn launch(client: &mut Client) -> Value {
    let arguments = json!({"description": "Count", "prompt": "Count them", "agent": "general"});
    client.ask(
        "tools/call",
        json!({"name": "task", "arguments": arguments}),
    )
}

fn get(client: &mut Client, handle: &Value) -> Value {
    client.ask("tasks/get", json!({"taskId": handle["taskId"]}))
}

/// Asks until the task is in this state.
fn get_until(client: &mut Client, handle: &Value, status: &str) -> Value {
    let mut task = Value::Null;
    until(status, || {
        task = get(client, handle);
        task["status"] == json!(status)
    });
    task
}

#[rstest]
#[case::older("2025-11-25")]
#[case::stateless(STATELESS)]
fn a_launch_returns_a_handle_that_has_the_result_in_the_end(#[case] version: &str) {
    let gate = Gate::closed();
    let reply = Reply::text("Nine of them.").behind(&gate);
    let home = Home::new(Script::new().rule(When::always(), reply));
    let mut client = home.client_with(version, &[], &[TASKS]);
    let handle = launch(&mut client);
    assert_eq!(handle["resultType"], json!("task"), "{handle}");
    assert_eq!(handle["status"], json!("working"));
    assert_eq!(handle["ttlMs"], Value::Null);
    // A model that does not wait is told the same as elsewhere.
    let at_once = &handle["_meta"]["io.modelcontextprotocol/model-immediate-response"];
    let at_once = at_once.as_str().expect("words");
    assert!(at_once.contains("is queued"), "{at_once}");
    let working = get(&mut client, &handle);
    assert_eq!(working["status"], json!("working"), "{working}");
    assert_eq!(working.get("result"), None);
    gate.open();
    let task = get_until(&mut client, &handle, "completed");
    let text = task["result"]["content"][0]["text"].as_str();
    let text = text.expect("a result");
    assert!(text.contains("Nine of them."), "{text}");
    assert_eq!(task["result"]["isError"], json!(false));
    // It has read the result, so it is not told of it.
    let list = client.done("list", json!({}));
    assert!(!list.text.contains("notice"), "{}", list.text);
}

#[test]
fn a_client_that_does_not_say_so_is_given_no_handle() {
    let home = Home::new(Script::new().rule(When::always(), Reply::text("Done.")));
    let mut client = home.client_of(STATELESS, &[]);
    let launched = client.launch("Count", "Count them");
    let refused = client.request("tasks/get", json!({"taskId": launched.task()}));
    assert_eq!(refused["error"]["code"], json!(-32021), "{refused}");
}

#[test]
fn the_next_process_knows_the_handle_of_a_named_session() {
    let home = Home::new(Script::new().rule(When::always(), Reply::text("Nine of them.")));
    let named = ["--session", "editor"];
    let mut client = home.client_with(STATELESS, &named, &[TASKS]);
    let handle = launch(&mut client);
    client.close();
    let mut next = home.client_with(STATELESS, &named, &[TASKS]);
    get_until(&mut next, &handle, "completed");
    // And nobody else does.
    let mut other = home.client_with(STATELESS, &[], &[TASKS]);
    for method in ["tasks/get", "tasks/cancel", "tasks/update"] {
        let asked = json!({"taskId": handle["taskId"], "inputResponses": {}});
        let refused = other.request(method, asked);
        assert_eq!(
            refused["error"]["code"],
            json!(-32602),
            "{method}: {refused}"
        );
    }
}

#[test]
fn a_task_is_cancelled_by_its_handle_and_one_that_has_ended_stays_as_it_is() {
    let never = Gate::closed();
    let script = Script::new()
        .rule(
            When::always().contains("Count them"),
            Reply::text("Never.").behind(&never),
        )
        .rule(When::always(), Reply::text("Done."));
    let home = Home::new(script);
    let mut client = home.client_with(STATELESS, &[], &[TASKS]);
    let handle = launch(&mut client);
    home.wait_for(|requests| requests.len() == 1);
    let asked = json!({"taskId": handle["taskId"]});
    let done = client.ask("tasks/cancel", asked.clone());
    assert_eq!(done["resultType"], json!("complete"), "{done}");
    let task = get_until(&mut client, &handle, "cancelled");
    assert_eq!(task.get("result"), None);
    client.ask("tasks/cancel", asked);
    assert_eq!(get(&mut client, &handle)["status"], json!("cancelled"));
}

#[test]
fn a_task_that_fails_has_a_result_that_says_why() {
    let reply = Reply::status(400).message("the model is tired");
    let home = Home::new(Script::new().rule(When::always(), reply));
    let mut client = home.client_with(STATELESS, &[], &[TASKS]);
    let handle = launch(&mut client);
    let task = get_until(&mut client, &handle, "completed");
    assert_eq!(task["result"]["isError"], json!(true), "{task}");
    let text = task["result"]["content"][0]["text"].as_str();
    let text = text.expect("a reason");
    assert!(text.contains("the model is tired"), "{text}");
}

#[test]
fn a_skill_that_would_be_waited_for_is_followed_too() {
    let home = Home::new(Script::new().rule(When::always(), Reply::text("All is well.")));
    home.write(
        ".claude/skills/audit/SKILL.md",
        "---\nname: audit\ndescription: Audits.\ncontext: fork\nbackground: false\n---\nAudit it.\n",
    );
    let mut client = home.client_with(STATELESS, &[], &[TASKS]);
    let call = json!({"name": "skill", "arguments": {"name": "audit", "background": false}});
    let handle = client.ask("tools/call", call);
    assert_eq!(handle["resultType"], json!("task"), "{handle}");
    let task = get_until(&mut client, &handle, "completed");
    let text = task["result"]["content"][0]["text"].to_string();
    assert!(text.contains("All is well."), "{text}");
}
