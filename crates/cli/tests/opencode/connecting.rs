//! OpenCode 1 as one of many MCP clients: our server is an entry in its configuration, and there is no
//! plugin. The model of OpenCode 2 reaches the tools of MCP servers only by programs that it writes.

use asyncagents_scripted_model::{Gate, Reply, Script};
use serde_json::json;

use crate::harness::{Opencode, Setup, World, launch, story, task_id, tasks_model};
use crate::told::told;

told!(v1:
    a_task_is_launched_over_mcp_and_a_blocked_output_returns_its_result,
    an_end_is_told_once_with_the_answer_to_the_next_call,
    a_task_goes_on_when_its_client_has_ended_and_the_next_connection_does_not_see_it,
);

/// Has a task count the files; it says how many there are when the gate is opened.
fn counting(gate: &Gate) -> Script {
    let three = Reply::text("There are three.").behind(gate);
    story().rule(tasks_model("Count the files"), three)
}

/// Waits until the task has ended, without anyone being told.
fn until_ended(world: &World) {
    world.until("the task has ended", || {
        let ended = world.asyncagents(&["list", "--status", "completed", "--json"]);
        ended.contains("task_").then_some(())
    });
}

fn a_task_is_launched_over_mcp_and_a_blocked_output_returns_its_result(opencode: Opencode) {
    let gate = Gate::closed();
    let world = Setup::new(opencode, counting(&gate))
        .with_mcp_server()
        .world();
    let server = world.serve();
    let session = server.session();
    let launched = session.uses("asyncagents_task", launch("Count", "Count the files"));
    let says = "Your tasks belong to this connection";
    assert!(launched.contains(says), "{launched}");
    let task = task_id(&launched);
    let output = json!({"task_id": task, "block": true});
    session.begins_to_use("asyncagents_output", &output);
    session.until_using("asyncagents_output");
    gate.open();
    session.until_idle();
    let results = session.results("asyncagents_output");
    assert_eq!(results.len(), 1, "{results:?}");
    assert!(results[0].contains("There are three."), "{results:?}");
    // What was waited for is not told again, and what was said once is not said again.
    let list = session.uses("asyncagents_list", json!({}));
    assert!(list.contains(&task) && list.contains("completed"), "{list}");
    assert!(!list.contains("asyncagents notice"), "{list}");
    assert!(!list.contains(says), "{list}");
}

fn an_end_is_told_once_with_the_answer_to_the_next_call(opencode: Opencode) {
    let gate = Gate::closed();
    let world = Setup::new(opencode, counting(&gate))
        .with_mcp_server()
        .world();
    let server = world.serve();
    let session = server.session();
    let launched = session.uses("asyncagents_task", launch("Count", "Count the files"));
    gate.open();
    until_ended(&world);
    let told = session.uses("asyncagents_list", json!({}));
    assert!(told.contains("[asyncagents notice"), "{told}");
    assert!(told.contains("There are three."), "{told}");
    let again = session.uses("asyncagents_list", json!({}));
    assert!(again.contains(&task_id(&launched)), "{again}");
    assert!(!again.contains("[asyncagents notice"), "{again}");
    // Nothing wakes a session of a client that has no more than the tools.
    assert!(session.notices().is_empty());
}

fn a_task_goes_on_when_its_client_has_ended_and_the_next_connection_does_not_see_it(
    opencode: Opencode,
) {
    let gate = Gate::closed();
    let world = Setup::new(opencode, counting(&gate))
        .with_mcp_server()
        .world();
    let server = world.serve();
    let session = server.session();
    session.uses("asyncagents_task", launch("Count", "Count the files"));
    world.until("the task asks its model", || {
        (world.model.in_flight() == 1).then_some(())
    });
    let id = session.id.clone();
    server.stop();
    gate.open();
    until_ended(&world);
    let server = world.serve();
    let session = server.session_of(&id);
    let list = session.uses("asyncagents_list", json!({}));
    assert!(list.contains("No background tasks found"), "{list}");
}
