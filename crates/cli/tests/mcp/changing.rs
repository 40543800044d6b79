//! A client is told when the skills or the agents change.

use asyncagents_scripted_model::Script;
use serde_json::{Value, json};

use crate::client::{Client, Home, STATELESS};

const SKILL: &str = "---\nname: release\ndescription: Write release notes\n---\nWrite them.";

fn names_the_skill(client: &mut Client) -> bool {
    let listed: Value = client.ask("tools/list", json!({}));
    listed.to_string().contains("Write release notes")
}

#[test]
fn a_new_skill_changes_the_lists_of_tools_and_prompts() {
    let home = Home::new(Script::new());
    let mut client = home.client();
    assert!(!names_the_skill(&mut client));
    client.ask("prompts/list", json!({}));
    home.write(".claude/skills/release/SKILL.md", SKILL);
    client.notification("notifications/tools/list_changed");
    client.notification("notifications/prompts/list_changed");
    assert!(names_the_skill(&mut client));
}

#[test]
fn a_new_agent_changes_the_list_of_tools() {
    let home = Home::new(Script::new());
    let mut client = home.client();
    client.ask("tools/list", json!({}));
    let agent = "---\nname: critic\ndescription: Finds faults\n---\nFind faults.";
    home.write(".claude/agents/critic.md", agent);
    client.notification("notifications/tools/list_changed");
    let listed = client.ask("tools/list", json!({}));
    assert!(listed.to_string().contains("- critic"), "{listed}");
}

#[test]
fn without_a_handshake_a_client_subscribes_to_what_it_wants_to_hear() {
    let home = Home::new(Script::new());
    let mut client = home.client_of(STATELESS, &[]);
    assert!(!names_the_skill(&mut client));
    client.ask("prompts/list", json!({}));
    let wanted = json!({"notifications": {"toolsListChanged": true}});
    let subscription = client.begin("subscriptions/listen", wanted);
    let accepted = client.notification("notifications/subscriptions/acknowledged");
    let accepted = &accepted["params"]["notifications"];
    assert_eq!(accepted, &json!({"toolsListChanged": true}));
    home.write(".claude/skills/release/SKILL.md", SKILL);
    client.notification("notifications/tools/list_changed");
    assert!(names_the_skill(&mut client));
    // The prompts have changed too, but nobody asked about those.
    client.send(&json!({
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": {"requestId": subscription},
    }));
    client.ask("prompts/list", json!({}));
    assert!(client.notified.is_empty(), "{:?}", client.notified);
    assert!(client.close().success());
}
