//! Five tasks that one answer launches.

use std::{collections::HashSet, thread};

use asyncagents_scripted_model::{Gate, Reply, Script};
use rstest::rstest;
use serde_json::json;

use crate::harness::{Agent, World, asked, child, told};

/// "Delegate this" launches five tasks, which end when their gates open.
fn five(agent: Agent) -> (Script, Vec<Gate>) {
    let gates: Vec<Gate> = (0..5).map(|_| Gate::closed()).collect();
    let mut script = Script::new();
    let mut launches = Reply::text("I delegate.");
    for (number, gate) in gates.iter().enumerate() {
        let prompt = format!("Say number {number}");
        script = script.rule(child(&prompt), Reply::text("A number.").behind(gate));
        let task = json!({"description": "count", "prompt": prompt, "agent": "general"});
        launches = launches.and_call(agent.tool("task"), task);
    }
    let script = script
        .rule(asked(agent, "[asyncagents notice"), Reply::text("Told."))
        .rule(asked(agent, "is queued"), Reply::text("I go on meanwhile."))
        .rule(asked(agent, "Delegate this"), launches);
    (script, gates)
}

/// Lets the tasks end, together or each after the one before.
fn end(world: &World, gates: &[Gate], together: bool) {
    for number in 0..gates.len() {
        world.until_task_asks(&format!("Say number {number}"));
    }
    for (number, gate) in gates.iter().enumerate() {
        gate.open();
        if !together {
            world.until_ended(number + 1);
        }
    }
    world.until_told(gates.len());
}

/// Several ends may share a message, with the mark of one.
fn each_is_told_once(world: &World) {
    let (marks, results) = (told(&world.requests()), world.results_told());
    let different = |all: &[String]| all.iter().collect::<HashSet<_>>().len();
    assert_eq!((results.len(), different(&results)), (5, 5), "{results:?}");
    assert_eq!(different(&marks), marks.len(), "{marks:?}");
}

#[rstest]
#[case::claude_code(Agent::ClaudeCode)]
#[case::codex(Agent::Codex)]
fn in_a_window_each_end_is_told_once(#[case] agent: Agent, #[values(true, false)] together: bool) {
    let (script, gates) = five(agent);
    let Some(world) = World::new(agent, script) else {
        return;
    };
    let terminal = world.terminal("tmux", &[]);
    terminal.types("Delegate this");
    terminal.until_shows("I go on meanwhile.");
    end(&world, &gates, together);
    world.leave(&terminal);
    each_is_told_once(&world);
}

#[rstest]
#[case::claude_code(Agent::ClaudeCode)]
#[case::codex(Agent::Codex)]
fn without_a_window_each_end_is_told_once_before_the_program_ends(#[case] agent: Agent) {
    let (script, gates) = five(agent);
    let Some(world) = World::new(agent, script) else {
        return;
    };
    let done = thread::scope(|scope| {
        let done = scope.spawn(|| world.print_mode("Delegate this", agent.unasked()));
        end(&world, &gates, false);
        done.join().expect("it ends")
    });
    assert!(done.printed.contains("Told."), "{done:?}");
    world.until_gone("asyncagents");
    each_is_told_once(&world);
}
