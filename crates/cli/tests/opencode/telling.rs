//! Every end is told, and told once, whatever the parent is doing.

use std::{collections::BTreeSet, fs};

use asyncagents_scripted_model::{Gate, Reply};
use serde_json::json;

use crate::harness::{
    Notice, Opencode, World, asked, child, counting, each_shelf_told_once, launch, story, task_id,
};
use crate::told::told;

told!(v1, v2_background:
    a_notice_that_comes_during_the_parents_last_step_is_answered_too,
    a_user_who_stops_the_parent_while_a_notice_waits_still_has_it_once,
);

#[derive(Debug, Clone, Copy)]
enum Parent {
    Idle,
    UsingATool,
    Answering,
}

/// What five children are told to do.
fn prompt(number: usize) -> String {
    format!("Count shelf {number}, please")
}

told!(v1, v2_background: five_children_five_results_five_notices(
    idle => Parent::Idle,
    in_a_long_tool_call => Parent::UsingATool,
    in_a_slow_answer => Parent::Answering,
));

fn five_children_five_results_five_notices(opencode: Opencode, doing: Parent) {
    let (counted, thought) = (Gate::closed(), Gate::closed());
    let mut script = story().rule(
        asked("Think about it"),
        Reply::text("I have thought.").behind(&thought),
    );
    let mut five = Reply::text("Five at once.");
    for number in 1..=5 {
        let answer = Reply::text(format!("Shelf {number} has {number}0 books."));
        script = script.rule(child(&prompt(number)), answer.behind(&counted));
        let shelf = launch(&format!("shelf {number}"), &prompt(number));
        five = five.and_call("asyncagents_task", shelf);
    }
    let world = World::new(opencode, script.rule(asked("Launch five"), five));
    let server = world.serve();
    let parent = server.session();
    parent.asks("Launch five");
    let ids: Vec<String> = parent
        .results("asyncagents_task")
        .iter()
        .map(|launched| task_id(launched))
        .collect();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), 5, "{ids:?}");
    (1..=5).for_each(|number| {
        world.until_child_asks(&prompt(number));
    });

    let go = world.project("go");
    match doing {
        Parent::Idle => {}
        Parent::UsingATool => {
            parent.begins_to_run("until test -e go; do sleep 0.05; done");
        }
        Parent::Answering => {
            parent.begins("Think about it");
            world.until("the parent thinks", || {
                (world.model.in_flight() == 6).then_some(())
            });
        }
    }
    counted.open();
    let children = parent.children();
    assert_eq!(children.len(), 5);
    world.until("all children are done", || {
        let mut children = children.iter();
        let idle = children.all(|child| server.session_of(&child.id).is_idle());
        idle.then_some(())
    });
    // Whatever the parent is doing, it has them before it goes on.
    parent.until_notices(5);
    fs::write(&go, "").expect("written");
    thought.open();

    let notices = parent.until_told(5);
    each_shelf_told_once(&notices);
    let finished = |notice: &&Notice| notice.hidden.contains("All 5 tasks finished.");
    assert_eq!(notices.iter().filter(finished).count(), 1, "{notices:#?}");
    // Seed 003: the others say what to do while some are running.
    let leftovers = |notice: &&Notice| notice.hidden.contains("WATCH OUT for leftovers");
    let before = notices.iter().filter(leftovers).count();
    assert_eq!(before, notices.len() - 1, "{notices:#?}");
    // Nothing more has to be asked for.
    for number in 1..=5 {
        let result = format!("\nShelf {number} has {number}0 books.\n</result>");
        let has_it = |notice: &&Notice| notice.hidden.contains(&result);
        assert_eq!(notices.iter().filter(has_it).count(), 1, "{notices:#?}");
    }
    for (number, id) in ids.iter().enumerate() {
        let result = parent.uses("asyncagents_output", json!({"task_id": id}));
        let answer = format!("Shelf {} has {}0 books.", number + 1, number + 1);
        assert!(result.contains(&answer), "{answer}: {result}");
    }
    world.stays("five times in all", || parent.ends_told() == 5);
    // The model has read each of them.
    let read = parent.requests().pop().expect("a request").text();
    for number in 1..=5 {
        let told = format!("\"shelf {number}\" finished in");
        assert_eq!(read.matches(&told).count(), 1, "{told}");
    }
}

fn a_notice_that_comes_during_the_parents_last_step_is_answered_too(opencode: Opencode) {
    let (counted, said) = (Gate::closed(), Gate::closed());
    let world = World::new(
        opencode,
        counting(&counted).rule(asked("Say goodbye"), Reply::text("Goodbye.").behind(&said)),
    );
    let server = world.serve();
    let parent = server.session();
    parent.uses("asyncagents_task", launch("count", "Count the files"));
    world.until_child_asks("Count the files");
    parent.begins("Say goodbye");
    world.until("the parent is about to answer", || {
        (world.model.in_flight() == 2).then_some(())
    });
    counted.open();
    parent.until_notices(1);
    said.open();

    let notices = parent.until_told(1);
    assert!(
        notices[0].visible.contains("\"count\" finished"),
        "{notices:?}"
    );
    let told = parent.requests().pop().expect("a request");
    assert!(told.last().contains(&notices[0].visible), "{}", told.last());
    world.stays("told once", || parent.ends_told() == 1);
}

fn a_user_who_stops_the_parent_while_a_notice_waits_still_has_it_once(opencode: Opencode) {
    let (counted, never) = (Gate::closed(), Gate::closed());
    let world = World::new(
        opencode,
        counting(&counted).rule(
            asked("Think about it").times(1),
            Reply::text("…").behind(&never),
        ),
    );
    let server = world.serve();
    let parent = server.session();
    parent.uses("asyncagents_task", launch("count", "Count the files"));
    world.until_child_asks("Count the files");
    parent.begins("Think about it");
    world.until("the parent thinks", || {
        (world.model.in_flight() == 2).then_some(())
    });
    counted.open();
    let notices = parent.until_notices(1);
    parent.abort();
    assert!(
        notices[0].visible.contains("\"count\" finished"),
        "{notices:?}"
    );
    world.stays("told once", || parent.ends_told() == 1);
    parent.until_idle();

    // The next thing the user says is answered with the notice known.
    parent.asks("Go on");
    let request = parent.requests().pop().expect("a request");
    let told = request.text().matches("\"count\" finished in").count();
    assert_eq!(told, 1, "{}", request.text());
    world.stays("still told once", || parent.ends_told() == 1);
}
