//! OpenCode's terminal interface, which opens no port.

use asyncagents_scripted_model::{Gate, Reply};

use crate::harness::{World, asked, child, launch, story};

#[test]
fn a_user_sees_the_launch_the_toast_and_the_notice() {
    let counted = Gate::closed();
    let task = launch("count", "Count the files");
    let world = World::new(
        story()
            .rule(
                child("Count the files"),
                Reply::text("There are three.").behind(&counted),
            )
            .rule(asked("Launch one"), Reply::call("asyncagents_task", task))
            .rule(asked("All 1 tasks finished."), Reply::text("I was told.")),
    );
    let tui = world.tui();
    tui.types("Launch one");
    tui.until_toast("Agent \"count\" started");
    tui.until_shows("Noted.");
    world.until_child_asks("Count the files");
    assert!(!tui.screen().contains("finished"), "{}", tui.screen());

    counted.open();
    tui.until_toast("Agent \"count\" finished in");
    let screen = tui.until_shows("Task Progress: 1/1");
    assert!(screen.contains("Agent \"count\" finished in"), "{screen}");
    let screen = tui.until_shows("I was told.");
    // What is meant for the model is not shown.
    assert!(!screen.contains("asyncagents_output tools"), "{screen}");
    world.stays("shown once", || {
        tui.screen().matches("Task Progress: 1/1").count() == 1
    });
}
