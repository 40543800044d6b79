//! Processes that end as no process can prevent.

use asyncagents_scripted_model::{Gate, Reply};
use serde_json::json;

use crate::harness::{
    Opencode, Setup, World, asked, child, counting, each_shelf_told_once, launch, resume, story,
    task_id,
};
use crate::told::told;

told!(v1, v2, v2_background:
    a_bridge_that_is_killed_is_replaced_and_nothing_is_lost_or_doubled,
    a_caller_who_waits_while_the_bridge_is_killed_gets_an_answer,
);
// What becomes of the server in the background is told in `surviving` and `chaos`.
told!(v1, v2:
    opencode_is_killed_and_started_again_and_its_tasks_end_with_advice_and_go_on,
    opencode_is_stopped_properly_and_started_again,
    two_opencodes_in_one_folder_leave_each_others_tasks_alone,
    another_opencode_in_the_folder_tells_what_became_of_one_that_was_killed,
);

fn a_bridge_that_is_killed_is_replaced_and_nothing_is_lost_or_doubled(opencode: Opencode) {
    let (early, late) = (Gate::closed(), Gate::closed());
    let mut script = story();
    let mut five = Reply::text("Five at once.");
    for number in 1..=5 {
        let prompt = format!("Count shelf {number}, please");
        let answer = Reply::text(format!("Shelf {number} has {number}0 books."));
        let gate = if number <= 2 { &early } else { &late };
        script = script.rule(child(&prompt), answer.behind(gate));
        let shelf = launch(&format!("shelf {number}"), &prompt);
        five = five.and_call("asyncagents_task", shelf);
    }
    let world = World::new(opencode, script.rule(asked("Launch five"), five));
    let server = world.serve();
    let parent = server.session();
    parent.asks("Launch five");
    world.until("five children work", || {
        (world.model.in_flight() == 5).then_some(())
    });

    // In the middle: two have ended, at least one of them was told.
    early.open();
    parent.until_notices(1);
    let first = world.kill_bridge();
    late.open();
    let notices = parent.until_told(5);
    each_shelf_told_once(&notices);
    let second = world.bridge().expect("a bridge");
    assert_ne!(first, second);
    world.stays("five times in all", || parent.ends_told() == 5);
    let list = parent.uses("asyncagents_list", json!({}));
    assert!(list.contains("5 completed"), "{list}");
    assert_eq!(parent.children().len(), 5, "no child was started again");
    for child in parent.children() {
        let child = server.session_of(&child.id);
        assert_eq!(child.requests().len(), 1, "no child was asked again");
    }
}

fn a_caller_who_waits_while_the_bridge_is_killed_gets_an_answer(opencode: Opencode) {
    let counted = Gate::closed();
    let world = World::new(opencode, counting(&counted));
    let server = world.serve();
    let parent = server.session();
    let id = task_id(&parent.uses("asyncagents_task", launch("count", "Count the files")));
    world.until_child_asks("Count the files");
    let wait = json!({"task_id": id, "block": true, "timeout": 60});
    parent.begins_to_use("asyncagents_output", &wait);
    parent.until_using("asyncagents_output");
    world.kill_bridge();
    counted.open();
    // An answer or an error that says what happened: the parent is never left hanging.
    parent.until_idle();
    assert_eq!(parent.results("asyncagents_output").len(), 1);
    let result = parent.uses("asyncagents_output", json!({"task_id": id, "block": true}));
    assert!(result.contains("There are three."), "{result}");
}

fn opencode_is_killed_and_started_again_and_its_tasks_end_with_advice_and_go_on(
    opencode: Opencode,
) {
    let never = Gate::closed();
    let world = Setup::new(
        opencode,
        story()
            .rule(child("Count the files"), Reply::text("There are three."))
            // It was never answered, so the model is asked both at once.
            .rule(
                child("Count the stars\nGo on counting"),
                Reply::text("There are very many."),
            )
            .rule(child("Count the stars"), Reply::text("…").behind(&never)),
    )
    .spied()
    .world();
    let server = world.serve();
    let parent = server.session();
    let files = task_id(&parent.uses("asyncagents_task", launch("files", "Count the files")));
    parent.until_told(1);
    let stars = task_id(&parent.uses("asyncagents_task", launch("stars", "Count the stars")));
    world.until_child_asks("Count the stars");
    let id = parent.id.clone();
    server.kill();

    let server = world.serve();
    let parent = server.session_of(&id);
    let asked = parent.requests().len();
    let notices = parent.until_notices(2);
    let notice = &notices[1];
    assert!(
        notice.visible.starts_with("✗ **Agent \"stars\" failed in "),
        "{notice:?}"
    );
    assert!(notice.hidden.contains("resume"), "{notice:?}");
    world.stays("each was told once", || parent.ends_told() == 2);
    // Nobody has opened this session since: it is not set to work.
    assert_eq!(parent.requests().len(), asked);
    assert_eq!(parent.asks("What has happened?"), "Noted.");
    let request = parent.requests().pop().expect("a request").text();
    assert_eq!(
        request.matches("\"stars\" failed in").count(),
        1,
        "{request}"
    );
    let list = parent.uses("asyncagents_list", json!({}));
    assert!(
        list.contains("1 completed") && list.contains("1 error"),
        "{list}"
    );
    let shown = parent.uses("asyncagents_output", json!({"task_id": stars}));
    assert!(shown.contains("resume"), "{shown}");
    let shown = parent.uses("asyncagents_output", json!({"task_id": files}));
    assert!(shown.contains("There are three."), "{shown}");

    let toasts = || {
        let requests = world.api_requests().into_iter();
        requests
            .filter(|request| request == "POST /tui/show-toast")
            .count()
    };
    let before = toasts();
    parent.uses("asyncagents_task", resume(&stars, "Go on counting"));
    let notices = parent.until_told(3);
    assert!(
        notices[2].visible.contains("Resume #1 completed"),
        "{notices:?}"
    );
    let went_on = world.until_child_asks("Go on counting");
    assert!(
        went_on.text().contains("Count the stars"),
        "{}",
        went_on.text()
    );
    let result = parent.uses("asyncagents_output", json!({"task_id": stars}));
    assert!(result.contains("There are very many."), "{result}");
    // It belongs to this OpenCode now, which shows its end; OpenCode 2 has no toasts.
    if !opencode.is_v2() {
        world.until("a toast", || (toasts() > before).then_some(()));
    }
    assert_eq!(parent.children().len(), 2);
    world.stays("three times in all", || parent.ends_told() == 3);
}

fn opencode_is_stopped_properly_and_started_again(opencode: Opencode) {
    let never = Gate::closed();
    let script = story().rule(child("Count the stars"), Reply::text("…").behind(&never));
    let world = Setup::new(opencode, script).world();
    let server = world.serve();
    let parent = server.session();
    parent.uses("asyncagents_task", launch("stars", "Count the stars"));
    world.until_child_asks("Count the stars");
    let id = parent.id.clone();
    server.stop();
    world.until("nothing is left running", || {
        world.processes().is_empty().then_some(())
    });

    let server = world.serve();
    let parent = server.session_of(&id);
    let asked = parent.requests().len();
    let notices = parent.until_notices(1);
    assert!(
        notices[0].visible.contains("\"stars\" failed"),
        "{notices:?}"
    );
    assert!(notices[0].hidden.contains("resume"), "{notices:?}");
    world.stays("told once", || parent.ends_told() == 1);
    // Nobody looks at that session here, so nobody pays for an answer.
    assert_eq!(parent.requests().len(), asked);
}

fn two_opencodes_in_one_folder_leave_each_others_tasks_alone(opencode: Opencode) {
    let counted = Gate::closed();
    let world = World::new(opencode, counting(&counted));
    let (one, two) = (world.serve(), world.serve());
    let parent = one.session();
    parent.uses("asyncagents_task", launch("count", "Count the files"));
    world.until_child_asks("Count the files");
    // The other one is used, and killed.
    let other = two.session();
    let list = other.uses("asyncagents_list", json!({}));
    assert_eq!(list, "No background tasks found");
    two.kill();
    world.stays("the child works on", || {
        world.model.in_flight() == 1 && parent.notices().is_empty()
    });

    counted.open();
    let notices = parent.until_told(1);
    assert!(
        notices[0].visible.contains("\"count\" finished"),
        "{notices:?}"
    );
    world.stays("told once", || parent.ends_told() == 1);
}

fn another_opencode_in_the_folder_tells_what_became_of_one_that_was_killed(opencode: Opencode) {
    let never = Gate::closed();
    let answer = Reply::text("…").behind(&never);
    let world = World::new(opencode, story().rule(child("Count the stars"), answer));
    let (one, two) = (world.serve(), world.serve());
    let parent = one.session();
    parent.uses("asyncagents_task", launch("stars", "Count the stars"));
    world.until_child_asks("Count the stars");
    let parent = parent.id.clone();
    one.kill();
    let parent = two.session_of(&parent);
    let notices = parent.until_notices(1);
    assert!(
        notices[0].visible.contains("\"stars\" failed"),
        "{notices:?}"
    );
    assert!(notices[0].hidden.contains("resume"), "{notices:?}");
    world.stays("told once", || parent.ends_told() == 1);
}
