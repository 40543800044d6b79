//! Stories in Claude Code alone.

use std::fs;

use asyncagents_scripted_model::{Gate, Reply, Script};
use serde_json::json;

use crate::harness::{Agent, World, asked, child, launch, one_task, tasks, told};

const CLAUDE: Agent = Agent::ClaudeCode;

#[test]
fn after_clear_the_new_conversation_is_not_told_and_the_old_one_is_when_it_is_resumed() {
    let gate = Gate::closed();
    let script =
        one_task(CLAUDE, &gate).rule(asked(CLAUDE, "Something else"), Reply::text("Fresh start."));
    let Some(world) = World::new(CLAUDE, script) else {
        return;
    };
    let terminal = world.terminal("tmux", &[]);
    terminal.types("Delegate this");
    terminal.until_says("I go on meanwhile.");
    terminal.types("/clear");
    terminal.types("Something else");
    terminal.until_says("Fresh start.");
    gate.open();
    world.until_ended(1);
    world.until_gone("notices wait");
    terminal.types("Something else again");
    world.until("it was asked again", || {
        let again = |request: &asyncagents_scripted_model::Recorded| {
            request.last().contains("Something else again")
        };
        world.requests().iter().any(again).then_some(())
    });
    assert_eq!(told(&world.requests()), [""; 0]);
    world.leave(&terminal);
    drop(terminal);
    let terminal = world.terminal(
        "tmux-2",
        &["--resume", &world.session_with("Delegate this")],
    );
    terminal.types("Anything new?");
    terminal.until_shows("I was told of it.");
    assert_eq!(told(&world.requests()).len(), 1);
    world.leave(&terminal);
}

#[test]
fn after_clear_the_new_conversation_is_told_of_its_own_tasks_only() {
    let (red, green) = (Gate::closed(), Gate::closed());
    let script = tasks(CLAUDE, &[("red", &red), ("green", &green)]);
    let Some(world) = World::new(CLAUDE, script) else {
        return;
    };
    let terminal = world.terminal("tmux", &[]);
    terminal.types("Delegate red");
    terminal.until_says("red runs.");
    terminal.types("/clear");
    terminal.types("Delegate green");
    terminal.until_says("green runs.");
    red.open();
    world.until_ended(1);
    green.open();
    world.until_told(1);
    world.leave(&terminal);
    let all = world.requests();
    let told_of = |name: &str| {
        let result = format!("It is {name}.");
        let told = all
            .iter()
            .filter(|request| request.last().contains(&result));
        told.count()
    };
    assert_eq!((told_of("red"), told_of("green")), (0, 1));
}

#[test]
fn in_the_middle_of_a_turn_the_notice_comes_with_the_next_result() {
    let (task, turn) = (Gate::closed(), Gate::closed());
    let script = Script::new()
        .rule(
            child("Say the colour"),
            Reply::text("ultramarine").behind(&task),
        )
        .rule(
            asked(CLAUDE, "[asyncagents notice"),
            Reply::text("I was told of it."),
        )
        .rule(
            asked(CLAUDE, "is queued").capture("file", r"Delegate this, then read (\S+)"),
            Reply::call("Read", json!({"file_path": "{{file}}"})).behind(&turn),
        )
        .rule(
            asked(CLAUDE, "Delegate this"),
            launch(CLAUDE, "Say the colour", false),
        );
    let Some(world) = World::new(CLAUDE, script) else {
        return;
    };
    world.write("project/note.txt", "a note\n");
    let file = world.path("project/note.txt");
    let terminal = world.terminal("tmux", &[]);
    terminal.types(&format!("Delegate this, then read {}", file.display()));
    world.until_asked("what comes next", |request| {
        request.last().contains("is queued")
    });
    task.open();
    world.until_ended(1);
    // The hook has handed it over, and the turn still goes on.
    world.until_gone("notices wait");
    turn.open();
    terminal.until_shows("I was told of it.");
    let all = world.requests();
    assert_eq!(told(&all).len(), 1, "{:?}", told(&all));
    // It was the same turn: nothing was said in between.
    assert_eq!(all.len(), 3, "{}", all.len());
    world.leave(&terminal);
}

#[test]
fn what_was_handed_over_in_a_turn_that_is_killed_is_told_when_it_continues() {
    let (task, never) = (Gate::closed(), Gate::closed());
    let script = Script::new()
        .rule(
            asked(CLAUDE, "[asyncagents notice"),
            Reply::text("I was told of it."),
        )
        .rule(
            asked(CLAUDE, "Anything new?"),
            Reply::text("Nothing is new."),
        )
        .rule(
            asked(CLAUDE, "is queued"),
            Reply::text("I never say this.").behind(&never),
        )
        .then(one_task(CLAUDE, &task));
    let Some(world) = World::new(CLAUDE, script) else {
        return;
    };
    let terminal = world.terminal("tmux", &[]);
    terminal.types("Delegate this");
    world.until_asked("what comes next", |request| {
        request.last().contains("is queued")
    });
    task.open();
    world.until_ended(1);
    world.until_gone("notices wait");
    world.kill("claude --permission-mode");
    drop(terminal);
    let terminal = world.terminal("tmux-2", &["--continue"]);
    terminal.types("Anything new?");
    terminal.until_shows("I was told of it.");
    world.leave(&terminal);
    assert_eq!(world.results_told().len(), 1, "{:?}", world.results_told());
}

#[test]
fn a_task_of_a_sub_agent_belongs_to_the_sub_agent() {
    let script = Script::new()
        .rule(child("Say the colour"), Reply::text("ultramarine"))
        .rule(
            asked(CLAUDE, "No background tasks found"),
            Reply::text("None are mine."),
        )
        .rule(
            asked(CLAUDE, "The sub-agent is done."),
            Reply::call(CLAUDE.tool("list"), json!({})),
        )
        .rule(
            asked(CLAUDE, "[asyncagents notice"),
            Reply::text("The sub-agent is done."),
        )
        .rule(asked(CLAUDE, "is queued"), Reply::text("I wait for it."))
        .rule(
            asked(CLAUDE, "You are below"),
            launch(CLAUDE, "Say the colour", false),
        )
        .rule(
            asked(CLAUDE, "Delegate this"),
            Reply::call(
                "Agent",
                json!({"description": "below", "prompt": "You are below", "subagent_type":
                    "general-purpose", "run_in_background": false}),
            ),
        );
    let Some(world) = World::new(CLAUDE, script) else {
        return;
    };
    let done = world.print_mode("Delegate this", &[]);
    assert_eq!(done.printed.trim(), "None are mine.", "{done:?}");
    let told = told(&world.requests());
    assert_eq!(told.len(), 1, "{told:?}");
    let sessions = fs::read_dir(world.path("home/.claude/projects")).expect("projects");
    assert_eq!(sessions.count(), 1);
    world.until_gone("asyncagents");
}
