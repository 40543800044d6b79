//! What is left when a client has gone.

use asyncagents_scripted_model::{Gate, Reply, Script, When};
use rstest::rstest;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::{
    fs,
    time::{Duration, Instant},
};

use crate::client::{Client, Home, answer, until};

#[test]
fn the_process_ends_with_its_input_and_the_worker_soon_after() {
    let home = Home::new(Script::new().rule(When::always(), Reply::text("Done.")));
    let mut client = home.client();
    let task = client.launch("Work", "Work").task();
    client.done("output", json!({"task_id": task, "block": true}));
    assert!(home.processes().iter().any(|line| line.contains("worker")));
    assert!(client.close().success());
    until("nothing runs", || home.processes().is_empty());
}

#[test]
fn a_client_that_goes_while_it_waits_keeps_nothing() {
    let gate = Gate::closed();
    let home = Home::new(Script::new().rule(When::always(), Reply::text("Done.").behind(&gate)));
    let mut client = home.client();
    let task = client.launch("Work", "Work").task();
    client.begin(
        "tools/call",
        json!({"name": "output", "arguments": {"task_id": task, "block": true, "timeout": 600}}),
    );
    client.done("list", json!({}));
    let begun = Instant::now();
    assert!(client.close().success());
    assert!(
        begun.elapsed() < Duration::from_secs(4),
        "{:?}",
        begun.elapsed()
    );
    // The task is not the connection's to end.
    gate.open();
    until("nothing runs", || home.processes().is_empty());
}

#[rstest]
#[case::at_once("")]
#[case::after_a_line_that_is_no_json("hello\n")]
fn a_client_that_never_says_anything_is_no_failure(#[case] said: &str) {
    let home = Home::new(Script::new());
    let mut client = Client::start(home.command(&["mcp"]), "none");
    if !said.is_empty() {
        client.send_line(said);
    }
    assert!(client.close().success());
}

/// A session that only waits starts no other command that could start a worker.
#[test]
fn a_worker_that_was_killed_is_replaced_while_a_client_waits() {
    let gate = Gate::closed();
    let home = Home::new(Script::new().rule(When::always(), Reply::text("Done.").behind(&gate)));
    let mut client = home.client();
    let task = client.launch("Work", "Work").task();
    home.wait_for(|requests| !requests.is_empty());
    let block = json!({"name": "output", "arguments": {"task_id": task, "block": true}});
    let waiting = client.begin("tools/call", block);
    kill_worker(&home);
    gate.open();
    let answered = answer(&client.response(waiting)["result"]);
    assert!(answered.text.contains("Done."), "{}", answered.text);
}

fn kill_worker(home: &Home) {
    let lock = home.path("../home/.local/share/asyncagents/asyncagents.db.worker.lock");
    let signed = fs::read_to_string(lock).expect("a lock");
    let process = signed.split(' ').next().and_then(|text| text.parse().ok());
    let process = Pid::from_raw(process.expect("a process")).expect("a process");
    kill_process(process, Signal::KILL).expect("killed");
}
