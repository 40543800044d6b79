//! A child that must ask the user.

use asyncagents_scripted_model::Reply;
use serde_json::json;

use crate::harness::{Opencode, Setup, child, command, story, task_id};
use crate::told::told;

/// How a task ends in which something was refused.
const REFUSED: fn(Opencode) -> &'static str = |opencode| {
    if opencode.is_v2() {
        "declined"
    } else {
        "rejected"
    }
};

/// What the user answers, and what the task comes to.
struct Answer {
    reply: &'static str,
    result: fn(Opencode) -> &'static str,
}

told!(v1, v2_background: a_question_of_a_child_is_seen_by_its_parent_and_the_reply_lets_it_go_on(
    allowed => Answer { reply: "once", result: |_| "The wall is blue." },
    // OpenCode ends a turn in which something was refused; the model is not asked again.
    refused => Answer { reply: "reject", result: REFUSED },
));

fn a_question_of_a_child_is_seen_by_its_parent_and_the_reply_lets_it_go_on(
    opencode: Opencode,
    Answer { reply, result }: Answer,
) {
    let painter = json!({
        "mode": "subagent",
        "description": "Paints what it may.",
        "permission": {"bash": "ask"},
    });
    let script = story()
        .rule(
            child("Paint the wall"),
            Reply::call(opencode.shell(), command("echo painted blue")),
        )
        .rule(child("painted blue"), Reply::text("The wall is blue."));
    let world = Setup::new(opencode, script)
        .agent("painter", painter)
        .world();
    let server = world.serve();
    let parent = server.session();
    let paint = json!({"description": "paint", "prompt": "Paint the wall", "agent": "painter"});
    let id = task_id(&parent.uses("asyncagents_task", paint));
    world.until("the child asks", || {
        let asked = server.has_said("permission.asked", |_| true);
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

    parent.child().permit(reply);
    parent.until_told(1);
    let output = parent.uses("asyncagents_output", json!({"task_id": id}));
    assert!(output.contains(result(opencode)), "{output}");
    let list = parent.uses("asyncagents_list", json!({}));
    assert!(!list.to_lowercase().contains("permission"), "{list}");
    world.stays("told once", || parent.notices().len() == 1);
}
