//! `opencode run`: one prompt, then it ends.

use std::thread;

use asyncagents_scripted_model::{Gate, Reply, Script, When};
use serde_json::{Value, json};

use crate::harness::{
    Opencode, World, asked, child, counting, forked, launch, resume, root, story, tool,
};
use crate::told::told;

told!(v1, v2, v2_background:
    a_task_is_launched_and_waited_for,
    a_forked_task_knows_the_conversation,
    tasks_are_listed_and_cancelled,
    a_task_is_looked_at_resumed_and_cleared,
);

/// The parent has just launched something.
fn launched() -> When {
    root()
        .last("You will be told")
        .capture("id", "Task (task_[0-9a-f]+)")
}

/// A parent that launches a task as asked, waits for it and says what came of it.
fn launches_and_waits(task: Value) -> Script {
    let wait = json!({"task_id": "{{id}}", "block": true, "timeout": 90});
    story()
        .rule(child("Count the files"), Reply::text("There are three."))
        .rule(
            asked("Launch and wait"),
            Reply::call("asyncagents_task", task),
        )
        .rule(launched(), Reply::call("asyncagents_output", wait))
        .rule(
            root().last("There are three."),
            Reply::text("It says three."),
        )
}

fn a_task_is_launched_and_waited_for(opencode: Opencode) {
    let world = World::new(
        opencode,
        launches_and_waits(launch("count", "Count the files")),
    );
    let run = world.run("Launch and wait");
    assert_eq!(run.answer(), "It says three.");
    let results = run.results("asyncagents_output");
    assert_eq!(results.len(), 1, "{results:?}");
    assert!(results[0].contains("is completed"), "{results:?}");
    // From its first request on the model knows whom it can launch.
    let requests = world.model.requests();
    let first = requests
        .iter()
        .find(|request| request.turn() == 0 && !request.tool_names().is_empty());
    let task = tool(first.expect("a request"), "asyncagents_task");
    let described = task["description"].to_string();
    for agent in ["general", "explore"] {
        assert!(described.contains(agent), "{agent}: {described}");
    }
    // A server in the background lives on.
    if opencode != Opencode::V2Background {
        world.until("nothing is left running", || {
            world.processes().is_empty().then_some(())
        });
    }
}

fn a_forked_task_knows_the_conversation(opencode: Opencode) {
    let world = World::new(
        opencode,
        launches_and_waits(forked("count", "Count the files")),
    );
    let run = world.run("Launch and wait");
    assert_eq!(run.answer(), "It says three.");
    let asked = world.until_child_asks("Count the files").text();
    assert!(asked.contains("<inherited_context>"), "{asked}");
    assert!(asked.contains("User:\nLaunch and wait"), "{asked}");
}

fn tasks_are_listed_and_cancelled(opencode: Opencode) {
    let never = Gate::closed();
    let task = launch("stars", "Count the stars");
    let world = World::new(
        opencode,
        story()
            .rule(child("Count the stars"), Reply::text("…").behind(&never))
            .rule(
                asked("Launch and cancel"),
                Reply::call("asyncagents_task", task),
            )
            .rule(launched(), Reply::call("asyncagents_list", json!({})))
            .rule(
                root()
                    .last("| Description")
                    .capture("id", r"\| (task_[0-9a-f]+)"),
                Reply::call("asyncagents_cancel", json!({"task_id": "{{id}}"})),
            )
            .rule(root().last("Cancelled"), Reply::text("It is cancelled.")),
    );
    let run = world.run("Launch and cancel");
    let list = run.results("asyncagents_list").pop().expect("a list");
    assert!(list.contains("stars"), "{list}");
    let cancelled = run.results("asyncagents_cancel").pop().expect("an answer");
    assert!(cancelled.contains("Cancelled task_"), "{cancelled}");
    world.until("nobody waits for the model", || {
        (world.model.in_flight() == 0).then_some(())
    });
}

fn a_task_is_looked_at_resumed_and_cleared(opencode: Opencode) {
    let counted = Gate::closed();
    let (look, wait) = (
        json!({"task_id": "{{id}}"}),
        json!({"task_id": "{{id}}", "block": true, "timeout": 90}),
    );
    let both = json!({"description": "both", "prompt": "More", "agent": "general", "fork": true, "resume": "{{id}}"});
    let nobody = json!({"description": "nobody", "prompt": "More", "agent": "wizard"});
    let steps = [
        ("asyncagents_task", launch("count", "Count the files")),
        ("asyncagents_output", look.clone()),
        ("asyncagents_output", wait.clone()),
        ("asyncagents_task", resume("{{id}}", "And the folders?")),
        ("asyncagents_output", wait),
        ("asyncagents_output", look),
        ("asyncagents_task", both),
        ("asyncagents_task", nobody),
        ("asyncagents_clear", json!({})),
    ];
    let mut script =
        counting(&counted).rule(child("And the folders?"), Reply::text("There are two."));
    for (turn, (tool, parameters)) in steps.into_iter().enumerate() {
        let mut when = root().tools(true).turn_is(turn);
        if parameters.to_string().contains("{{id}}") {
            when = when.capture("id", "(task_[0-9a-f]+)");
        }
        script = script.rule(when, Reply::call(tool, parameters));
    }
    let world = World::new(opencode, script);
    let run = thread::scope(|scope| {
        let running = scope.spawn(|| world.run("Do everything"));
        // It has looked at the task and is about to wait for it.
        world.until("the task was looked at", || {
            let requests = world.requests_with("is running");
            (!requests.is_empty()).then_some(())
        });
        counted.open();
        running.join().expect("no panic")
    });

    let outputs = run.results("asyncagents_output");
    let expected = [
        "is running",
        "There are three.",
        "There are two.",
        "There are two.",
    ];
    assert_eq!(outputs.len(), expected.len(), "{outputs:#?}");
    for (output, expected) in outputs.iter().zip(expected) {
        assert!(output.contains(expected), "{expected}: {output}");
    }
    let answers = run.results("asyncagents_task");
    let expected = [
        "You will be told",
        "resume #1",
        "exclude each other",
        "explore",
    ];
    assert_eq!(answers.len(), expected.len(), "{answers:#?}");
    for (answer, expected) in answers.iter().zip(expected) {
        assert!(answer.contains(expected), "{expected}: {answer}");
    }
    let cleared = run.results("asyncagents_clear");
    assert_eq!(cleared, ["Cleared 1 task; 0 were stopped."]);
    let asked = world.until_child_asks("And the folders?").text();
    assert!(asked.contains("There are three."), "{asked}");
}
