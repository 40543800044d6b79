//! What stories ask of OpenCode's API, whichever its generation.

use serde_json::{Map, Value, json};

use super::{
    message::Message,
    playbook::{FIRST_MODEL, SECOND_MODEL, THIRD_MODEL},
    serve::Serve,
};

/// The API of a generation. Sessions are named by their IDs.
pub(super) trait Api: Sync {
    /// Where events come from.
    fn events_path(&self) -> &'static str;

    /// Where an event has what it tells.
    fn event_data(&self) -> &'static str;

    /// Has OpenCode load the project and its plugins, as any client does that works there.
    fn open(&self, serve: &Serve<'_>);

    /// A session without a parent, with a title, so that none is made up for it.
    fn create(&self, serve: &Serve<'_>) -> String;

    /// Says something, and does not wait.
    fn prompt(&self, serve: &Serve<'_>, session: &str, prompt: &Prompt<'_>);

    /// Says something, and waits until the session has nothing more to do.
    fn ask(&self, serve: &Serve<'_>, session: &str, prompt: &Prompt<'_>) -> String;

    /// All messages, oldest first; also those that wait to be read by the model.
    fn messages(&self, serve: &Serve<'_>, session: &str) -> Vec<Message>;

    /// The messages that the model has read or said, oldest first.
    fn history(&self, serve: &Serve<'_>, session: &str) -> Vec<Message>;

    /// Whether a session has nothing to do.
    fn is_idle(&self, serve: &Serve<'_>, session: &str) -> bool;

    /// The sessions below one.
    fn children(&self, serve: &Serve<'_>, session: &str) -> Vec<Child>;

    /// What the user does with Escape.
    fn abort(&self, serve: &Serve<'_>, session: &str);

    /// Deletes a session.
    fn delete(&self, serve: &Serve<'_>, session: &str);

    /// Whether there is such a session.
    fn exists(&self, serve: &Serve<'_>, session: &str) -> bool;

    /// Begins to replace a conversation by a summary.
    fn summarize(&self, serve: &Serve<'_>, session: &str);

    /// The IDs of the questions about permissions that wait for an answer.
    fn permissions(&self, serve: &Serve<'_>, session: &str) -> Vec<String>;

    /// Answers such a question.
    fn permit(&self, serve: &Serve<'_>, session: &str, question: &str, reply: &str);
}

/// What a user says, and to whom: the default agent and model unless there is another.
pub(super) struct Prompt<'a> {
    pub(super) text: &'a str,
    pub(super) agent: Option<&'a str>,
    pub(super) model: Option<&'a str>,
}

/// A session below another.
#[derive(Debug)]
pub(crate) struct Child {
    pub(crate) id: String,
    pub(crate) title: String,
    /// The session that OpenCode or, where it knows none, asyncagents names as its parent.
    pub(crate) parent: String,
}

/// A text in a JSON value, or nothing.
pub(super) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The configuration of a project. Both generations read this form.
pub(super) fn config(model_url: &str, agents: Map<String, Value>) -> Value {
    let model = |name: &str| {
        json!({
            "name": name,
            "tool_call": true,
            "reasoning": true,
            "limit": {"context": 128_000, "output": 8192},
            // OpenCode 2 has no others; OpenCode 1 adds those that are usual.
            "variants": {"high": {"reasoningEffort": "high"}},
        })
    };
    let models = [FIRST_MODEL, SECOND_MODEL, THIRD_MODEL];
    let models: Map<String, Value> = models
        .map(|name| (name.to_owned(), model(name)))
        .into_iter()
        .collect();
    let first = format!("scripted/{FIRST_MODEL}");
    json!({
        "autoupdate": false,
        "share": "disabled",
        "enabled_providers": ["scripted"],
        "model": first,
        "small_model": first,
        "agent": agents,
        "provider": {"scripted": {
            "npm": "@ai-sdk/openai-compatible",
            "name": "Scripted",
            "options": {"baseURL": format!("{model_url}/v1"), "apiKey": "none"},
            "models": models,
        }},
    })
}
