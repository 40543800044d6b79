//! Codex's windows share a daemon, which has their threads.

use asyncagents_scripted_model::{Gate, Reply, Script};
use rstest::rstest;

use crate::harness::{Agent, World, asked, one_task};

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

#[test]
fn what_waits_in_the_queue_of_a_turn_that_is_killed_is_told_once() {
    let (task, never) = (Gate::closed(), Gate::closed());
    let script = Script::new()
        .rule(
            asked(CODEX, "[asyncagents notice"),
            Reply::text("I was told of it."),
        )
        .rule(
            asked(CODEX, "is queued"),
            Reply::text("I never say this.").behind(&never),
        )
        .then(one_task(CODEX, &task));
    let Some(world) = World::new(CODEX, script) else {
        return;
    };
    let terminal = world.terminal("tmux", WINDOW);
    terminal.types("Delegate this");
    world.until_asked("what comes next", |request| {
        request.last().contains("is queued")
    });
    task.open();
    world.until_ended(1);
    world.kill("codex --no-alt-screen");
    world.kill(DAEMON);
    world.until_gone("asyncagents mcp");
    drop(terminal);
    let terminal = world.terminal("tmux-2", &["resume", "--last"]);
    terminal.until_shows("I was told of it.");
    world.leave(&terminal);
    assert_eq!(world.results_told().len(), 1, "{:?}", world.results_told());
}
