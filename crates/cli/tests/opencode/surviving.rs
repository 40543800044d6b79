//! The server that OpenCode 2 has in the background is killed, and the next client starts
//! another. OpenCode goes on by itself with what its sessions were doing. At random points it is
//! killed in `chaos`.

use asyncagents_scripted_model::{Gate, Reply};
use serde_json::json;

use crate::harness::{Opencode, Speaker, World, asked, counting, launch, task_id};
use crate::told::told;

told!(v2_background:
    a_child_that_opencode_itself_resumes_is_followed_and_not_asked_again,
    what_a_parent_was_told_is_there_after_a_kill_and_told_once,
);

fn a_child_that_opencode_itself_resumes_is_followed_and_not_asked_again(opencode: Opencode) {
    let counted = Gate::closed();
    let world = World::new(opencode, counting(&counted));
    let server = world.serve();
    let parent = server.session();
    let id = task_id(&parent.uses("asyncagents_task", launch("count", "Count the files")));
    world.until_child_asks("Count the files");
    let parent = parent.id.clone();
    server.kill();

    let server = world.serve();
    let parent = server.session_of(&parent);
    world.until("OpenCode has the child go on", || {
        (world.requests_with("Count the files").len() > 1).then_some(())
    });
    assert!(parent.notices().is_empty(), "it has not ended");
    counted.open();
    // Nobody has used the parent since, and it is set to work all the same.
    let notices = parent.until_told(1);
    assert!(
        notices[0].visible.contains("\"count\" finished"),
        "{notices:?}"
    );
    let told = parent.requests().pop().expect("a request");
    assert!(told.last().contains(&notices[0].visible), "{}", told.last());
    let result = parent.uses("asyncagents_output", json!({"task_id": id}));
    assert!(result.contains("There are three."), "{result}");
    let messages = parent.child().messages();
    let prompts = messages
        .iter()
        .filter(|message| message.by == Speaker::User && message.text.contains("Count the files"));
    assert_eq!(prompts.count(), 1, "{messages:#?}");
    world.stays("told once", || parent.ends_told() == 1);
}

fn what_a_parent_was_told_is_there_after_a_kill_and_told_once(opencode: Opencode) {
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
    parent.until_notices(1);
    let parent = parent.id.clone();
    server.kill();

    let server = world.serve();
    let parent = server.session_of(&parent);
    let notices = parent.until_told(1);
    assert!(
        notices[0].visible.contains("\"count\" finished"),
        "{notices:?}"
    );
    world.stays("told once", || parent.ends_told() == 1);
    let request = parent.requests().pop().expect("a request").text();
    assert_eq!(request.matches("\"count\" finished in").count(), 1);
}
