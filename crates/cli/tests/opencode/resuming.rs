//! A finished task is asked something more.

use asyncagents_scripted_model::{Gate, Reply};
use serde_json::json;

use crate::harness::{Opencode, World, child, launch, resume, story, task_id};
use crate::told::told;

told!(v1, v2_background:
    seed_003_a_follow_up_is_answered_in_the_same_session_with_its_full_history,
    seed_003_a_caller_can_wait_for_the_answer_to_a_follow_up,
    seed_003_a_task_whose_session_is_gone_cannot_be_resumed,
);

/// A child counts files at once, and folders when the gate is opened.
fn counts_twice(opencode: Opencode, again: &Gate) -> World {
    let two = Reply::text("There are two.").behind(again);
    World::new(
        opencode,
        story()
            .rule(child("Count the files"), Reply::text("There are three."))
            .rule(child("And the folders?"), two),
    )
}

fn seed_003_a_follow_up_is_answered_in_the_same_session_with_its_full_history(opencode: Opencode) {
    let again = Gate::closed();
    let world = counts_twice(opencode, &again);
    let server = world.serve();
    let parent = server.session();
    let id = task_id(&parent.uses("asyncagents_task", launch("count", "Count the files")));
    parent.until_told(1);
    let session = parent.child();

    let resumed = parent.uses("asyncagents_task", resume(&id, "And the folders?"));
    assert!(resumed.contains(&id), "{resumed}");
    assert!(resumed.contains("resume #1"), "{resumed}");
    let asked = world.until_child_asks("And the folders?");
    assert!(asked.text().contains("Count the files"), "{}", asked.text());
    assert!(
        asked.text().contains("There are three."),
        "{}",
        asked.text()
    );
    // While it works it can be neither resumed again nor read to the end.
    let busy = parent.uses("asyncagents_task", resume(&id, "Hurry"));
    assert!(busy.contains("is still resumed"), "{busy}");
    let shown = parent.uses("asyncagents_output", json!({"task_id": id}));
    assert!(shown.contains("is resumed"), "{shown}");

    again.open();
    let notices = parent.until_told(2);
    let notice = &notices[1];
    assert!(
        notice.visible.starts_with("✓ **Resume #1 completed in "),
        "{notice:?}"
    );
    let result = parent.uses("asyncagents_output", json!({"task_id": id}));
    assert!(result.contains("is completed"), "{result}");
    assert!(result.contains("There are two."), "{result}");
    let list = parent.uses("asyncagents_list", json!({}));
    assert!(list.contains(&format!("{id} (resumed)")), "{list}");
    assert_eq!(parent.children().len(), 1, "it is the same session");
    assert_eq!(session.requests().len(), 2);
    world.stays("told twice in all", || parent.ends_told() == 2);
}

fn seed_003_a_caller_can_wait_for_the_answer_to_a_follow_up(opencode: Opencode) {
    let again = Gate::closed();
    let world = counts_twice(opencode, &again);
    let server = world.serve();
    let parent = server.session();
    let id = task_id(&parent.uses("asyncagents_task", launch("count", "Count the files")));
    parent.until_told(1);
    parent.uses("asyncagents_task", resume(&id, "And the folders?"));
    let wait = json!({"task_id": id, "block": true, "timeout": 90});
    parent.begins_to_use("asyncagents_output", &wait);
    parent.until_using("asyncagents_output");
    again.open();
    parent.until_idle();
    let results = parent.results("asyncagents_output");
    assert_eq!(results.len(), 1, "{results:?}");
    assert!(results[0].contains("There are two."), "{results:?}");
    world.stays("told only of the launch", || parent.ends_told() == 1);
}

fn seed_003_a_task_whose_session_is_gone_cannot_be_resumed(opencode: Opencode) {
    let world = World::new(
        opencode,
        story().rule(child("Count"), Reply::text("There are three.")),
    );
    let server = world.serve();
    let parent = server.session();
    let id = task_id(&parent.uses("asyncagents_task", launch("number", "Count")));
    parent.until_told(1);
    parent.child().delete();
    let refused = parent.uses("asyncagents_task", resume(&id, "Count again"));
    assert!(refused.contains("no longer exists"), "{refused}");
    assert!(
        refused.contains("start a new asyncagents_task"),
        "{refused}"
    );
    assert!(parent.children().is_empty());
    assert_eq!(parent.ends_told(), 1);
}
