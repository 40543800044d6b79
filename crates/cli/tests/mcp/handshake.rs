//! What a client is told before it calls anything, in each era.

use std::process::Command;

use asyncagents_scripted_model::Script;
use rstest::rstest;
use serde_json::json;

use crate::client::{Client, Home, OLDER, STATELESS, pretty};

#[test]
fn every_older_version_is_initialized_and_kept() {
    let home = Home::new(Script::new());
    for version in OLDER {
        let mut client = Client::start(home.command(&["mcp"]), version);
        let said = client.connect();
        assert_eq!(said["protocolVersion"], json!(version));
        assert_eq!(said["serverInfo"]["name"], json!("asyncagents"));
        assert!(said["instructions"].is_string());
        let tools = client.ask("tools/list", json!({}));
        assert_eq!(tools["tools"].as_array().map(Vec::len), Some(8));
        assert!(tools.get("resultType").is_none(), "unknown to {version}");
    }
}

/// What a user has set up in an agent for their own sessions is not a second way to launch tasks for
/// that agent as a child, also where it hands no variables on.
#[test]
fn a_child_gets_no_tools_from_what_its_user_has_set_up() {
    let home = Home::new(Script::new());
    let mut told = home.command(&["mcp"]);
    told.env("ASYNCAGENTS_CHILD", "1");
    let mut kept_from = Command::new("sh");
    let untold = home.command(&["mcp"]);
    kept_from
        .args(["-c", "env -u ASYNCAGENTS_CHILD \"$@\"; exit $?", "sh"])
        .arg(untold.get_program())
        .args(untold.get_args())
        .env("ASYNCAGENTS_CHILD", "1");
    for command in [told, kept_from] {
        let mut client = Client::start(command, OLDER[3]);
        assert_eq!(client.connect()["serverInfo"]["name"], json!("asyncagents"));
        assert_eq!(client.ask("tools/list", json!({}))["tools"], json!([]));
    }
}

#[test]
fn a_version_that_nobody_knows_is_answered_with_one_that_is_known() {
    let home = Home::new(Script::new());
    let mut client = Client::start(home.command(&["mcp"]), "2031-01-01");
    assert_eq!(client.connect()["protocolVersion"], json!("2025-11-25"));
}

#[test]
fn a_client_without_a_handshake_discovers_what_there_is() {
    let home = Home::new(Script::new());
    let mut client = Client::start(home.command(&["mcp"]), STATELESS);
    let said = client.connect();
    let versions = said["supportedVersions"].as_array().expect("versions");
    for version in OLDER.iter().chain([&STATELESS]) {
        assert!(versions.contains(&json!(version)), "{version}: {said}");
    }
    insta::assert_snapshot!(pretty(&said["capabilities"]));
    let tools = client.ask("tools/list", json!({}));
    assert_eq!(tools["tools"].as_array().map(Vec::len), Some(8));
}

#[test]
fn after_discovering_a_client_may_still_initialize() {
    let home = Home::new(Script::new());
    let mut client = Client::start(home.command(&["mcp"]), STATELESS);
    client.connect();
    let hello = json!({
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "stories", "version": "1"},
    });
    let said = client.ask("initialize", hello);
    assert_eq!(said["protocolVersion"], json!("2025-06-18"));
}

#[rstest]
#[case::older("2025-11-25")]
#[case::stateless(STATELESS)]
fn the_tools_as_a_client_sees_them(#[case] version: &str) {
    let home = Home::new(Script::new());
    let mut client = home.client_of(version, &[]);
    let listed = client.ask("tools/list", json!({}));
    // The same in every era.
    insta::assert_snapshot!("tools", pretty(&listed["tools"]));
}

#[test]
fn the_instructions_as_a_model_reads_them() {
    let home = Home::new(Script::new());
    let mut client = Client::start(home.command(&["mcp"]), "2025-11-25");
    let said = client.connect();
    insta::assert_snapshot!(said["instructions"].as_str().expect("instructions"));
}

#[test]
fn skills_and_agents_of_the_folder_are_named_in_the_tools() {
    let home = Home::new(Script::new());
    home.write(
        ".claude/skills/release/SKILL.md",
        "---\nname: release\ndescription: Write release notes\n---\nWrite them.",
    );
    let mut client = home.client();
    let listed = client.ask("tools/list", json!({})).to_string();
    assert!(listed.contains("release: Write release notes"), "{listed}");
    assert!(listed.contains("- explore"), "{listed}");
}
