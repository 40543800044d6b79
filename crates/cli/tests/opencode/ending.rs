//! Tasks that end otherwise than by an answer.

use asyncagents_scripted_model::{Fault, Gate, Reply};
use rstest::rstest;
use serde_json::json;

use crate::harness::{Setup, World, child, counting, launch, resume, story, task_id};

/// Waits until the model answers so many requests.
fn until_in_flight(world: &World, requests: usize) {
    let what = format!("the model is answering {requests} requests");
    world.until(&what, || {
        (world.model.in_flight() == requests).then_some(())
    });
}

#[rstest]
#[case::before_the_first_word(Reply::text("never").behind(&Gate::closed()))]
#[case::in_the_middle_of_an_answer(Reply::fault(Fault::Hang))]
fn a_cancelled_task_really_stops_and_the_parent_is_told_once(#[case] endless: Reply) {
    let world = World::new(story().rule(child("Count the stars"), endless));
    let opencode = world.serve();
    let parent = opencode.session();
    let id = task_id(&parent.uses("asyncagents_task", launch("stars", "Count the stars")));
    world.until_child_asks("Count the stars");
    until_in_flight(&world, 1);
    let stars = parent.child();

    let cancelled = parent.uses("asyncagents_cancel", json!({"task_id": id}));
    assert!(
        cancelled.contains(&format!("Cancelled {id}")),
        "{cancelled}"
    );
    until_in_flight(&world, 0);
    stars.until_idle();
    // OpenCode says that a session is idle a moment before it marks the answer.
    world.until("the answer is marked as aborted", || {
        let messages = stars.messages();
        let newest = &messages.last()?["info"];
        (newest["error"]["name"] == "MessageAbortedError").then_some(())
    });

    let notices = parent.until_told(1);
    let visible = &notices[0].visible;
    assert!(
        visible.starts_with("⊘ **Agent \"stars\" cancelled after "),
        "{visible}"
    );
    let list = parent.uses("asyncagents_list", json!({}));
    assert!(list.contains("cancelled"), "{list}");
    let again = parent.uses("asyncagents_cancel", json!({"task_id": id}));
    assert!(again.contains("has ended already"), "{again}");
    world.stays("told once", || parent.notices().len() == 1);
    assert_eq!(stars.requests().len(), 1, "it was not asked again");
}

#[test]
fn a_cancelled_task_takes_everything_below_it_along() {
    let never = Gate::closed();
    let deep = json!({"description": "deep", "prompt": "Dig deeper", "agent": "general"});
    let world = World::new(
        story()
            .rule(child("Dig deeper"), Reply::text("…").behind(&never))
            .rule(child("You will be told"), Reply::text("…").behind(&never))
            .rule(child("Dig"), Reply::call("asyncagents_task", deep)),
    );
    let opencode = world.serve();
    let parent = opencode.session();
    let id = task_id(&parent.uses("asyncagents_task", launch("digging", "Dig")));
    until_in_flight(&world, 2);
    let cancelled = parent.uses("asyncagents_cancel", json!({"task_id": id}));
    assert!(cancelled.contains("1 task below it"), "{cancelled}");
    until_in_flight(&world, 0);
    let notices = parent.until_told(1);
    assert!(
        notices[0].visible.contains("\"digging\" cancelled"),
        "{notices:?}"
    );
    world.stays("told once", || parent.notices().len() == 1);
}

#[test]
fn clear_stops_what_runs_and_forgets_everything() {
    let never = Gate::closed();
    let world = World::new(
        story()
            .rule(child("Count the files"), Reply::text("There are three."))
            .rule(child("Count the stars"), Reply::text("…").behind(&never)),
    );
    let opencode = world.serve();
    let parent = opencode.session();
    parent.uses("asyncagents_task", launch("files", "Count the files"));
    parent.until_told(1);
    parent.uses("asyncagents_task", launch("stars", "Count the stars"));
    world.until_child_asks("Count the stars");
    until_in_flight(&world, 1);

    let cleared = parent.uses("asyncagents_clear", json!({}));
    assert!(
        cleared.contains("Cleared 2 tasks; 1 was stopped."),
        "{cleared}"
    );
    until_in_flight(&world, 0);
    let list = parent.uses("asyncagents_list", json!({}));
    assert_eq!(list, "No background tasks found");
    let again = parent.uses("asyncagents_clear", json!({}));
    assert_eq!(again, "No background tasks found");
}

#[test]
fn a_child_whose_model_fails_ends_with_the_reason_and_the_parent_is_told_once() {
    let refusal = Reply::status(400).message("the model is on strike");
    let world = World::new(story().rule(child("Count the files"), refusal));
    let opencode = world.serve();
    let parent = opencode.session();
    let id = task_id(&parent.uses("asyncagents_task", launch("count", "Count the files")));
    let notices = parent.until_told(1);
    let notice = &notices[0];
    assert!(
        notice.visible.starts_with("✗ **Agent \"count\" failed in "),
        "{notice:?}"
    );
    assert!(
        notice.hidden.contains("the model is on strike"),
        "{notice:?}"
    );
    let shown = parent.uses("asyncagents_output", json!({"task_id": id}));
    assert!(shown.contains("is error"), "{shown}");
    assert!(shown.contains("the model is on strike"), "{shown}");
    world.stays("told once", || parent.notices().len() == 1);
}

#[test]
fn a_child_whose_model_is_busy_for_a_moment_is_not_given_up() {
    let busy = Reply::status(429).retry_after("3").message("later");
    let world = World::new(
        story()
            .rule(child("Count the files").times(1), busy)
            .rule(child("Count the files"), Reply::text("There are three.")),
    );
    let opencode = world.serve();
    let parent = opencode.session();
    let id = task_id(&parent.uses("asyncagents_task", launch("count", "Count the files")));
    let notices = parent.until_told(1);
    assert!(
        notices[0].visible.contains("\"count\" finished"),
        "{notices:?}"
    );
    let result = parent.uses("asyncagents_output", json!({"task_id": id}));
    assert!(result.contains("There are three."), "{result}");
    assert_eq!(parent.child().requests().len(), 2);
    world.stays("told once", || parent.notices().len() == 1);
}

#[test]
fn a_user_who_stops_the_parent_does_not_stop_its_children() {
    let counted = Gate::closed();
    let world = World::new(counting(&counted));
    let opencode = world.serve();
    let parent = opencode.session();
    let id = task_id(&parent.uses("asyncagents_task", launch("count", "Count the files")));
    world.until_child_asks("Count the files");
    // It is stopped while it waits for the child.
    let wait = json!({"task_id": id, "block": true, "timeout": 600});
    parent.begins_to_use("asyncagents_output", &wait);
    parent.until_using("asyncagents_output");
    parent.abort();
    parent.until_idle();
    world.stays("the child works on", || world.model.in_flight() == 1);

    counted.open();
    let notices = parent.until_told(1);
    assert!(
        notices[0].visible.contains("\"count\" finished"),
        "{notices:?}"
    );
    world.stays("told once", || parent.notices().len() == 1);
}

#[test]
fn a_parent_that_is_deleted_takes_its_children_along() {
    let never = Gate::closed();
    let world = World::new(
        story()
            .rule(child("Count the stars"), Reply::text("…").behind(&never))
            .rule(child("Count the files"), Reply::text("There are three.")),
    );
    let opencode = world.serve();
    let (parent, other) = (opencode.session(), opencode.session());
    let id = task_id(&parent.uses("asyncagents_task", launch("stars", "Count the stars")));
    world.until_child_asks("Count the stars");
    let stars = parent.child();
    parent.delete();
    until_in_flight(&world, 0);
    world.until("the child is gone", || (!stars.exists()).then_some(()));
    // Its task has ended or is gone.
    world.until("nothing is running", || {
        let tasks = world.asyncagents(&["list"]);
        let ended = tasks
            .lines()
            .all(|line| !line.contains(&id) || !line.contains("running"));
        ended.then_some(())
    });
    // Nobody is left to be told, and others are served as before.
    other.uses("asyncagents_task", launch("count", "Count the files"));
    let notices = other.until_told(1);
    assert!(
        notices[0].visible.contains("\"count\" finished"),
        "{notices:?}"
    );
    assert!(
        notices[0].visible.contains("Task Progress: 1/1"),
        "{notices:?}"
    );
}

#[rstest]
#[case::tool_calls("tool_calls = 2", "the budget of 2 tool calls is used up")]
#[case::tokens("tokens = 100000", "the budget of 100,000 tokens is used up")]
fn at_the_end_of_its_budget_a_child_sums_up_without_tools(#[case] budget: &str, #[case] why: &str) {
    let looks = |n: u64| {
        let pattern = json!({"pattern": format!("*.{n}")});
        Reply::call("glob", pattern).usage(31_000, 0, 100)
    };
    let of_child = |turn| child("").turn_is(turn).tools(true);
    let world = Setup::new(
        story()
            .rule(
                child("This is your last turn"),
                Reply::text("So far: one shelf."),
            )
            .rule(child("Now finish"), Reply::text("All shelves."))
            .rule(of_child(0), looks(0))
            .rule(of_child(1), looks(1))
            .rule(of_child(2), looks(2)),
    )
    .settings(&format!("[budget]\n{budget}\n"))
    .world();
    let opencode = world.serve();
    let parent = opencode.session();
    let id = task_id(&parent.uses("asyncagents_task", launch("shelves", "Count the shelves")));
    let notices = parent.until_told(1);
    assert!(notices[0].hidden.contains(why), "{notices:?}");
    let shown = parent.uses("asyncagents_output", json!({"task_id": id}));
    assert!(shown.contains("is error"), "{shown}");
    assert!(shown.contains("So far: one shelf."), "{shown}");

    let requests = world.model.requests();
    let last: Vec<_> = requests
        .iter()
        .filter(|request| request.last().contains("This is your last turn"))
        .collect();
    assert_eq!(last.len(), 1, "asked once");
    assert_eq!(last[0].tool_names(), [""; 0], "without tools");
    assert!(
        last[0].last().contains("Count the shelves"),
        "with what it did"
    );
    let shelves = parent.child();
    assert_eq!(shelves.children().len(), 0, "nothing is left beside it");

    // It has its tools again.
    parent.uses("asyncagents_task", resume(&id, "Now finish"));
    parent.until_told(2);
    let requests = shelves.requests();
    let newest = requests.last().expect("a request");
    assert!(
        newest.tool_names().contains(&"glob".to_owned()),
        "{newest:?}"
    );
}
