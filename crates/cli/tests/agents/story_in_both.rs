//! Stories that are the same in both.

use asyncagents_scripted_model::{Gate, Reply, Script, When};
use rstest::rstest;
use serde_json::json;

use crate::harness::{Agent, World, asked, child, launch, notices_in, one_task, reading, told};

/// The user says no when Codex asks about them.
const NO_HOOKS: &[&str] = &["no hooks"];

#[rstest]
#[case::claude_code(Agent::ClaudeCode)]
#[case::codex(Agent::Codex)]
fn without_a_window_a_forked_task_knows_what_was_read_and_its_end_is_told_before_the_turn_ends(
    #[case] agent: Agent,
) {
    let (when, read) = reading(agent, "Delegate this:");
    let script = Script::new()
        .rule(
            child("Say the colour"),
            Reply::text("The colour is ultramarine."),
        )
        .rule(
            asked(agent, "[asyncagents notice"),
            Reply::text("So it is ultramarine."),
        )
        .rule(asked(agent, "is queued"), Reply::text("I wait."))
        .rule(
            asked(agent, "a plum of"),
            launch(agent, "Say the colour", true),
        )
        .rule(when, read);
    let Some(world) = World::new(agent, script) else {
        return;
    };
    world.write("project/fruit.txt", "a plum of ultramarine\n");
    let file = world.path("project/fruit.txt");
    let prompt = format!("Delegate this: {}", file.display());
    let done = world.print_mode(&prompt, agent.unasked());
    assert!(done.printed.contains("So it is ultramarine."), "{done:?}");
    let inherited = world.until_task_asks("Say the colour").text();
    assert!(inherited.contains("a plum of ultramarine"), "{inherited}");
    let told = told(&world.requests());
    assert_eq!(told.len(), 1, "{told:?}");
    world.until_gone("asyncagents");
}

#[rstest]
#[case::claude_code(Agent::ClaudeCode, &[])]
#[case::codex_with_its_daemon(Agent::Codex, &[])]
#[case::codex_without_its_daemon(Agent::Codex, &["--disable", "daemon_auto_start"])]
#[case::codex_without_hooks(Agent::Codex, NO_HOOKS)]
fn an_idle_window_is_told_once(#[case] agent: Agent, #[case] options: &[&str]) {
    let gate = Gate::closed();
    let Some(world) = World::new(agent, one_task(agent, &gate)) else {
        return;
    };
    let (world, options) = if options == NO_HOOKS {
        (world.without_hooks(), &[][..])
    } else {
        (world, options)
    };
    let terminal = world.terminal("tmux", options);
    terminal.types("Delegate this");
    terminal.until_shows("I go on meanwhile.");
    gate.open();
    terminal.until_shows("I was told of it.");
    let all = world.requests();
    let notice = all.last().expect("a request").last();
    assert!(notice.contains("ultramarine"), "{notice}");
    assert_eq!(told(&all).len(), 1, "{:?}", told(&all));
    world.leave(&terminal);
}

#[rstest]
#[case::claude_code(Agent::ClaudeCode)]
#[case::codex(Agent::Codex)]
fn when_our_server_is_killed_the_session_is_told_all_the_same(#[case] agent: Agent) {
    let gate = Gate::closed();
    let Some(world) = World::new(agent, one_task(agent, &gate)) else {
        return;
    };
    let terminal = world.terminal("tmux", &[]);
    terminal.types("Delegate this");
    terminal.until_shows("I go on meanwhile.");
    world.until_task_asks("Say the colour");
    world.kill("asyncagents mcp");
    gate.open();
    terminal.until_shows("I was told of it.");
    assert_eq!(told(&world.requests()).len(), 1);
    world.leave(&terminal);
}

#[rstest]
#[case::claude_code(Agent::ClaudeCode, &["--continue"])]
#[case::codex(Agent::Codex, &["resume", "--last"])]
fn when_the_agent_is_killed_the_one_that_continues_is_told_once(
    #[case] agent: Agent,
    #[case] again: &[&str],
) {
    let gate = Gate::closed();
    let Some(world) = World::new(agent, one_task(agent, &gate)) else {
        return;
    };
    let no_daemon: &[&str] = match agent {
        Agent::ClaudeCode => &[],
        Agent::Codex => &["--disable", "daemon_auto_start"],
    };
    let terminal = world.terminal("tmux", no_daemon);
    terminal.types("Delegate this");
    terminal.until_shows("I go on meanwhile.");
    world.until_task_asks("Say the colour");
    world.kill(match agent {
        Agent::ClaudeCode => "claude --permission-mode",
        Agent::Codex => "codex --disable",
    });
    world.until_gone("notices wait");
    gate.open();
    world.until_ended(1);
    drop(terminal);
    let terminal = world.terminal("tmux-2", &[again, no_daemon].concat());
    if agent == Agent::ClaudeCode {
        // It is told with the next thing that is said to it.
        terminal.types("Anything new?");
    }
    terminal.until_shows("I was told of it.");
    world.leave(&terminal);
    let told = told(&world.requests());
    assert_eq!(told.len(), 1, "{told:?}");
    // What the start of a session says is in no transcript before the first prompt: a user who thinks for
    // a while would be told again.
    let newest = world.requests().pop().expect("a request").last();
    let at_the_start = newest.contains("SessionStart hook additional context");
    assert!(!at_the_start, "{newest}");
}

#[rstest]
#[case::claude_code(Agent::ClaudeCode)]
#[case::codex(Agent::Codex)]
fn all_tools_are_used_from_one_conversation(#[case] agent: Agent) {
    let call = |turn: usize, tool: &str, arguments: serde_json::Value| {
        let when = When::always()
            .model(agent.model())
            .tools(true)
            .turn_is(turn);
        let when = when.capture("task", r"Task (task_[0-9a-f]+)");
        (when, Reply::call(agent.tool(tool), arguments))
    };
    let never = Gate::closed();
    let mut script = Script::new()
        .rule(
            child("Say what you were told").contains("green"),
            Reply::text("It was green."),
        )
        .rule(child("Wait for ever"), Reply::text("never").behind(&never))
        .rule(
            child("And the second colour"),
            Reply::text("The second is umber."),
        )
        .rule(child("Say the colour"), Reply::text("ultramarine"))
        .rule(
            child("Greet in a skill"),
            Reply::text("Hello from the skill."),
        )
        .rule(
            asked(agent, "Delegate this"),
            launch(agent, "Say the colour", false),
        );
    let id = || json!("{{task}}");
    for (when, reply) in [
        call(
            1,
            "output",
            json!({"task_id": id(), "block": true, "timeout": 30}),
        ),
        call(2, "list", json!({})),
        call(
            3,
            "task",
            json!({"resume": id(), "description": "more", "agent": "general",
            "prompt": "And the second colour"}),
        ),
        call(
            4,
            "output",
            json!({"task_id": id(), "block": true, "timeout": 30}),
        ),
        call(
            5,
            "task",
            json!({"description": "long", "agent": "general", "prompt": "Wait for ever"}),
        ),
        call(6, "cancel", json!({"task_id": id()})),
        call(7, "output", json!({"task_id": id()})),
        call(8, "skill", json!({"name": "greet"})),
        call(9, "output", json!({"task_id": "task_ffffffff"})),
        call(10, "clear", json!({})),
    ] {
        script = script.rule(when, reply);
    }
    let script = script.rule(
        When::always().model(agent.model()).tools(true).turn_is(11),
        Reply::text("All done."),
    );
    let Some(world) = World::new(agent, script) else {
        return;
    };
    world.write(
        "home/.claude/skills/greet/SKILL.md",
        "---\nname: greet\ndescription: Greets.\ncontext: fork\n---\nGreet in a skill.\n",
    );
    let done = world.print_mode("Delegate this", agent.unasked());
    assert!(done.printed.contains("All done."), "{done:?}");
    let answers: Vec<String> = world.requests().iter().map(|one| one.last()).collect();
    for (turn, words) in [
        (2, "ultramarine"),
        (3, "look it up"),
        (5, "The second is umber."),
        (7, "cancelled"),
        (8, "cancelled"),
        (9, "a sub-agent executes the skill greet"),
        (10, "task_ffffffff"),
    ] {
        let answer = &answers[turn];
        assert!(answer.contains(words), "{turn}: {answer}");
    }
    assert!(
        notices_in(&answers[2]).is_empty(),
        "it was read: {}",
        answers[2]
    );
    world.until_gone("asyncagents");
}
