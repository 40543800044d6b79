//! A worker that was started without the key that a task needs: another program's server started it.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    process::{Child, Command, Stdio},
};

use asyncagents_scripted_model::{Reply, Script, When};
use serde_json::json;

use crate::client::{Client, Home, until};

/// The key's variable, and settings that want it.
const KEY: (&str, &str) = ("STORY_KEY", "a-key");
const WANTS_KEY: [&str; 2] = ["-c", "providers.test.key_env=STORY_KEY"];

/// A process that is ended with its test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn home() -> Home {
    Home::new(Script::new().rule(When::always(), Reply::text("Nine of them.")))
}

fn command(home: &Home, args: &[&str], key: Option<&str>) -> Command {
    let mut command = home.command(&[&WANTS_KEY, args].concat());
    command.env("ASYNCAGENTS_WORKER_IDLE", "60s");
    if let Some(key) = key {
        command.env(KEY.0, key);
    }
    command
}

/// A worker that has taken its lock.
fn worker(home: &Home, key: Option<&str>) -> Process {
    let mut command = command(home, &["worker"], key);
    let silent = command.stdout(Stdio::null()).stderr(Stdio::null());
    let worker = Process(silent.spawn().expect("starts"));
    let signature = format!("{} ", worker.0.id());
    until("the worker has signed its lock", || {
        let locks = [".worker.lock", ".worker2.lock"];
        let locks = locks.map(|name| {
            let lock = format!("../home/.local/share/asyncagents/asyncagents.db{name}");
            fs::read_to_string(home.path(&lock)).unwrap_or_default()
        });
        locks.iter().any(|lock| lock.starts_with(&signature))
    });
    worker
}

fn client(home: &Home, args: &[&str]) -> Client {
    let args = [args, &["mcp"]].concat();
    let mut client = Client::start(command(home, &args, Some(KEY.1)), "2025-11-25");
    client.connect();
    client
}

#[test]
fn a_task_whose_key_the_worker_lacks_stays_queued_and_says_why() {
    let home = home();
    let _without = worker(&home, None);
    let mut client = client(&home, &["-c", "worker.autostart=false"]);
    let task = client.launch("Count", "Count them").task();
    let list = client.call_until("list", &json!({}), "queued (held)");
    assert!(list.contains("Count"), "{list}");
    let output = client.done("output", json!({"task_id": task})).text;
    insta::assert_snapshot!("held", home.plain(&output));
    // Others are not held up by it, and a worker with the key takes it.
    let _with = worker(&home, Some(KEY.1));
    let output = client.done("output", json!({"task_id": task, "block": true}));
    assert!(output.text.contains("Nine of them."), "{}", output.text);
}

#[test]
fn a_server_that_has_the_key_starts_a_worker_beside_one_that_lacks_it() {
    let home = home();
    let _without = worker(&home, None);
    let mut client = client(&home, &[]);
    let task = client.launch("Count", "Count them").task();
    let output = client.done("output", json!({"task_id": task, "block": true}));
    assert!(output.text.contains("Nine of them."), "{}", output.text);
}

/// It is of another session, and starts nothing: only a process that stays can see to that.
#[test]
fn a_held_task_goes_on_when_its_worker_has_ended_and_a_server_with_the_key_is_there() {
    let home = home();
    let without = worker(&home, None);
    let mut client = client(&home, &["-c", "worker.autostart=false"]);
    let task = client.launch("Count", "Count them").task();
    client.call_until("list", &json!({}), "queued (held)");
    let with_key = command(&home, &["mcp"], Some(KEY.1));
    let mut other = Client::start(with_key, "2025-11-25");
    other.connect();
    drop(without);
    let output = client.done("output", json!({"task_id": task, "block": true}));
    assert!(output.text.contains("Nine of them."), "{}", output.text);
}

/// Who has a subscription to another agent and no key launches it all the same.
#[test]
fn another_agent_needs_no_key_of_ours() {
    let home = home();
    home.write("../home/agent", "#!/bin/sh\nexec sleep 1000\n");
    let agent = home.path("../home/agent");
    fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).expect("set");
    let said = format!("hosts.mine.command={}", agent.display());
    let args = ["-c", "worker.autostart=false", "-c", &said, "mcp"];
    let mut client = Client::start(command(&home, &args, None), "2025-11-25");
    client.connect();
    let call = |host: &str| json!({"description": "Count", "prompt": "Count them", "agent": "general", "host": host});
    let launched = client.done("task", call("mine")).text;
    assert!(launched.contains("queued"), "{launched}");
    // One whose program is not there is refused at once.
    let refused = client.call("task", call("goose")).text;
    assert!(
        refused.contains("there is no `goose` on the PATH"),
        "{refused}"
    );
    let own = json!({"description": "Count", "prompt": "Count them", "agent": "general"});
    let refused = client.call("task", own).text;
    assert!(refused.contains("STORY_KEY"), "{refused}");
    let list = client.done("list", json!({})).text;
    assert_eq!(list.matches("Count").count(), 1, "{list}");
}
