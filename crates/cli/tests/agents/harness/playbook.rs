//! What the models of a story say, and what they were told.

use std::sync::OnceLock;

use asyncagents_scripted_model::{Gate, Recorded, Reply, Script, When};
use regex::Regex;
use serde_json::{Value, json};

use super::Agent;

/// When the agent's own model is asked this.
pub(crate) fn asked(agent: Agent, words: &str) -> When {
    let own = When::always().model(agent.model()).tools(true);
    own.last(words)
}

/// When the model of a task is asked, in whose conversation these words are.
pub(crate) fn child(words: &str) -> When {
    When::always().model("child").contains(words)
}

/// The agent launches a task.
pub(crate) fn launch(agent: Agent, prompt: &str, fork: bool) -> Reply {
    Reply::call(agent.tool("task"), task(prompt, fork))
}

fn task(prompt: &str, fork: bool) -> Value {
    json!({"description": "look it up", "prompt": prompt, "agent": "general", "fork": fork})
}

/// The agent delegates when it is told to "Delegate this", goes on, and says so when it is told of the
/// end. The task ends when the gate is opened.
pub(crate) fn one_task(agent: Agent, gate: &Gate) -> Script {
    Script::new()
        .rule(
            child("Say the colour"),
            Reply::text("ultramarine").behind(gate),
        )
        .rule(
            asked(agent, "[asyncagents notice"),
            Reply::text("I was told of it."),
        )
        .rule(asked(agent, "is queued"), Reply::text("I go on meanwhile."))
        .rule(
            asked(agent, "Delegate this"),
            launch(agent, "Say the colour", false),
        )
}

/// The same with several tasks, in the order in which they are launched: "Delegate red" launches the one
/// that is called red, and the agent says "red runs.".
pub(crate) fn tasks(agent: Agent, tasks: &[(&str, &Gate)]) -> Script {
    let mut script = Script::new().rule(
        asked(agent, "[asyncagents notice"),
        Reply::text("I was told of it."),
    );
    // What was said before is still in the conversation.
    for (name, gate) in tasks.iter().rev() {
        let (prompt, result) = (format!("Say {name}"), format!("It is {name}."));
        script = script
            .rule(child(&prompt), Reply::text(result).behind(gate))
            .rule(
                asked(agent, "is queued").contains(&prompt),
                Reply::text(format!("{name} runs.")),
            )
            .rule(
                asked(agent, &format!("Delegate {name}")),
                launch(agent, &prompt, false),
            );
    }
    script
}

/// The agent reads the file that was named after `words`: when, and what it does.
pub(crate) fn reading(agent: Agent, words: &str) -> (When, Reply) {
    let when = asked(agent, words).capture("file", &format!(r"{words} (\S+)"));
    let reply = match agent {
        Agent::ClaudeCode => Reply::call("Read", json!({"file_path": "{{file}}"})),
        Agent::Codex => Reply::call("exec_command", json!({"cmd": "cat {{file}}"})),
    };
    (when, reply)
}

/// The notices that the model of a conversation was told, as often as it was, by its requests: each has
/// what was new.
pub(crate) fn told(requests: &[Recorded]) -> Vec<String> {
    let new = requests.iter().map(Recorded::last);
    new.flat_map(|new| notices_in(&new)).collect()
}

/// The marks of notices in a text.
pub(crate) fn notices_in(text: &str) -> Vec<String> {
    static MARK: OnceLock<Regex> = OnceLock::new();
    let mark = r"\[asyncagents notice ([a-z0-9_.]+)\]";
    let mark = MARK.get_or_init(|| Regex::new(mark).expect("a pattern"));
    let found = mark.captures_iter(text);
    found.map(|found| found[1].to_owned()).collect()
}
