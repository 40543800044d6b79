//! A client that waits.

use asyncagents_scripted_model::{Gate, Reply, Script, When};
use rstest::rstest;
use serde_json::json;

use crate::client::{Home, STATELESS, answer};

fn behind(gate: &Gate) -> Home {
    Home::new(Script::new().rule(When::always(), Reply::text("At last.").behind(gate)))
}

#[rstest]
#[case::older("2025-06-18")]
#[case::stateless(STATELESS)]
fn a_blocked_output_sends_progress_until_it_is_answered(#[case] version: &str) {
    let gate = Gate::closed();
    let home = behind(&gate);
    let mut client = home.client_of(version, &[]);
    let task = client.launch("Think", "Think").task();
    let waits = client.begin(
        "tools/call",
        json!({
            "name": "output",
            "arguments": {"task_id": task, "block": true, "timeout": 120},
            "_meta": {"progressToken": "wait-1"},
        }),
    );
    let progress = client.notification("notifications/progress");
    assert_eq!(progress["params"]["progressToken"], json!("wait-1"));
    let said = progress["params"]["message"].as_str().expect("a message");
    insta::assert_snapshot!("progress", home.plain(said));
    gate.open();
    let response = client.response(waits);
    let said = answer(&response["result"]);
    assert!(said.text.contains("At last."), "{}", said.text);
}

#[rstest]
#[case::older("2025-11-25")]
#[case::stateless(STATELESS)]
fn a_wait_that_is_cancelled_gets_no_answer_and_the_end_is_told_later(#[case] version: &str) {
    let gate = Gate::closed();
    let home = behind(&gate);
    let mut client = home.client_of(version, &[]);
    let task = client.launch("Think", "Think").task();
    let call =
        json!({"name": "output", "arguments": {"task_id": task, "block": true, "timeout": 600}});
    home.wait_for(|requests| requests.len() == 1);
    let waits = client.begin("tools/call", call);
    client.send(&json!({
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": {"requestId": waits, "reason": "the user pressed Esc"},
    }));
    // The task goes on.
    let list = client.done("list", json!({}));
    assert!(list.text.contains("running"), "{}", list.text);
    gate.open();
    let told = client.call_until("list", &json!({}), "asyncagents notice");
    assert!(told.contains("At last."), "{told}");
    let id = json!(waits);
    assert!(
        !client.answered().iter().any(|answer| answer["id"] == id),
        "a cancelled request is answered"
    );
}

#[test]
fn calls_are_answered_while_another_waits() {
    let gate = Gate::closed();
    let home = behind(&gate);
    let mut client = home.client();
    let task = client.launch("Think", "Think").task();
    let call =
        json!({"name": "output", "arguments": {"task_id": task, "block": true, "timeout": 600}});
    home.wait_for(|requests| requests.len() == 1);
    let waits = client.begin("tools/call", call);
    let list = client.done("list", json!({}));
    assert!(list.text.contains("running"), "{}", list.text);
    client.done("cancel", json!({"task_id": task}));
    let ended = client.response(waits);
    assert!(answer(&ended["result"]).text.contains("cancelled"));
}
