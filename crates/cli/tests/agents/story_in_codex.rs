//! Stories in Codex alone.

use asyncagents_scripted_model::{Gate, Reply};

use crate::harness::{Agent, World, asked, notices_in, one_task};

const CODEX: Agent = Agent::Codex;

#[test]
fn what_exec_without_trusted_hooks_was_not_told_is_told_when_it_is_resumed() {
    let gate = Gate::closed();
    let script = one_task(CODEX, &gate).rule(
        asked(CODEX, "Anything new"),
        Reply::call(CODEX.tool("list"), serde_json::json!({})),
    );
    let Some(world) = World::new(CODEX, script) else {
        return;
    };
    let done = world.print_mode("Delegate this", &[]);
    assert!(done.printed.contains("I go on meanwhile."), "{done:?}");
    gate.open();
    world.until_ended(1);
    let done = world.print_mode("Anything new?", &["resume", "--last"]);
    assert!(done.printed.contains("I was told of it."), "{done:?}");
    // What is queued begins a turn, which what the user says is put into.
    let newest = world.requests().pop().expect("a request");
    let told = notices_in(&newest.text());
    assert_eq!(told.len(), 1, "{told:?}");
}
