//! Tasks that end otherwise than by an answer.

use asyncagents_scripted_model::{Fault, Gate, Reply, When};
use serde_json::json;

use crate::harness::{
    Opencode, Setup, World, child, command, counting, launch, resume, story, task_id,
};
use crate::told::told;

told!(v1, v2_background:
    a_cancelled_task_takes_everything_below_it_along,
    clear_stops_what_runs_and_forgets_everything,
    a_child_whose_model_fails_ends_with_the_reason_and_the_parent_is_told_once,
    a_child_whose_model_is_busy_for_a_moment_is_not_given_up,
    a_user_who_stops_the_parent_does_not_stop_its_children,
    a_parent_that_is_deleted_takes_its_children_along,
);

/// Waits until the model answers so many requests.
fn until_in_flight(world: &World, requests: usize) {
    let what = format!("the model is answering {requests} requests");
    world.until(&what, || {
        (world.model.in_flight() == requests).then_some(())
    });
}

told!(v1, v2_background: a_cancelled_task_really_stops_and_the_parent_is_told_once(
    before_the_first_word => Reply::text("never").behind(&Gate::closed()),
    in_the_middle_of_an_answer => Reply::fault(Fault::Hang),
));

fn a_cancelled_task_really_stops_and_the_parent_is_told_once(opencode: Opencode, endless: Reply) {
    let world = World::new(opencode, story().rule(child("Count the stars"), endless));
    let server = world.serve();
    let parent = server.session();
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
        messages.last()?.is_aborted.then_some(())
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
    world.stays("told once", || parent.ends_told() == 1);
    assert_eq!(stars.requests().len(), 1, "it was not asked again");
}

fn a_cancelled_task_takes_everything_below_it_along(opencode: Opencode) {
    let never = Gate::closed();
    let deep = json!({"description": "deep", "prompt": "Dig deeper", "agent": "general"});
    let world = World::new(
        opencode,
        story()
            .rule(child("Dig deeper"), Reply::text("…").behind(&never))
            .rule(child("You will be told"), Reply::text("…").behind(&never))
            .rule(child("Dig"), Reply::call("asyncagents_task", deep)),
    );
    let server = world.serve();
    let parent = server.session();
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
    world.stays("told once", || parent.ends_told() == 1);
}

fn clear_stops_what_runs_and_forgets_everything(opencode: Opencode) {
    let never = Gate::closed();
    let world = World::new(
        opencode,
        story()
            .rule(child("Count the files"), Reply::text("There are three."))
            .rule(child("Count the stars"), Reply::text("…").behind(&never)),
    );
    let server = world.serve();
    let parent = server.session();
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

fn a_child_whose_model_fails_ends_with_the_reason_and_the_parent_is_told_once(opencode: Opencode) {
    let refusal = Reply::status(400).message("the model is on strike");
    let world = World::new(opencode, story().rule(child("Count the files"), refusal));
    let server = world.serve();
    let parent = server.session();
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
    world.stays("told once", || parent.ends_told() == 1);
}

fn a_child_whose_model_is_busy_for_a_moment_is_not_given_up(opencode: Opencode) {
    let busy = Reply::status(429).retry_after("3").message("later");
    let world = World::new(
        opencode,
        story()
            .rule(child("Count the files").times(1), busy)
            .rule(child("Count the files"), Reply::text("There are three.")),
    );
    let server = world.serve();
    let parent = server.session();
    let id = task_id(&parent.uses("asyncagents_task", launch("count", "Count the files")));
    let notices = parent.until_told(1);
    assert!(
        notices[0].visible.contains("\"count\" finished"),
        "{notices:?}"
    );
    let result = parent.uses("asyncagents_output", json!({"task_id": id}));
    assert!(result.contains("There are three."), "{result}");
    assert_eq!(parent.child().requests().len(), 2);
    world.stays("told once", || parent.ends_told() == 1);
}

fn a_user_who_stops_the_parent_does_not_stop_its_children(opencode: Opencode) {
    let counted = Gate::closed();
    let world = World::new(opencode, counting(&counted));
    let server = world.serve();
    let parent = server.session();
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
    world.stays("told once", || parent.ends_told() == 1);
}

fn a_parent_that_is_deleted_takes_its_children_along(opencode: Opencode) {
    let never = Gate::closed();
    let world = World::new(
        opencode,
        story()
            .rule(child("Count the stars"), Reply::text("…").behind(&never))
            .rule(child("Count the files"), Reply::text("There are three.")),
    );
    let server = world.serve();
    let (parent, other) = (server.session(), server.session());
    let id = task_id(&parent.uses("asyncagents_task", launch("stars", "Count the stars")));
    world.until_child_asks("Count the stars");
    let stars = parent.child();
    parent.delete();
    until_in_flight(&world, 0);
    // OpenCode deletes what it knows to be below it.
    if !opencode.is_v2() {
        world.until("the child is gone", || (!stars.exists()).then_some(()));
    }
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

/// A limit, and what the parent is told when it is reached.
struct Budget {
    setting: &'static str,
    why: &'static str,
}

told!(v1, v2_background: at_the_end_of_its_budget_a_child_sums_up_without_tools(
    tool_calls => Budget {
        setting: "tool_calls = 2",
        why: "the budget of 2 tool calls is used up",
    },
    tokens => Budget {
        setting: "tokens = 100000",
        why: "the budget of 100,000 tokens is used up",
    },
));

fn at_the_end_of_its_budget_a_child_sums_up_without_tools(
    opencode: Opencode,
    Budget { setting, why }: Budget,
) {
    let never = Gate::closed();
    let looks = |n: u64| {
        let look = command(&format!("echo shelf {n}"));
        Reply::call(opencode.shell(), look).usage(31_000, 0, 100)
    };
    let of_child = |turn| child("").turn_is(turn).tools(true);
    let world = Setup::new(
        opencode,
        story()
            .rule(
                // OpenCode 2 may ask this beside all sessions.
                When::always().last("This is your last turn"),
                Reply::text("So far: one shelf."),
            )
            .rule(child("Now finish"), Reply::text("All shelves."))
            .rule(of_child(0), looks(0))
            .rule(of_child(1), looks(1))
            .rule(of_child(2), looks(2))
            // It may be asked once more before it is stopped.
            .rule(of_child(3), Reply::text("…").behind(&never)),
    )
    .settings(&format!("[budget]\n{setting}\n"))
    .world();
    let server = world.serve();
    let parent = server.session();
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
        newest.tool_names().contains(&opencode.shell().to_owned()),
        "{newest:?}"
    );
}
