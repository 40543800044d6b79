//! A child that must ask the user.

use asyncagents_scripted_model::Reply;
use rstest::rstest;
use serde_json::json;

use crate::harness::{Setup, child, story, task_id};

#[rstest]
#[case::allowed("once", "The wall is blue.")]
// OpenCode ends a turn in which something was refused; the model is not asked again.
#[case::refused("reject", "rejected")]
fn a_question_of_a_child_is_seen_by_its_parent_and_the_reply_lets_it_go_on(
    #[case] reply: &str,
    #[case] result: &str,
) {
    let painter = json!({
        "mode": "subagent",
        "description": "Paints what it may.",
        "permission": {"bash": "ask"},
    });
    let paint = json!({"command": "echo painted blue", "description": "paint"});
    let script = story()
        .rule(child("Paint the wall"), Reply::call("bash", paint))
        .rule(child("painted blue"), Reply::text("The wall is blue."));
    let world = Setup::new(script).agent("painter", painter).world();
    let opencode = world.serve();
    let parent = opencode.session();
    let paint = json!({"description": "paint", "prompt": "Paint the wall", "agent": "painter"});
    let id = task_id(&parent.uses("asyncagents_task", paint));
    world.until("the child asks", || {
        let asked = opencode.has_said("permission.asked", |_| true);
        asked.then_some(())
    });

    let list = world.until("the list shows that it waits", || {
        let list = parent.uses("asyncagents_list", json!({}));
        list.to_lowercase().contains("permission").then_some(list)
    });
    assert!(list.contains(&id), "{list}");
    let output = parent.uses("asyncagents_output", json!({"task_id": id}));
    assert!(output.to_lowercase().contains("permission"), "{output}");
    assert!(output.contains("echo painted blue"), "{output}");
    assert!(parent.notices().is_empty(), "it has not ended");

    let asked = opencode.get("/permission").body;
    let asked = asked[0]["id"].as_str().expect("a question").to_owned();
    let path = format!("/permission/{asked}/reply");
    let replied = opencode.post(&path, json!({"reply": reply}));
    assert_eq!(replied.status, 200, "{replied:?}");

    parent.until_told(1);
    let output = parent.uses("asyncagents_output", json!({"task_id": id}));
    assert!(output.contains(result), "{output}");
    let list = parent.uses("asyncagents_list", json!({}));
    assert!(!list.to_lowercase().contains("permission"), "{list}");
    world.stays("told once", || parent.notices().len() == 1);
}
