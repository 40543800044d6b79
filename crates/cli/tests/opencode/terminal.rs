//! OpenCode's terminal interface, which opens no port.

use asyncagents_scripted_model::{Gate, Reply};
use serde_json::json;

use crate::harness::{
    Opencode, Tui, World, asked, child, counting, forked, launch, resume, task_id,
};
use crate::told::told;

told!(v1, v2, v2_background:
    a_user_sees_the_launch_the_toast_and_the_notice,
    every_tool_works_there,
);

fn a_user_sees_the_launch_the_toast_and_the_notice(opencode: Opencode) {
    let counted = Gate::closed();
    let task = launch("count", "Count the files");
    let world = World::new(
        opencode,
        counting(&counted)
            .rule(asked("Launch one"), Reply::call("asyncagents_task", task))
            .rule(asked("All 1 tasks finished."), Reply::text("I was told.")),
    );
    // OpenCode 2 has no toasts that anybody can send.
    let toast = |tui: &Tui<'_>, words: &str| {
        if !opencode.is_v2() {
            tui.until_toast(words);
        }
    };
    let tui = world.tui();
    tui.types("Launch one");
    toast(&tui, "Agent \"count\" started");
    tui.until_shows("Noted.");
    world.until_child_asks("Count the files");
    assert!(!tui.screen().contains("finished"), "{}", tui.screen());

    counted.open();
    toast(&tui, "Agent \"count\" finished in");
    let screen = tui.until_shows("Task Progress: 1/1");
    assert!(screen.contains("Agent \"count\" finished in"), "{screen}");
    let screen = tui.until_shows("I was told.");
    // What is meant for the model is not shown.
    assert!(!screen.contains("asyncagents_output tools"), "{screen}");
    world.stays("shown once", || {
        tui.screen().matches("Task Progress: 1/1").count() == 1
    });
}

fn every_tool_works_there(opencode: Opencode) {
    let (counted, never) = (Gate::closed(), Gate::closed());
    let world = World::new(
        opencode,
        counting(&counted)
            .rule(child("And the folders?"), Reply::text("There are two."))
            .rule(child("What was said?"), Reply::text("You counted."))
            .rule(child("Count the stars"), Reply::text("…").behind(&never)),
    );
    let tui = world.tui();
    let launched = tui.uses("asyncagents_task", &launch("count", "Count the files"));
    let id = task_id(&launched);
    let list = tui.uses("asyncagents_list", &json!({}));
    assert!(list.contains(&id) && list.contains("running"), "{list}");
    let shown = tui.uses("asyncagents_output", &json!({"task_id": id}));
    assert!(shown.contains("is running"), "{shown}");
    counted.open();
    let wait = json!({"task_id": id, "block": true, "timeout": 90});
    let result = tui.uses("asyncagents_output", &wait);
    assert!(result.contains("There are three."), "{result}");

    tui.uses("asyncagents_task", &resume(&id, "And the folders?"));
    let asked = world.until_child_asks("And the folders?").text();
    assert!(asked.contains("There are three."), "{asked}");
    let result = tui.uses("asyncagents_output", &wait);
    assert!(result.contains("There are two."), "{result}");

    tui.uses("asyncagents_task", &forked("recall", "What was said?"));
    let asked = world.until_child_asks("What was said?").text();
    for known in ["<inherited_context>", "Count the files", "There are two."] {
        assert!(asked.contains(known), "{known}: {asked}");
    }

    let launched = tui.uses("asyncagents_task", &launch("stars", "Count the stars"));
    let stars = task_id(&launched);
    world.until_child_asks("Count the stars");
    let cancelled = tui.uses("asyncagents_cancel", &json!({"task_id": stars}));
    assert!(
        cancelled.contains(&format!("Cancelled {stars}")),
        "{cancelled}"
    );
    world.until("nobody waits for the model", || {
        (world.model.in_flight() == 0).then_some(())
    });

    let both = json!({"description": "both", "prompt": "More", "agent": "general", "fork": true, "resume": id});
    let refused = tui.uses("asyncagents_task", &both);
    assert!(refused.contains("exclude each other"), "{refused}");
    let nobody = json!({"description": "no", "prompt": "More", "agent": "wizard"});
    let refused = tui.uses("asyncagents_task", &nobody);
    assert!(
        refused.contains("`wizard`") && refused.contains("explore"),
        "{refused}"
    );
    let cleared = tui.uses("asyncagents_clear", &json!({}));
    assert!(cleared.contains("Cleared 3 tasks"), "{cleared}");

    // The same as OpenCode has it.
    let session = tui.session_id();
    drop(tui);
    let server = world.serve_afterwards();
    let parent = server.session_of(&session);
    assert_eq!(parent.results("asyncagents_task").len(), 6);
    // OpenCode 2 does not know whose children they are, and asyncagents has forgotten them.
    let known = if opencode.is_v2() { 0 } else { 3 };
    assert_eq!(parent.children().len(), known);
    for once in ["\"recall\" finished", "\"stars\" cancelled"] {
        let mut told = parent.notices();
        told.retain(|notice| notice.visible.contains(once));
        assert_eq!(told.len(), 1, "{once}: {told:?}");
    }
}
