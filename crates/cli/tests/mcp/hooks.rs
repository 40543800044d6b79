//! What agents run as hooks: whatever goes wrong there, it decides nothing.

use std::{
    fs,
    io::Write,
    process::{Command, Output, Stdio},
};

use asyncagents_scripted_model::{Reply, Script, When};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client::{Client, Home};

const SESSION: &str = "5c1b7bd2-5e3c-4d6f-a4f6-2f7a6f5f6a01";

const EVERY_HOOK: [&[&str]; 3] = [
    &["notices", "wait", "--host", "claude-code"],
    &["notices", "add", "--host", "claude-code"],
    &["hook", "pre-tool-use", "--host", "claude-code"],
];

/// A home and a project.
fn home() -> TempDir {
    let home = tempfile::tempdir().expect("a folder");
    fs::create_dir(home.path().join("project")).expect("made");
    home
}

fn hook(home: &TempDir, args: &[&str], input: &[u8]) -> Output {
    let mut hook = Command::new(env!("CARGO_BIN_EXE_asyncagents"));
    let hook = hook.env_clear().env("HOME", home.path()).args(args);
    given(hook.current_dir(home.path().join("project")), input)
}

fn given(hook: &mut Command, input: &[u8]) -> Output {
    let mut hook = hook
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    // It may end before it has read all.
    let _ = hook.stdin.take().expect("a pipe").write_all(input);
    hook.wait_with_output().expect("ends")
}

/// In a child they would speak for a session that is nobody's, and approve calls.
#[test]
fn in_a_child_hooks_do_nothing() {
    let home = home();
    for args in EVERY_HOOK {
        let mut hook = Command::new(env!("CARGO_BIN_EXE_asyncagents"));
        let hook = hook.env_clear().env("HOME", home.path()).args(args);
        let hook = hook.env("ASYNCAGENTS_CHILD", "1");
        let input = before("mcp__asyncagents__task", Some("user"));
        let done = given(hook.current_dir(home.path().join("project")), &input);
        assert_eq!(done.status.code(), Some(0), "{args:?}: {done:?}");
        assert!(done.stdout.is_empty(), "{args:?}: {done:?}");
    }
}

/// What Claude Code gives a hook before a tool.
fn before(tool: &str, server: Option<&str>) -> Vec<u8> {
    let mut input = json!({
        "session_id": SESSION,
        "hook_event_name": "PreToolUse",
        "tool_name": tool,
        "tool_input": {"prompt": "Count them"},
    });
    if let Some(source) = server {
        input["mcp_server"] = json!({"name": "asyncagents", "source": source});
    }
    input.to_string().into_bytes()
}

/// Claude Code refuses a prompt or a call, and lets no turn end, if a hook exits with 2.
#[test]
fn a_hook_that_fails_keeps_nobody_from_working() {
    let home = home();
    let database = home.path().join(".local/share/asyncagents/asyncagents.db");
    fs::create_dir_all(database.parent().expect("a folder")).expect("made");
    fs::write(&database, "this is no database, and longer than nothing").expect("written");
    let not_an_id = br#"{"session_id": "../x", "hook_event_name": "Stop", "agent_id": ".."}"#;
    for args in EVERY_HOOK {
        for input in [&b"no JSON"[..], not_an_id, &before("Bash", None)] {
            let output = hook(&home, args, input);
            assert_ne!(output.status.code(), Some(2), "{args:?}: {output:?}");
            assert!(output.stdout.is_empty(), "{args:?}: {output:?}");
        }
        // A plugin that is newer than the program.
        let newer = [args, &["--of-a-later-version"]].concat();
        let output = hook(&home, &newer, &before("Bash", None));
        assert_eq!(output.status.code(), Some(1), "{output:?}");
    }
}

#[test]
fn a_projects_file_does_not_stop_hooks() {
    let home = home();
    for text in ["db = \"theirs.db\"", "this is [no TOML"] {
        fs::write(home.path().join("project/asyncagents.toml"), text).expect("written");
        for args in EVERY_HOOK {
            let output = hook(&home, args, &before("Bash", None));
            assert!(output.status.success(), "{text}: {output:?}");
            assert!(output.stderr.is_empty(), "{text}: {output:?}");
        }
    }
}

#[test]
fn only_tools_of_a_server_that_the_user_has_named_are_approved() {
    let home = home();
    let decision = |tool: &str, server: Option<&str>| {
        let output = hook(&home, EVERY_HOOK[2], &before(tool, server));
        assert!(output.status.success(), "{output:?}");
        let said: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        said.pointer("/hookSpecificOutput/permissionDecision")
            .cloned()
            .unwrap_or_default()
    };
    let (ours, in_plugin) = (
        "mcp__asyncagents__task",
        "mcp__plugin_asyncagents_asyncagents__task",
    );
    assert_eq!(decision(in_plugin, Some("plugin")), "allow");
    for source in ["user", "local", "dynamic"] {
        assert_eq!(decision(ours, Some(source)), "allow", "{source}");
    }
    // Its author chooses what a project's server is called.
    for tool in [ours, in_plugin, "mcp__asyncagents__upload"] {
        for server in [Some("project"), Some("something new"), None] {
            assert_eq!(decision(tool, server), Value::Null, "{tool} of {server:?}");
        }
    }
    let answer = "mcp__plugin_asyncagents_asyncagents__answer";
    assert_eq!(decision(answer, Some("plugin")), Value::Null);
}

/// `claude -p --no-session-persistence` writes no transcript in which a notice could be found.
#[test]
fn a_run_without_a_transcript_is_told_once_and_ends() {
    let home = Home::new(Script::new().rule(When::always(), Reply::text("Nine of them.")));
    let mut server = home.command(&["mcp", "--host", "claude-code"]);
    server.env("CLAUDE_CODE_SESSION_ID", SESSION);
    let mut client = Client::start(server, "2025-11-25");
    client.connect();
    let task = json!({
        "name": "task",
        "arguments": {"description": "Count", "prompt": "Count them", "agent": "general"},
        "_meta": {"claudecode/toolUseId": "toolu_01"},
    });
    client.ask("tools/call", task);
    let stop = || {
        let mut hook = home.command(EVERY_HOOK[0]);
        let hook = hook.env("CLAUDE_CODE_SESSION_ATTENDED", "0");
        let input = json!({"session_id": SESSION, "hook_event_name": "Stop"});
        given(hook, input.to_string().as_bytes())
    };
    let told = stop();
    let text = String::from_utf8_lossy(&told.stderr);
    assert_eq!(told.status.code(), Some(2), "{text}");
    assert!(text.contains("Nine of them."), "{text}");
    assert_eq!(stop().status.code(), Some(0));
}
