//! A person in the loop: what a child asks is answered, and a child is told something, from the
//! shell and by its parent's model.

use std::fs;

use asyncagents_scripted_model::{Gate, Reply};
use serde_json::{Value, json};

use crate::harness::{Opencode, Setup, World, child, command, counting, launch, story, task_id};
use crate::told::told;

told!(v1, v2_background:
    a_childs_question_is_answered_from_the_shell,
    a_child_of_a_child_that_asks_is_answered_from_the_shell,
    the_parents_model_may_refuse_and_never_permit,
    a_child_is_told_something_before_its_next_step_and_once,
    what_has_ended_is_not_told_anything,
);

/// An agent that must ask before it runs a command.
fn painter() -> Value {
    json!({
        "mode": "subagent",
        "description": "Paints what it may.",
        "permission": {"bash": "ask"},
    })
}

fn paints() -> Value {
    json!({"description": "paint", "prompt": "Paint the wall", "agent": "painter"})
}

/// Waits until a task asks something, as the shell shows it. Returns the ID of the question.
fn until_asks(world: &World, task: &str) -> String {
    world.until("the list shows that it asks", || {
        let tasks = world.asyncagents(&["list"]);
        let mut lines = tasks.lines().filter(|line| line.contains(task));
        let (_, question) = lines.find_map(|line| line.split_once(" --question "))?;
        Some(question.trim().to_owned())
    })
}

fn a_childs_question_is_answered_from_the_shell(opencode: Opencode) {
    let blue = command("echo painted blue");
    let script = story()
        .rule(child("Paint the wall"), Reply::call(opencode.shell(), blue))
        .rule(child("painted blue"), Reply::text("The wall is blue."));
    let world = Setup::new(opencode, script)
        .agent("painter", painter())
        .world();
    let server = world.serve();
    let parent = server.session();
    let id = task_id(&parent.uses("asyncagents_task", paints()));
    let question = until_asks(&world, &id);
    world.typed(&["answer", &id, "once", "--question", &question]);
    let notices = parent.until_told(1);
    assert!(
        notices[0].visible.contains("\"paint\" finished"),
        "{notices:?}"
    );
    let shown = parent.uses("asyncagents_output", json!({"task_id": id}));
    assert!(shown.contains("The wall is blue."), "{shown}");
    world.stays("told once", || parent.ends_told() == 1);
}

fn a_child_of_a_child_that_asks_is_answered_from_the_shell(opencode: Opencode) {
    let wait = json!({"task_id": "{{id}}", "block": true, "timeout": 90});
    let launched = child("You will be told").capture("id", "Task (task_[0-9a-f]+)");
    let blue = command("echo painted blue");
    let script = story()
        .rule(child("Paint the wall"), Reply::call(opencode.shell(), blue))
        .rule(child("painted blue"), Reply::text("The wall is blue."))
        .rule(child("The wall is blue."), Reply::text("It is done."))
        .rule(launched, Reply::call("asyncagents_output", wait))
        .rule(
            child("Have it painted"),
            Reply::call("asyncagents_task", paints()),
        );
    let world = Setup::new(opencode, script)
        .agent("painter", painter())
        .world();
    let server = world.serve();
    let parent = server.session();
    parent.uses("asyncagents_task", launch("house", "Have it painted"));
    let deep = world.until("the child of the child is there", || {
        let tasks = world.asyncagents(&["list", "--json"]);
        let tasks: Vec<Value> = serde_json::from_str(&tasks).expect("tasks");
        let deep = tasks.iter().find(|task| task["agent"] == "painter")?;
        deep["short_id"].as_str().map(str::to_owned)
    });
    let question = until_asks(&world, &deep);
    world.typed(&["answer", &deep, "once", "--question", &question]);
    let notices = parent.until_told(1);
    assert!(
        notices[0].visible.contains("\"house\" finished"),
        "{notices:?}"
    );
    world.stays("told once", || parent.ends_told() == 1);
}

fn the_parents_model_may_refuse_and_never_permit(opencode: Opencode) {
    let blue = command("touch painted");
    let script = story().rule(child("Paint the wall"), Reply::call(opencode.shell(), blue));
    // What it is told of the refusal.
    let script = script
        .rule(child("not today"), Reply::text("Then not."))
        .rule(child("Unable to execute"), Reply::text("Then not."));
    let world = Setup::new(opencode, script)
        .agent("painter", painter())
        .world();
    let server = world.serve();
    let parent = server.session();
    let id = task_id(&parent.uses("asyncagents_task", paints()));
    until_asks(&world, &id);
    for decision in ["once", "always"] {
        let permit = json!({"task_id": id, "decision": decision});
        let refused = parent.uses("asyncagents_answer", permit);
        assert!(!refused.contains("answered"), "{decision}: {refused}");
    }
    until_asks(&world, &id);
    let refuse = json!({"task_id": id, "decision": "reject", "text": "not today"});
    parent.uses("asyncagents_answer", refuse);
    parent.until_told(1);
    assert!(!world.project("painted").exists(), "it was refused");
    world.stays("told once", || parent.ends_told() == 1);
}

fn a_child_is_told_something_before_its_next_step_and_once(opencode: Opencode) {
    let wait = command("until test -e go; do sleep 0.05; done; echo gone");
    let script = story()
        .rule(
            child("And the folders"),
            Reply::text("Three, and two folders."),
        )
        .rule(
            child("Count the files"),
            Reply::call(opencode.shell(), wait),
        );
    let world = World::new(opencode, script);
    let server = world.serve();
    let parent = server.session();
    let id = task_id(&parent.uses("asyncagents_task", launch("count", "Count the files")));
    world.until_child_asks("Count the files");
    parent.child().until_using(opencode.shell());
    let message = json!({"task_id": id, "text": "And the folders, please"});
    parent.uses("asyncagents_message", message);
    world.asyncagents(&["message", &id, "And the links"]);
    let child = parent.child();
    world.until("the child has both messages", || {
        let messages = child.messages();
        let has = |words| messages.iter().any(|it| it.text.contains(words));
        (has("And the folders") && has("And the links")).then_some(())
    });
    fs::write(world.project("go"), "").expect("written");
    parent.until_told(1);
    let request = world.until_child_asks("And the folders");
    for words in ["And the folders", "And the links"] {
        let times = request.text().matches(words).count();
        assert_eq!(times, 1, "{words}: {}", request.text());
    }
    assert!(
        request.text().contains("gone"),
        "after its step: {}",
        request.text()
    );
    let shown = parent.uses("asyncagents_output", json!({"task_id": id}));
    assert!(shown.contains("Three, and two folders."), "{shown}");
    let told = world.asyncagents(&["output", &id, "--json"]);
    assert!(
        told.contains("And the folders") && told.contains("And the links"),
        "{told}"
    );
    world.stays("told once", || parent.ends_told() == 1);
}

fn what_has_ended_is_not_told_anything(opencode: Opencode) {
    let counted = Gate::closed();
    counted.open();
    let world = World::new(opencode, counting(&counted));
    let server = world.serve();
    let parent = server.session();
    let id = task_id(&parent.uses("asyncagents_task", launch("count", "Count the files")));
    parent.until_told(1);
    let message = json!({"task_id": id, "text": "And the folders, please"});
    let refused = parent.uses("asyncagents_message", message);
    assert!(refused.contains("resume"), "{refused}");
}
