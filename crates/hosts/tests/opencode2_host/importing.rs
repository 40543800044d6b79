//! How the small OpenCode 2 imports a session: as a whole or not at all.

use serde_json::{Value, json};

use crate::fake::{Answer, FakeOpenCode};

impl FakeOpenCode {
    pub(crate) fn import(&self, body: &Value) -> Answer {
        let info = &body["info"];
        let id = info["id"].as_str().unwrap_or_default().to_owned();
        let messages = body["messages"].as_array().cloned().unwrap_or_default();
        let required = ["id", "projectID", "cost", "tokens", "time", "location"];
        if required.iter().any(|key| info[key].is_null()) || !messages.iter().all(is_valid) {
            return (
                400,
                json!({"_tag": "InvalidRequestError", "kind": "Payload"}),
            );
        }
        if self.with(&id, |_| ()).is_some() {
            let text = format!("Session already exists: {id}");
            return (409, json!({"_tag": "ConflictError", "message": text}));
        }
        if messages.iter().any(|message| self.has_message(message)) {
            return (500, Value::Null);
        }
        let mut asked = info.clone();
        asked["location"] = body["location"].clone();
        let made = self.create(asked);
        for message in &messages {
            let sent = (id.clone(), message.clone());
            self.lock().sent.insert(name(message), sent);
        }
        self.with(&id, |it| it.messages = messages);
        made
    }

    /// Whether the name of a message is used, in whatever session.
    fn has_message(&self, message: &Value) -> bool {
        let state = self.lock();
        let is_it = |there: &Value| there["id"] == message["id"];
        let mut sessions = state.sessions.values();
        state.sent.contains_key(&name(message))
            || sessions.any(|session| session.messages.iter().any(is_it))
    }
}

fn name(message: &Value) -> String {
    message["id"].as_str().unwrap_or_default().to_owned()
}

fn is_valid(message: &Value) -> bool {
    let has = |keys: &[&str]| keys.iter().all(|key| !message[key].is_null());
    let parts = || message["content"].as_array().cloned().unwrap_or_default();
    let named = message["id"]
        .as_str()
        .is_some_and(|id| id.starts_with("msg_"));
    let valid = match message["type"].as_str() {
        Some("user" | "synthetic") => has(&["text"]),
        Some("compaction") => has(&["status", "reason", "summary", "recent"]),
        Some("shell") => has(&["shellID", "command", "status"]),
        Some("assistant") => {
            has(&["agent", "model", "content"]) && parts().iter().all(is_valid_part)
        }
        _ => false,
    };
    named && valid && message["time"]["created"].is_number()
}

fn is_valid_part(part: &Value) -> bool {
    let state = &part["state"];
    match (part["type"].as_str(), state["status"].as_str()) {
        (Some("text" | "reasoning"), _) => part["text"].is_string(),
        (Some("tool"), Some("completed")) => {
            state["input"].is_object()
                && state["content"].as_array().is_some_and(|it| !it.is_empty())
        }
        (Some("tool"), Some("error")) => state["input"].is_object() && state["error"].is_object(),
        _ => false,
    }
}
