//! Several hooks wait for news of one session.

use asyncagents_scripted_model::Gate;
use rstest::rstest;

use crate::harness::{Agent, World, one_task, tasks};

#[rstest]
#[case::claude_code(Agent::ClaudeCode)]
#[case::codex(Agent::Codex)]
fn of_tasks_from_two_turns_each_end_is_told_once(#[case] agent: Agent) {
    let (red, green) = (Gate::closed(), Gate::closed());
    let script = tasks(agent, &[("red", &red), ("green", &green)]);
    let Some(world) = World::new(agent, script) else {
        return;
    };
    let terminal = world.terminal("tmux", &[]);
    for name in ["red", "green"] {
        terminal.types(&format!("Delegate {name}"));
        terminal.until_says(&format!("{name} runs."));
        world.until_task_asks(&format!("Say {name}"));
    }
    if agent == Agent::ClaudeCode {
        world.until("a hook waits for each turn", || {
            (world.processes("notices wait").len() >= 2).then_some(())
        });
    }
    red.open();
    world.until_told(1);
    green.open();
    world.until_told(2);
    world.leave(&terminal);
    assert_eq!(world.results_told().len(), 2, "{:?}", world.results_told());
}

/// Claude Code starts one with each launch and each end of a turn.
#[test]
fn however_many_turns_there_are_a_few_hooks_wait_and_one_tells() {
    let gate = Gate::closed();
    let Some(world) = World::new(Agent::ClaudeCode, one_task(Agent::ClaudeCode, &gate)) else {
        return;
    };
    let terminal = world.terminal("tmux", &[]);
    terminal.types("Delegate this");
    terminal.until_says("I go on meanwhile.");
    for turn in 0..6 {
        terminal.types(&format!("Word number {turn}"));
        world.until_asked("a word", |request| {
            request.last().contains(&format!("Word number {turn}"))
        });
        terminal.until_says("Very well.");
    }
    // The newest may have just begun.
    world.until("a few hooks wait", || {
        let waiting = world.processes("notices wait").len();
        (1..=3).contains(&waiting).then_some(())
    });
    gate.open();
    world.until_told(1);
    world.leave(&terminal);
    assert_eq!(world.results_told().len(), 1, "{:?}", world.results_told());
}
