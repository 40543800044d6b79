//! The examples do what they say. `cargo test` builds them before this runs.
#![expect(clippy::expect_used, reason = "a test may panic; its helpers too")]

use std::{env, process::Command};

/// What an example prints.
fn printed(name: &str) -> String {
    let test = env::current_exe().expect("this program");
    let built = test.ancestors().nth(2).expect("target/debug");
    let example = built.join("examples").join(name);
    let run = Command::new(&example).output();
    let run = run.expect("`cargo test -p asyncagents-examples` builds the examples");
    let errors = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{name} fails: {errors}");
    String::from_utf8(run.stdout).expect("text")
}

fn shows(name: &str, lines: &[&str]) {
    let printed = printed(name);
    for line in lines {
        assert!(
            printed.contains(line),
            "{name} does not show {line}:\n{printed}"
        );
    }
}

#[test]
fn a_conversation_is_forked() {
    shows(
        "fork_a_conversation",
        &[
            "<inherited_context>",
            "Fix both, and have the nightly job written in the background meanwhile.",
            " of 20 messages, ",
        ],
    );
}

#[test]
fn a_task_is_launched_and_waited_for() {
    shows(
        "launch_and_wait",
        &[r#"completed: Some("The plants need water.")"#],
    );
}

#[test]
fn a_model_is_scripted() {
    shows(
        "script_a_model",
        &[r#"answer "Good morning, Ada!""#, "asked  2 times"],
    );
}
