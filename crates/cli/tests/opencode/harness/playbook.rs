//! What the scripted model does in every story.

use asyncagents_scripted_model::{Gate, Recorded, Reply, Script, When};
use serde_json::{Value, json};

/// The models of the scripted provider; OpenCode uses the first unless told otherwise.
pub(crate) const FIRST_MODEL: &str = "first";
pub(crate) const SECOND_MODEL: &str = "second";
pub(crate) const THIRD_MODEL: &str = "third";

/// The model of tasks that the built-in agent runs.
pub(super) const TASKS_MODEL: &str = "tasks";

/// How the IDs of our sessions begin, where they are ours to choose.
pub(super) const OUR_SESSIONS: &str = "ses_asyncagents_";
/// What every session can be asked to use by a prompt: see [`using`].
const USABLE: &[&str] = &[
    "asyncagents_task",
    "asyncagents_output",
    "asyncagents_list",
    "asyncagents_cancel",
    "asyncagents_message",
    "asyncagents_answer",
    "asyncagents_clear",
    "asyncagents_skill",
    "asyncagents_answer",
    "asyncagents_message",
    "bash",
    "shell",
    "read",
];

/// The beginning of a script; a test adds what its children and its parent do.
pub(crate) fn story() -> Script {
    // OpenCode asks for a title when a session has none.
    let title = root().tools(false).system("You are a title generator");
    Script::new().rule(title, Reply::text("A story"))
}

/// The beginning of a script in which a child counts the files, and says how many there are
/// when the gate is opened.
pub(crate) fn counting(gate: &Gate) -> Script {
    let three = Reply::text("There are three.").behind(gate);
    story().rule(child("Count the files"), three)
}

/// The end of every script: a root session does as it is told, and is content with the rest.
/// A child that nobody expects gets no answer, which fails the test.
pub(super) fn finished(mut script: Script) -> Script {
    for tool in USABLE {
        let asked = root().tools(true).last(using(tool)).capture(
            "parameters",
            &format!(r"{} (\{{.*\}})(?:\n|$)", using(tool)),
        );
        let words = format!("I use {tool}.");
        let reply = Reply::text(words).raw_call(*tool, "{{parameters}}");
        script = script.rule(asked, reply);
    }
    script.rule(root().tools(true), Reply::text("Noted."))
}

/// The words that make a root session use a tool.
pub(super) fn using(tool: &str) -> String {
    format!("Please use {tool} with")
}

/// Requests of sessions that were started by a user.
pub(crate) fn root() -> When {
    When::always().headers_are(|headers| !are_childs(headers))
}

/// Requests of a root session that has just been asked this.
pub(crate) fn asked(words: &str) -> When {
    root().last(words)
}

/// Requests of a child that has just been asked this.
pub(crate) fn child(words: &str) -> When {
    When::always().headers_are(are_childs).last(words)
}

/// Requests of a task that the built-in agent runs, which has just been asked this.
pub(crate) fn tasks_model(words: &str) -> When {
    When::always().model(TASKS_MODEL).last(words)
}

/// Whether a request with these headers is of a child: it names its parent, or it has an ID of
/// ours, in an OpenCode that lets nobody name a parent.
pub(super) fn are_childs(headers: &[(String, String)]) -> bool {
    headers.iter().any(|(name, value)| match name.as_str() {
        "x-parent-session-id" => true,
        "x-session-id" => value.starts_with(OUR_SESSIONS),
        _ => false,
    })
}

/// The parameters that launch a fresh task.
pub(crate) fn launch(description: &str, prompt: &str) -> Value {
    json!({"description": description, "prompt": prompt, "agent": "general"})
}

/// The parameters that launch a task which inherits the conversation.
pub(crate) fn forked(description: &str, prompt: &str) -> Value {
    json!({"description": description, "prompt": prompt, "agent": "general", "fork": true})
}

/// The parameters that go on with a task.
pub(crate) fn resume(task: &str, prompt: &str) -> Value {
    json!({"description": "follow-up", "prompt": prompt, "agent": "general", "resume": task})
}

/// How a tool was described to the model: its `description` and its `parameters`.
pub(crate) fn tool(request: &Recorded, name: &str) -> Value {
    let request = request.json();
    let mut tools = request["tools"].as_array().into_iter().flatten();
    let tool = tools.find(|tool| tool["function"]["name"] == name);
    let tool = tool.unwrap_or_else(|| panic!("there is no {name}"));
    tool["function"].clone()
}

/// The first ID of a task in a text.
pub(crate) fn task_id(text: &str) -> String {
    let found = text.find("task_").map(|at| &text[at..]);
    let found = found.unwrap_or_else(|| panic!("no ID of a task in: {text}"));
    let end = found.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let id = &found[..end.unwrap_or(found.len())];
    assert!(id.len() >= "task_".len() + 8, "too short: {id}");
    id.to_owned()
}
