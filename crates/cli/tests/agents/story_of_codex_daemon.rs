//! Codex's windows share a daemon, which has their threads.

use asyncagents_scripted_model::Gate;
use rstest::rstest;

use crate::harness::{Agent, World, one_task};

const CODEX: Agent = Agent::Codex;

/// By which a window is known among the processes.
const WINDOW: &[&str] = &["--no-alt-screen"];

const DAEMON: &str = "app-server --listen";

/// What happens to Codex while a task runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lost {
    WindowIsClosed,
    WindowIsKilled,
    DaemonIsKilled,
    BothAreKilled,
}

#[rstest]
#[case(Lost::WindowIsClosed)]
#[case(Lost::WindowIsKilled)]
#[case(Lost::DaemonIsKilled)]
#[case(Lost::BothAreKilled)]
fn what_ends_while_nobody_looks_is_told_once(#[case] lost: Lost) {
    let gate = Gate::closed();
    let Some(world) = World::new(CODEX, one_task(CODEX, &gate)) else {
        return;
    };
    let terminal = world.terminal("tmux", WINDOW);
    terminal.types("Delegate this");
    terminal.until_says("I go on meanwhile.");
    world.until_task_asks("Say the colour");
    assert!(!world.processes(DAEMON).is_empty(), "it has a daemon");
    if lost == Lost::WindowIsClosed {
        terminal.types("/quit");
    }
    if matches!(lost, Lost::WindowIsKilled | Lost::BothAreKilled) {
        world.kill("codex --no-alt-screen");
    }
    if matches!(lost, Lost::DaemonIsKilled | Lost::BothAreKilled) {
        world.kill(DAEMON);
        world.until_gone("asyncagents mcp");
    }
    drop(terminal);
    world.until_gone("codex --no-alt-screen");
    gate.open();
    world.until_ended(1);

    let terminal = world.terminal("tmux-2", &["resume", "--last"]);
    terminal.until_shows("I was told of it.");
    world.leave(&terminal);
    assert_eq!(world.results_told().len(), 1, "{:?}", world.results_told());
}
