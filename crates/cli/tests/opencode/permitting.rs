//! A child that must ask the user.

use asyncagents_scripted_model::{Recorded, Reply};
use serde_json::json;

use crate::harness::{Opencode, Setup, World, child, command, launch, story, task_id};
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

told!(v1, v2, v2_background: a_task_launches_no_sub_agents_beside_its_limits);

fn a_task_launches_no_sub_agents_beside_its_limits(opencode: Opencode) {
    let own = opencode.own_sub_agents();
    let wanted = json!({
        "description": "hidden", "prompt": "Spend without a limit", "agent": "general",
        "subagent_type": "general",
    });
    let script = story()
        .rule(child("Get it done"), Reply::call(own, wanted))
        .rule(child("unavailable tool"), Reply::text("I did it myself."))
        .rule(child("Unknown tool"), Reply::text("I did it myself."));
    let world = World::new(opencode, script);
    let server = world.serve();
    let parent = server.session();
    let id = task_id(&parent.uses("asyncagents_task", launch("work", "Get it done")));
    let request = world.until_child_asks("Get it done");
    assert!(is_offered(&request, opencode.shell()), "it has tools");
    assert!(!is_offered(&request, own), "{}", request.body);
    parent.until_told(1);
    let output = parent.uses("asyncagents_output", json!({"task_id": id}));
    assert!(output.contains("I did it myself."), "{output}");
    let launched = world.requests_with("Spend without a limit");
    let own_turn = |request: &Recorded| request.text().contains("Get it done");
    assert!(launched.iter().all(own_turn), "it was launched");
}

fn is_offered(request: &Recorded, tool: &str) -> bool {
    let request = request.json();
    let tools = request["tools"].as_array().into_iter().flatten();
    let mut names = tools.flat_map(|offered| [&offered["name"], &offered["function"]["name"]]);
    names.any(|name| name == tool)
}

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
    world.stays("told once", || parent.ends_told() == 1);
}
