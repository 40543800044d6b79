//! `asyncagents setup` with the programs themselves.

use std::fs;

use asyncagents_scripted_model::{Gate, Script};
use rstest::rstest;

use crate::harness::{Agent, World, one_task, told};

const CLAUDE: Agent = Agent::ClaudeCode;

/// What the program has written for its user.
fn settings(world: &World) -> serde_json::Value {
    let read = |name: &str| fs::read_to_string(world.path(name)).expect("settings");
    match world.agent {
        Agent::ClaudeCode => {
            serde_json::from_str(&read("home/.claude/settings.json")).expect("JSON")
        }
        Agent::Codex => read("home/.codex/config.toml").into(),
    }
}

#[rstest]
#[case::claude_code(Agent::ClaudeCode)]
#[case::codex(Agent::Codex)]
fn the_plugin_is_installed_once_checked_and_removed(#[case] agent: Agent) {
    let Some(world) = World::without_plugin(agent, Script::new()) else {
        return;
    };
    let setup = |options: &[&str]| world.asyncagents(&[&["setup", agent.name()], options].concat());
    let missing = setup(&["--check"]);
    assert_eq!(missing.code, Some(1));
    assert!(missing.remarks.contains("does not have the plugin"));

    let first = setup(&[]);
    assert_eq!(first.code, Some(0), "{first:?}");
    let written = settings(&world);
    assert!(written.to_string().contains("asyncagents@asyncagents"));
    let again = setup(&[]);
    assert_eq!(again.code, Some(0), "{again:?}");
    assert!(first.printed.contains("Restart") && !again.printed.contains("Restart"));
    assert_eq!(settings(&world), written);
    let checked = setup(&["--check"]);
    assert!(checked.printed.contains("up to date"), "{checked:?}");
    let servers = world.run(agent.command(), &["mcp", "list"]);
    let server = format!("mcp --host {}", agent.name());
    assert!(servers.printed.contains(&server), "{servers:?}");

    let removed = setup(&["--remove"]);
    assert!(removed.printed.contains("Removed"), "{removed:?}");
    assert!(!settings(&world).to_string().contains("asyncagents"));
    let removed = setup(&["--remove"]);
    assert_eq!(removed.code, Some(0), "{removed:?}");
    assert!(removed.printed.contains("does not have the plugin"));
    assert_eq!(setup(&["--check"]).code, Some(1));
    let data = world.path("home/.local/share/asyncagents/plugins");
    let left = fs::read_dir(data).map_or(0, Iterator::count);
    assert_eq!(left, 0);
}

/// Codex keeps a copy of the plugin.
#[test]
fn a_plugin_of_another_version_is_replaced() {
    let Some(world) = World::new(Agent::Codex, Script::new()) else {
        return;
    };
    let cache = world.path("home/.codex/plugins/cache/asyncagents/asyncagents");
    let version = fs::read_dir(cache).expect("a copy").next();
    let version = version.expect("a version").expect("a folder").path();
    let hooks = version.join("hooks/codex.json");
    let ours = fs::read_to_string(&hooks).expect("hooks");
    fs::write(&hooks, "{}").expect("written");
    let done = world.asyncagents(&["setup", "codex"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(fs::read_to_string(&hooks).expect("hooks"), ours);
}

#[test]
fn a_plugin_for_one_project_is_used_there_and_nowhere_else() {
    let gate = Gate::closed();
    let Some(world) = World::without_plugin(CLAUDE, one_task(CLAUDE, &gate)) else {
        return;
    };
    let done = world.asyncagents(&["setup", "claude-code", "--project"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    gate.open();
    let done = world.print_mode("Delegate this", &[]);
    assert!(done.printed.contains("I was told of it."), "{done:?}");
    assert_eq!(told(&world.requests()).len(), 1);

    world.write("elsewhere/note.txt", "a note\n");
    let elsewhere = world.path("elsewhere").display().to_string();
    let done = world.run(
        "env",
        &["-C", &elsewhere, "claude", "-p", "What can you do?"],
    );
    assert!(done.printed.contains("Very well."), "{done:?}");
    let newest = world.requests().pop().expect("a request");
    let ours = newest.tool_names();
    let mut ours = ours.iter().filter(|name| name.contains("asyncagents"));
    assert_eq!(ours.next(), None);
    world.until_gone("asyncagents");
}

#[rstest]
#[case::claude_code_twice(&["claude-code", "--remove", "--check"], "cannot be used with")]
#[case::claude_code_everywhere(&["claude-code", "--user", "--project"], "cannot be used with")]
#[case::codex_in_a_project(&["codex", "--project"], "leave out --project")]
#[case::codex_checks(&["codex", "--ask", "--check"], "cannot be used with")]
fn what_cannot_be_meant_is_refused(#[case] args: &[&str], #[case] why: &str) {
    let agent = match args[0] {
        "codex" => Agent::Codex,
        _ => CLAUDE,
    };
    let Some(world) = World::without_plugin(agent, Script::new()) else {
        return;
    };
    let done = world.asyncagents(&[&["setup"], args].concat());
    assert_eq!(done.code, Some(2), "{done:?}");
    assert!(done.remarks.contains(why), "{done:?}");
}
