//! Resources and prompts.

use asyncagents_scripted_model::{Reply, Script, When};
use rstest::rstest;
use serde_json::{Value, json};

use crate::client::{Home, STATELESS, pretty, until};

fn home() -> Home {
    Home::new(Script::new().rule(When::always(), Reply::text("Nine tests, all green.")))
}

fn uris(listed: &Value) -> Vec<String> {
    let resources = listed["resources"].as_array().expect("resources");
    let uris = resources.iter().filter_map(|one| one["uri"].as_str());
    uris.map(str::to_owned).collect()
}

#[rstest]
#[case::older("2025-06-18")]
#[case::stateless(STATELESS)]
fn a_task_and_its_trace_are_read_as_resources(#[case] version: &str) {
    let home = home();
    let mut client = home.client_of(version, &[]);
    assert!(uris(&client.ask("resources/list", json!({}))).is_empty());
    let task = client.launch("Run the tests", "Run all tests").task();
    client.done("output", json!({"task_id": task, "block": true}));
    let listed = client.ask("resources/list", json!({}));
    insta::assert_snapshot!("resources", home.plain(&pretty(&listed["resources"])));
    let [of_task, of_trace] = uris(&listed).try_into().expect("a task and its trace");
    let read = client.ask("resources/read", json!({"uri": of_task}));
    let text = read["contents"][0]["text"].as_str().expect("a text");
    assert!(text.contains("Nine tests, all green."), "{text}");
    let read = client.ask("resources/read", json!({"uri": of_trace}));
    let text = read["contents"][0]["text"].as_str().expect("a text");
    let trace: Value = serde_json::from_str(text).expect("JSON");
    assert_eq!(trace["answer"], json!("Nine tests, all green."));
    assert!(!trace["steps"].as_array().expect("steps").is_empty());
}

/// A program may read it to show it to a person, and its model does not know of it then.
#[test]
fn a_result_that_was_read_as_a_resource_is_still_told() {
    let home = home();
    let mut client = home.client();
    let task = client.launch("Run the tests", "Run all tests").task();
    let uri = format!("asyncagents://tasks/{task}");
    until("it has ended", || {
        let read = client.ask("resources/read", json!({"uri": uri}));
        read.to_string().contains("Nine tests, all green.")
    });
    let told = client.call_until("list", &json!({}), "asyncagents notice");
    assert!(told.contains("Nine tests, all green."), "{told}");
}

#[test]
fn nobody_reads_the_tasks_and_traces_of_another_connection() {
    let home = home();
    let (mut one, mut other) = (home.client(), home.client());
    let task = one.launch("Secret work", "Secret work").task();
    one.done("output", json!({"task_id": task, "block": true}));
    other.done("list", json!({}));
    assert!(uris(&other.ask("resources/list", json!({}))).is_empty());
    for uri in uris(&one.ask("resources/list", json!({}))) {
        let refused = other.request("resources/read", json!({"uri": uri}));
        assert_eq!(refused["error"]["code"], json!(-32002), "{refused}");
        assert!(!refused.to_string().contains("Secret"), "{refused}");
    }
}

#[test]
fn a_trace_that_is_too_long_is_summed_up() {
    let long = "word ".repeat(20_000);
    let home = Home::new(Script::new().rule(When::always(), Reply::text(long).chunk(4000)));
    let mut client = home.client();
    let task = client.launch("Write", "Write a lot").task();
    client.done("output", json!({"task_id": task, "block": true}));
    for uri in uris(&client.ask("resources/list", json!({}))) {
        let read = client.ask("resources/read", json!({"uri": uri}));
        let text = read["contents"][0]["text"].as_str().expect("a text");
        assert!(text.chars().count() <= 30_000, "{uri}: {}", text.len());
    }
}

#[rstest]
#[case::older("2025-06-18", -32002)]
#[case::stateless(STATELESS, -32602)]
fn what_is_no_resource_is_not_found(#[case] version: &str, #[case] code: i64) {
    let home = home();
    let mut client = home.client_of(version, &[]);
    for uri in [
        "asyncagents://tasks/task_0123",
        "asyncagents://traces/chain_0123",
        "asyncagents://tasks/",
        "asyncagents://traces/",
        "file:///etc/passwd",
    ] {
        let refused = client.request("resources/read", json!({"uri": uri}));
        assert_eq!(refused["error"]["code"], json!(code), "{uri}: {refused}");
        assert_eq!(refused["error"]["data"]["uri"], json!(uri));
    }
    let templates = client.ask("resources/templates/list", json!({}));
    insta::assert_snapshot!("templates", pretty(&templates["resourceTemplates"]));
}

/// Skills for everybody, for the model only, and one that runs as a sub-agent.
fn with_skills() -> Home {
    let home = home();
    let skill = |name: &str, more: &str, body: &str| {
        let text = format!("---\nname: {name}\ndescription: About {name}\n{more}---\n{body}");
        home.write(&format!(".claude/skills/{name}/SKILL.md"), &text);
    };
    let hint = "argument-hint: VERSION\n";
    skill("release", hint, "Write the notes for $ARGUMENTS.");
    skill("house-style", "user-invocable: false\n", "Four spaces.");
    skill("audit", "context: fork\n", "Audit the code.");
    skill("deploy", "disable-model-invocation: true\n", "Deploy it.");
    home
}

#[rstest]
#[case::older("2025-06-18")]
#[case::stateless(STATELESS)]
fn skills_are_prompts_for_the_user(#[case] version: &str) {
    let home = with_skills();
    let mut client = home.client_of(version, &[]);
    let listed = client.ask("prompts/list", json!({}));
    insta::assert_snapshot!("prompts", pretty(&listed["prompts"]));
    let chosen = json!({"name": "release", "arguments": {"arguments": "1.2"}});
    let prompt = client.ask("prompts/get", chosen);
    insta::assert_snapshot!("prompt", home.plain(&pretty(&prompt["messages"])));
    let prompt = client.ask("prompts/get", json!({"name": "audit"}));
    insta::assert_snapshot!("prompt_of_a_sub_agent", pretty(&prompt["messages"]));
    let prompt = client.ask("prompts/get", json!({"name": "deploy"}));
    let text = prompt["messages"][0]["content"]["text"].as_str();
    assert!(text.expect("a text").starts_with("Deploy it."));
}

#[test]
fn skills_that_are_not_for_the_user_are_no_prompts() {
    let home = with_skills();
    let mut client = home.client();
    for name in ["house-style", "magic"] {
        let refused = client.request("prompts/get", json!({"name": name}));
        assert_eq!(refused["error"]["code"], json!(-32602), "{refused}");
        let said = refused["error"]["message"].as_str().expect("a message");
        insta::assert_snapshot!(format!("no_prompt_{name}"), said);
    }
}
