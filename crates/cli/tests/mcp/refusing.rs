//! What is refused, and in which words.

use asyncagents_scripted_model::{Reply, Script, When};
use rstest::rstest;
use serde_json::{Value, json};

use crate::client::{Client, Home, pretty};

fn home() -> Home {
    Home::new(Script::new().rule(When::always(), Reply::text("Done.")))
}

#[rstest]
#[case::missing_task("missing_task", "output", json!({}))]
#[case::unknown_task("unknown_task", "output", json!({"task_id": "task_0123"}))]
#[case::not_a_number("not_a_number", "output", json!({"task_id": "task_0123", "timeout": "soon"}))]
#[case::unknown_status("unknown_status", "list", json!({"status": "lost"}))]
#[case::unknown_agent("unknown_agent", "task", json!({"description": "d", "prompt": "p", "agent": "wizard"}))]
#[case::empty_prompt("empty_prompt", "task", json!({"description": "d", "prompt": "", "agent": "general"}))]
#[case::fork_and_resume("fork_and_resume", "task", json!({"description": "d", "prompt": "p", "agent": "general", "fork": true, "resume": "task_0123"}))]
#[case::fork("fork", "task", json!({"description": "d", "prompt": "p", "agent": "general", "fork": true}))]
#[case::unknown_skill("unknown_skill", "skill", json!({"name": "magic"}))]
fn a_call_that_does_not_fit_says_what_would(
    #[case] name: &str,
    #[case] tool: &str,
    #[case] arguments: Value,
) {
    let home = home();
    let mut client = home.client_of("2025-11-25", &["--session", "editor"]);
    let refused = client.call(tool, arguments);
    assert!(refused.is_error, "{}", refused.text);
    let name = format!("refused_{name}");
    insta::assert_snapshot!(name, home.plain(&refused.text));
    let list = client.done("list", json!({}));
    assert!(
        list.text.contains("No background tasks found"),
        "{}",
        list.text
    );
}

#[test]
fn arguments_that_are_no_object_and_unknown_methods_and_tools_are_errors_of_the_protocol() {
    let home = home();
    let mut client = home.client();
    let wrong = client.request(
        "tools/call",
        json!({"name": "list", "arguments": "running"}),
    );
    insta::assert_snapshot!("wrong_arguments", pretty(&wrong["error"]));
    let unknown = client.request("tasks/invent", json!({}));
    insta::assert_snapshot!("unknown_method", pretty(&unknown["error"]));
    let unknown = client.request("tools/call", json!({"name": "launch", "arguments": {}}));
    insta::assert_snapshot!("unknown_tool", pretty(&unknown["error"]));
}

#[test]
fn what_the_server_does_not_say_that_it_can_is_no_method() {
    let home = home();
    let mut client = home.client();
    let prompt = json!({"type": "ref/prompt", "name": "release"});
    let argument = json!({"name": "arguments", "value": "1"});
    for (method, params) in [
        (
            "completion/complete",
            json!({"ref": prompt, "argument": argument}),
        ),
        ("logging/setLevel", json!({"level": "info"})),
        (
            "resources/subscribe",
            json!({"uri": "asyncagents://tasks/task_0123"}),
        ),
    ] {
        let refused = client.request(method, params);
        assert_eq!(refused["error"]["code"], json!(-32601), "{refused}");
    }
}

#[test]
fn what_is_not_json_is_passed_over_and_the_connection_goes_on() {
    let home = home();
    let mut client = home.client();
    client.send_line("{\"jsonrpc\": \"2.0\", \"id\": 7, \"method\"");
    client.send_line("[1, 2");
    client.done("list", json!({}));
}

#[test]
fn json_that_is_no_message_is_an_invalid_request() {
    let home = home();
    let mut client = home.client();
    client.send(&json!({"hello": "there"}));
    let refused = client.next();
    assert_eq!(refused["error"]["code"], json!(-32600), "{refused}");
    client.done("list", json!({}));
}

#[test]
fn without_a_key_a_launch_says_what_to_set() {
    let home = home();
    let mut command = home.command(&["mcp"]);
    command.env_remove("ASYNCAGENTS_MODEL");
    let mut client = Client::start(command, "2025-11-25");
    client.connect();
    let launch = json!({"description": "d", "prompt": "p", "agent": "general"});
    let refused = client.call("task", launch);
    assert!(refused.is_error);
    insta::assert_snapshot!("no_key", refused.text);
    let list = client.done("list", json!({}));
    assert!(
        list.text.contains("No background tasks found"),
        "{}",
        list.text
    );
}

#[test]
fn a_new_era_request_that_does_not_say_who_asks_is_refused() {
    let home = home();
    let mut client = Client::start(home.command(&["mcp"]), "none");
    let refused = client.request("tools/list", json!({}));
    assert_eq!(refused["error"]["code"], json!(-32602), "{refused}");
    let said = refused["error"]["message"].as_str().expect("a message");
    assert!(said.contains("protocolVersion"), "{said}");
}

#[test]
fn a_session_without_a_name_is_refused_at_the_start() {
    let home = home();
    let output = home.command(&["mcp", "--session", " "]).output();
    let output = output.expect("runs");
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("--session"), "{said}");
}
