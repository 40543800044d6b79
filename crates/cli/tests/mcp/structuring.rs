//! Answers for programs.

use asyncagents_scripted_model::{Reply, Script, When};
use serde_json::{Value, json};

use crate::client::{Client, Home, STATELESS};

fn call(client: &mut Client, tool: &str, arguments: Value) -> Value {
    let result = client.ask("tools/call", json!({"name": tool, "arguments": arguments}));
    let structured = result["structuredContent"].clone();
    // A client may show only one of the two.
    assert_eq!(structured["text"], result["content"][0]["text"], "{result}");
    structured
}

#[test]
fn a_program_is_answered_with_the_tasks_that_the_words_are_about() {
    let home = Home::new(Script::new().rule(When::always(), Reply::text("Nine of them.")));
    let mut client = home.client_of(STATELESS, &["--structured"]);
    let task = json!({"description": "Count", "prompt": "Count them", "agent": "general"});
    let launched = call(&mut client, "task", task);
    let id = launched["task"]["id"].as_str().expect("an ID").to_owned();
    let waits = json!({"task_id": id, "block": true});
    let output = call(&mut client, "output", waits);
    assert_eq!(output["task"]["status"], json!("completed"), "{output}");
    assert!(
        output["text"]
            .as_str()
            .expect("words")
            .contains("Nine of them.")
    );
    let list = call(&mut client, "list", json!({}));
    assert_eq!(list["tasks"][0]["id"], json!(id), "{list}");
    let refused = call(&mut client, "output", json!({"task_id": "task_ffffffff"}));
    assert_eq!(
        refused.as_object().expect("an object").len(),
        1,
        "{refused}"
    );
    let cleared = call(&mut client, "clear", json!({}));
    assert_eq!(cleared["cleared"], json!(1), "{cleared}");
}

#[test]
fn a_long_list_is_no_longer_than_other_answers_and_says_how_many_are_left_out() {
    let home = Home::new(Script::new().rule(When::always(), Reply::text("Done.")));
    let mut client = home.client_of(STATELESS, &["--structured"]);
    for number in 0..60 {
        let description = format!("Task number {number}");
        let task = json!({"description": description, "prompt": "Count", "agent": "general"});
        call(&mut client, "task", task);
    }
    let list = call(&mut client, "list", json!({}));
    let tasks = list["tasks"].as_array().expect("tasks");
    let words = list["text"].as_str().expect("words").chars().count();
    assert!(list["tasks"].to_string().len() + words <= 31_000);
    let left_out = tasks.last().expect("a task")["left_out"]["count"].as_u64();
    let shown = u64::try_from(tasks.len()).expect("a number");
    assert_eq!(shown + left_out.expect("a number"), 60, "{shown}");
}
