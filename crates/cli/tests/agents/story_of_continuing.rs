//! A conversation that is left while a task runs, and continued in another process.

use asyncagents_scripted_model::{Gate, Reply, Script};
use rstest::rstest;
use serde_json::json;

use crate::harness::{Agent, World, asked, tasks};

const CLAUDE: Agent = Agent::ClaudeCode;

/// Claude Code tells our server the session that it had before it looked which one is continued.
#[rstest]
#[case::the_newest("--continue")]
#[case::by_its_id("--resume")]
fn the_continued_session_has_its_tasks_and_is_told_of_old_and_new_ones(#[case] option: &str) {
    let (red, green) = (Gate::closed(), Gate::closed());
    let script = Script::new()
        .rule(
            asked(CLAUDE, "What runs?"),
            Reply::call(CLAUDE.tool("list"), json!({})),
        )
        .then(tasks(CLAUDE, &[("red", &red), ("green", &green)]))
        .rule(asked(CLAUDE, "look it up"), Reply::text("One is mine."));
    let Some(world) = World::new(CLAUDE, script) else {
        return;
    };
    let terminal = world.terminal("tmux", &[]);
    terminal.types("Delegate red");
    terminal.until_says("red runs.");
    terminal.types("/exit");
    world.until_gone("claude --permission-mode");
    world.until_gone("notices wait");
    drop(terminal);

    let id = world.session_with("Delegate red");
    let options: &[&str] = match option {
        "--resume" => &[option, &id],
        _ => &[option],
    };
    let terminal = world.terminal("tmux-2", options);
    terminal.types("What runs?");
    terminal.until_says("One is mine.");
    terminal.types("Delegate green");
    terminal.until_shows("green runs.");
    green.open();
    world.until_told(1);
    red.open();
    world.until_told(2);
    world.leave(&terminal);
    let mut told = world.results_told();
    told.dedup();
    assert_eq!(told.len(), 2, "{told:?}");
    assert_eq!(world.results_told().len(), 2);
}
