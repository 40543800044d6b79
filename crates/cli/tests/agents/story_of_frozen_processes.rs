//! Processes of ours that are there and do nothing, for a while or for good.

use asyncagents_scripted_model::{Gate, Reply, Script};
use rstest::rstest;
use serde_json::json;

use crate::harness::{Agent, World, asked, notices_in, one_task};

const CLAUDE: Agent = Agent::ClaudeCode;

/// A hook that waits for news of its session.
const WAITER: &str = "notices wait";

#[rstest]
#[case::claude_code(Agent::ClaudeCode)]
#[case::codex(Agent::Codex)]
fn while_our_server_is_frozen_the_session_is_told_and_afterwards_it_answers(#[case] agent: Agent) {
    let gate = Gate::closed();
    let script = Script::new()
        .rule(
            asked(agent, "What was it?"),
            Reply::call(agent.tool("list"), json!({})),
        )
        .then(one_task(agent, &gate))
        .rule(asked(agent, "look it up"), Reply::text("One is mine."));
    let Some(world) = World::new(agent, script) else {
        return;
    };
    let terminal = world.terminal("tmux", &[]);
    terminal.types("Delegate this");
    terminal.until_shows("I go on meanwhile.");
    world.until_task_asks("Say the colour");
    world.freeze("asyncagents mcp");
    gate.open();
    terminal.until_says("I was told of it.");
    world.thaw("asyncagents mcp");
    terminal.types("What was it?");
    terminal.until_shows("One is mine.");
    world.leave(&terminal);
    assert_eq!(world.results_told().len(), 1, "{:?}", world.results_told());
}

#[rstest]
#[case::claude_code(Agent::ClaudeCode)]
#[case::codex(Agent::Codex)]
fn what_a_frozen_worker_was_about_to_do_it_does_once(#[case] agent: Agent) {
    let gate = Gate::closed();
    let Some(world) = World::new(agent, one_task(agent, &gate)) else {
        return;
    };
    let terminal = world.terminal("tmux", &[]);
    terminal.types("Delegate this");
    terminal.until_says("I go on meanwhile.");
    world.until_task_asks("Say the colour");
    world.freeze(" worker");
    gate.open();
    terminal.types("Anything new?");
    terminal.until_shows("Very well.");
    world.thaw(" worker");
    terminal.until_shows("I was told of it.");
    world.leave(&terminal);
    assert_eq!(world.results_told().len(), 1, "{:?}", world.results_told());
}

#[test]
fn frozen_hooks_tell_once_when_they_go_on() {
    let gate = Gate::closed();
    let Some(world) = World::new(CLAUDE, one_task(CLAUDE, &gate)) else {
        return;
    };
    let terminal = world.terminal("tmux", &[]);
    terminal.types("Delegate this");
    terminal.until_shows("I go on meanwhile.");
    world.until("the turn's end has its hook", || {
        (world.processes(WAITER).len() == 2).then_some(())
    });
    world.freeze(WAITER);
    gate.open();
    world.until_ended(1);
    assert_eq!(world.results_told(), [""; 0]);
    world.thaw(WAITER);
    terminal.until_shows("I was told of it.");
    world.leave(&terminal);
    assert_eq!(world.results_told().len(), 1, "{:?}", world.results_told());
}

/// What it claimed is in nobody's transcript. Other hooks that wait leave it alone: Claude Code may be frozen
/// with it, and would be told as often as there are hooks.
#[test]
fn what_a_hook_claimed_and_never_handed_over_is_told_with_a_later_prompt() {
    let gate = Gate::closed();
    let Some(world) = World::new(CLAUDE, one_task(CLAUDE, &gate)) else {
        return;
    };
    let terminal = world.terminal("tmux", &[]);
    terminal.types("Delegate this");
    terminal.until_shows("I go on meanwhile.");
    world.until("the turn's end has its hook", || {
        (world.processes(WAITER).len() == 2).then_some(())
    });
    world.freeze(WAITER);
    gate.open();
    let claude = world.processes("claude --permission-mode");
    let lost = world.hook(
        &["notices", "wait", "--host", "claude-code"],
        &[
            ("CLAUDE_CODE_SESSION_ATTENDED", "1"),
            ("CLAUDE_PID", &claude[0].to_string()),
        ],
        &json!({
            "session_id": world.session_with("Delegate this"), "hook_event_name": "Stop",
        }),
    );
    assert_eq!(notices_in(&lost.remarks).len(), 1, "{lost:?}");
    world.thaw(WAITER);
    world.until_gone(WAITER);
    // It may show yet, so it is not told again at once.
    while world.results_told().is_empty() {
        let before = world.requests().len();
        terminal.types("Anything new?");
        world.until("it is asked", || {
            (world.requests().len() > before).then_some(())
        });
    }
    terminal.until_shows("I was told of it.");
    world.leave(&terminal);
    assert_eq!(world.results_told().len(), 1, "{:?}", world.results_told());
}
