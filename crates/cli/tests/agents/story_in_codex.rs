//! Stories in Codex alone.

use asyncagents_scripted_model::{Gate, Reply, Script};
use rstest::rstest;
use serde_json::json;

use crate::harness::{Agent, World, asked, child, launch, notices_in, one_task, told};

const CODEX: Agent = Agent::Codex;

const NO_DAEMON: &[&str] = &["--disable", "daemon_auto_start"];

#[test]
fn what_exec_without_trusted_hooks_was_not_told_is_told_when_it_is_resumed() {
    let gate = Gate::closed();
    let script = one_task(CODEX, &gate).rule(
        asked(CODEX, "Anything new"),
        Reply::call(CODEX.tool("list"), json!({})),
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

#[rstest]
#[case::with_its_daemon(true, &[])]
#[case::without_its_daemon(true, NO_DAEMON)]
#[case::without_hooks(false, &[])]
fn an_end_in_the_middle_of_a_turn_is_told_once(#[case] hooks: bool, #[case] options: &[&str]) {
    let (task, turn) = (Gate::closed(), Gate::closed());
    let script = Script::new()
        .rule(
            asked(CODEX, "[asyncagents notice"),
            Reply::text("I was told of it."),
        )
        .rule(
            asked(CODEX, "is queued"),
            Reply::call("exec_command", json!({"cmd": "echo a note"})).behind(&turn),
        )
        .rule(asked(CODEX, "a note"), Reply::text("I have read it."))
        .then(one_task(CODEX, &task));
    let Some(world) = World::new(CODEX, script) else {
        return;
    };
    let world = if hooks { world } else { world.without_hooks() };
    let terminal = world.terminal("tmux", options);
    terminal.types("Delegate this");
    world.until_asked("what comes next", |request| {
        request.last().contains("is queued")
    });
    task.open();
    world.until_ended(1);
    turn.open();
    terminal.until_shows("I was told of it.");
    world.leave(&terminal);
    let told = told(&world.requests());
    assert_eq!(told.len(), 1, "{told:?}");
}

#[test]
fn a_notice_for_a_thread_that_nobody_continues_keeps_nothing_running() {
    let gate = Gate::closed();
    let Some(world) = World::new(CODEX, one_task(CODEX, &gate)) else {
        return;
    };
    let terminal = world.terminal("tmux", NO_DAEMON);
    terminal.types("Delegate this");
    terminal.until_says("I go on meanwhile.");
    world.kill("codex --disable");
    drop(terminal);
    gate.open();
    world.until_ended(1);
    world.until_gone("asyncagents");
    let terminal = world.terminal("tmux-2", &[&["resume", "--last"], NO_DAEMON].concat());
    terminal.until_shows("I was told of it.");
    world.leave(&terminal);
    assert_eq!(world.results_told().len(), 1, "{:?}", world.results_told());
}

/// The agent starts a sub-agent, which delegates; when it is done, the agent lists its own tasks.
fn with_sub_agent() -> Script {
    let multi_agent = |tool: &str| format!("multi_agent_v1/{tool}");
    let agent = asked(CODEX, "nickname").capture("agent", r#""agent_id":"([0-9a-f-]+)"#);
    Script::new()
        .rule(child("Say the colour"), Reply::text("ultramarine"))
        .rule(
            asked(CODEX, "No background tasks found"),
            Reply::text("None are mine."),
        )
        .rule(
            asked(CODEX, "[asyncagents notice"),
            Reply::text("The sub-agent is done."),
        )
        .rule(
            asked(CODEX, "is done."),
            Reply::call(CODEX.tool("list"), json!({})),
        )
        .rule(asked(CODEX, "is queued"), Reply::text("I wait for it."))
        .rule(
            asked(CODEX, "You are below"),
            launch(CODEX, "Say the colour", false),
        )
        .rule(
            agent,
            Reply::call(
                multi_agent("wait_agent"),
                json!({"targets": ["{{agent}}"], "timeout_ms": 60000}),
            ),
        )
        .rule(
            asked(CODEX, "Delegate this"),
            Reply::call(
                multi_agent("spawn_agent"),
                json!({"message": "You are below"}),
            ),
        )
}

#[rstest]
#[case::in_a_window(true)]
#[case::without_a_window(false)]
fn a_task_of_a_sub_agent_belongs_to_its_thread_which_does_not_end_before_it_is_told(
    #[case] window: bool,
) {
    let Some(world) = World::new(CODEX, with_sub_agent()) else {
        return;
    };
    if window {
        let terminal = world.terminal("tmux", &[]);
        terminal.types("Delegate this");
        terminal.until_says("None are mine.");
        world.leave(&terminal);
    } else {
        let done = world.print_mode("Delegate this", CODEX.unasked());
        assert_eq!(done.printed.trim(), "None are mine.", "{done:?}");
        world.until_gone("asyncagents");
    }
    let told = told(&world.requests());
    assert_eq!(told.len(), 1, "{told:?}");
}
