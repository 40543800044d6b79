//! An agent that waits for a result with `output`, and what becomes of its wait.

use asyncagents_scripted_model::{Gate, Reply, Script, When};
use rstest::rstest;
use serde_json::json;

use crate::harness::{Agent, World, asked, one_task, told};

const CLAUDE: Agent = Agent::ClaudeCode;

/// After the launch the agent waits for the result.
fn waiting(agent: Agent) -> (When, Reply) {
    let when = asked(agent, "is queued").capture("task", r"Task (task_[0-9a-f]+)");
    let wait = json!({"task_id": "{{task}}", "block": true, "timeout": 600});
    (when, Reply::call(agent.tool("output"), wait))
}

/// What the window shows meanwhile.
fn shown_while_waiting(agent: Agent) -> &'static str {
    match agent {
        // It follows the wait in the background, as a task of the protocol.
        Agent::ClaudeCode => "1 MCP task",
        Agent::Codex => "Calling asyncagents.output",
    }
}

/// It is a task of the protocol there.
#[test]
fn a_wait_that_claude_code_follows_in_the_background_wakes_the_session_and_no_notice_repeats_it() {
    let gate = Gate::closed();
    let (when, wait) = waiting(CLAUDE);
    let script = Script::new()
        .rule(
            asked(CLAUDE, "<task-notification>"),
            Reply::text("I have the result."),
        )
        .rule(
            asked(CLAUDE, "moved to the background"),
            Reply::text("It takes longer."),
        )
        .rule(when, wait)
        .then(one_task(CLAUDE, &gate));
    let Some(world) = World::new(CLAUDE, script) else {
        return;
    };
    let terminal = world.terminal("tmux", &[]);
    terminal.types("Delegate this");
    terminal.until_shows("It takes longer.");
    gate.open();
    terminal.until_shows("I have the result.");
    world.leave(&terminal);
    let all = world.requests();
    let results = all
        .iter()
        .filter(|request| request.last().contains("ultramarine"));
    assert_eq!(results.count(), 1);
    assert_eq!(told(&all), [""; 0]);
}

#[test]
fn a_wait_that_the_user_of_codex_interrupts_is_given_up_and_the_end_is_told_once() {
    let agent = Agent::Codex;
    let gate = Gate::closed();
    let (when, wait) = waiting(agent);
    let script = Script::new()
        .rule(
            asked(agent, "[asyncagents notice"),
            Reply::text("I was told of it."),
        )
        .rule(when, wait)
        .then(one_task(agent, &gate));
    let Some(world) = World::new(agent, script) else {
        return;
    };
    let terminal = world.terminal("tmux", &[]);
    terminal.types("Delegate this");
    terminal.until_shows(shown_while_waiting(agent));
    terminal.presses("Escape");
    terminal.until_shows("Conversation interrupted");
    gate.open();
    // It keeps its queue back until the user says something.
    world.until_ended(1);
    terminal.types("Go on");
    terminal.until_shows("I was told of it.");
    world.leave(&terminal);
    assert_eq!(told(&world.requests()).len(), 1);
}

/// Its wait is still in the journal then.
#[rstest]
#[case::claude_code(Agent::ClaudeCode)]
#[case::codex(Agent::Codex)]
fn a_wait_whose_server_is_killed_does_not_keep_the_end_from_being_told(#[case] agent: Agent) {
    let gate = Gate::closed();
    let (when, wait) = waiting(agent);
    let script = Script::new()
        .rule(
            asked(agent, "[asyncagents notice"),
            Reply::text("I was told of it."),
        )
        .rule(when, wait)
        .then(one_task(agent, &gate));
    let Some(world) = World::new(agent, script) else {
        return;
    };
    let terminal = world.terminal("tmux", &[]);
    terminal.types("Delegate this");
    terminal.until_shows(shown_while_waiting(agent));
    world.kill("asyncagents mcp");
    terminal.until_says("Very well.");
    gate.open();
    terminal.until_shows("I was told of it.");
    world.leave(&terminal);
    assert_eq!(told(&world.requests()).len(), 1);
}
