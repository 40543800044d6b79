//! Commands of many tasks, which take turns.

use std::fs;

use asyncagents_scripted_model::{Reply, Script, When};
use serde_json::json;

use crate::Home;

/// Every task runs this command, then says that it is done.
fn running(command: &str) -> Script {
    Script::new()
        .rule(
            When::turn(0),
            Reply::call("bash", json!({"command": command})),
        )
        .rule(When::always(), Reply::text("Done."))
}

/// Launches tasks that may run one command at a time.
fn launch(home: &Home, count: usize) -> Vec<String> {
    let launch = |n: usize| {
        let prompt = format!("Work {n}");
        let launched = home
            .command(&["task", &prompt])
            .env("ASYNCAGENTS_LIMITS_COMMANDS", "1")
            .output();
        let launched = launched.expect("runs");
        assert!(launched.status.success(), "{launched:?}");
        crate::text(&launched.stdout)
    };
    (0..count).map(launch).collect()
}

#[test]
fn tasks_do_not_run_more_commands_at_once_than_they_may() {
    let home = Home::new(running(
        "mkdir busy || touch overlapped; sleep 0.2; rmdir busy; echo x >> ran",
    ));
    let tasks = launch(&home, 5);
    for task in &tasks {
        let answer = home.ask(&["output", task, "--block", "--timeout", "60"]);
        assert!(answer.contains("Done."), "{answer}");
    }
    assert_eq!(home.read("ran").lines().count(), tasks.len());
    assert!(!home.path("overlapped").exists(), "two ran at once");
}

#[test]
fn a_command_that_waits_for_a_slot_is_shown_and_does_not_stall() {
    let home = Home::new(running("until [ -e go ]; do sleep 0.05; done"));
    let tasks = launch(&home, 2);
    home.until("a command is queued", || {
        home.ask(&["list"]).contains("running (command queued)")
    });
    fs::write(home.path("go"), "").expect("written");
    for task in &tasks {
        let answer = home.ask(&["output", task, "--block", "--timeout", "60"]);
        assert!(answer.contains("Done."), "{answer}");
    }
    assert!(!home.ask(&["list"]).contains("queued"));
}
