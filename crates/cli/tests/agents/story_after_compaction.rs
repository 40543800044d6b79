//! A conversation that was compacted: what a fork inherits of it.

use asyncagents_scripted_model::{Reply, Script, When};
use rstest::rstest;

use crate::harness::{Agent, World, asked, child, launch, reading, told};

/// The agent asks its model for a summary: when.
fn summing_up(agent: Agent) -> When {
    When::always().model(agent.model()).last(match agent {
        Agent::ClaudeCode => "create a detailed summary of the conversation",
        Agent::Codex => "CONTEXT CHECKPOINT COMPACTION",
    })
}

#[rstest]
#[case::claude_code(Agent::ClaudeCode)]
#[case::codex(Agent::Codex)]
fn a_forked_task_inherits_the_summary_and_what_was_read_after_it(#[case] agent: Agent) {
    let (first, read_first) = reading(agent, "Read this:");
    let (second, read_second) = reading(agent, "Delegate this:");
    let script = Script::new()
        .rule(child("Say the colour"), Reply::text("It is vermilion."))
        .rule(
            asked(agent, "[asyncagents notice"),
            Reply::text("I was told of it."),
        )
        .rule(
            summing_up(agent),
            Reply::text("<summary>Plums were looked at.</summary>"),
        )
        .rule(asked(agent, "is queued"), Reply::text("I go on meanwhile."))
        .rule(
            asked(agent, "a pear of"),
            launch(agent, "Say the colour", true),
        )
        .rule(second, read_second)
        .rule(asked(agent, "a plum of"), Reply::text("I have read it."))
        .rule(first, read_first);
    let Some(world) = World::new(agent, script) else {
        return;
    };
    world.write("project/plum.txt", "a plum of ultramarine\n");
    world.write("project/pear.txt", "a pear of vermilion\n");
    let file = |name: &str| world.path("project").join(name).display().to_string();
    let terminal = world.terminal("tmux", &[]);
    terminal.types(&format!("Read this: {}", file("plum.txt")));
    terminal.until_says("I have read it.");
    terminal.types("/compact");
    terminal.until_shows(match agent {
        Agent::ClaudeCode => "Compacted (",
        Agent::Codex => "Context compacted",
    });
    terminal.types(&format!("Delegate this: {}", file("pear.txt")));
    terminal.until_shows("I was told of it.");
    let inherited = world.until_task_asks("Say the colour").text();
    for (words, expected) in [
        ("Plums were looked at.", true),
        ("a pear of vermilion", true),
        ("a plum of ultramarine", false),
    ] {
        assert_eq!(inherited.contains(words), expected, "{words}: {inherited}");
    }
    world.leave(&terminal);
    assert_eq!(told(&world.requests()).len(), 1);
}
