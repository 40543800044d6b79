//! Sessions of an OpenCode 2, put together from its events: what its API would answer about them.

use std::collections::{BTreeMap, HashMap};

use serde::Deserialize;
use serde_json::{Value, json};

use super::json::take;

/// So many sessions are remembered; those that were heard of longest ago give way.
const SESSIONS: usize = 1_000;
/// So many of the newest messages of a session are kept.
const MESSAGES: usize = 2_000;

/// The types of event that these sessions are made from.
pub(super) const EVENTS: &[&str] = &[
    "session.created",
    "session.deleted",
    "session.inbox.enqueued",
    "session.inbox.delivered",
    "session.inbox.cancelled",
    "session.execution.succeeded",
    "session.execution.failed",
    "session.execution.interrupted",
    "session.step.started",
    "session.step.ended",
    "session.step.failed",
    "session.text.started",
    "session.text.ended",
    "session.reasoning.started",
    "session.reasoning.ended",
    "session.tool.input.started",
    "session.tool.called",
    "session.tool.success",
    "session.tool.failed",
    "session.retry.scheduled",
    "session.compaction.started",
    "session.compaction.ended",
    "session.compaction.failed",
    "permission.asked",
    "permission.replied",
    "form.created",
    "form.replied",
    "form.cancelled",
];

/// What the types of event about an agent's message begin with.
const WRITING: &[&str] = &[
    "session.step.",
    "session.text.",
    "session.reasoning.",
    "session.tool.",
    "session.retry.",
];

#[derive(Deserialize)]
pub(super) struct Event {
    #[serde(default)]
    id: String,
    #[serde(default)]
    created: f64,
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    data: Value,
}

/// The sessions that were heard of.
#[derive(Default)]
pub(super) struct Sessions {
    known: HashMap<String, Relayed>,
    /// Counts the events, to know which sessions were heard of lately.
    heard: u64,
}

/// A session, as far as events have told.
#[derive(Default)]
pub(super) struct Relayed {
    /// Oldest first.
    pub(super) messages: Vec<Value>,
    /// What was admitted and is not delivered yet, by its name.
    inbox: BTreeMap<String, Value>,
    permissions: BTreeMap<String, Value>,
    forms: BTreeMap<String, Value>,
    /// Whether nothing of it was missed.
    pub(super) whole: bool,
    /// How many of the messages were heard of before something was missed.
    pub(super) before_gap: usize,
    heard: u64,
}

impl Sessions {
    pub(super) fn apply(&mut self, event: Event) {
        let Event {
            id,
            created,
            kind,
            mut data,
        } = event;
        let form = take(&mut data, "form");
        let session = data["sessionID"].as_str().or(form["sessionID"].as_str());
        let Some(session) = session.map(str::to_owned) else {
            return;
        };
        if kind == "session.deleted" {
            self.known.remove(&session);
            return;
        }
        let known = self.get_mut(&session);
        match kind.as_str() {
            "session.created" => known.whole = known.messages.is_empty(),
            "session.execution.succeeded"
            | "session.execution.failed"
            | "session.execution.interrupted" => known.end(),
            "permission.asked" => known.ask(data),
            "permission.replied" => drop(known.permissions.remove(text(&data, "requestID"))),
            "form.created" => {
                let id = text(&form, "id").to_owned();
                known.forms.insert(id, form);
            }
            "form.replied" | "form.cancelled" => drop(known.forms.remove(text(&data, "id"))),
            "session.compaction.started"
            | "session.compaction.ended"
            | "session.compaction.failed" => known.compacted(&kind, &id, created, data),
            kind => match kind.strip_prefix("session.inbox.") {
                Some(kind) => known.inbox_changed(kind, created, data),
                None if WRITING.iter().any(|it| kind.starts_with(it)) => {
                    known.answering(kind, created, data);
                }
                None => {}
            },
        }
    }

    /// The messages that these events tell of.
    pub(super) fn messages_of(session: &str, events: Vec<Value>) -> Vec<Value> {
        let mut sessions = Self::default();
        let events = events.into_iter().map(serde_json::from_value);
        events.flatten().for_each(|event| sessions.apply(event));
        let known = sessions.known.remove(session);
        known.map(|it| it.messages).unwrap_or_default()
    }

    /// Something was sent to a session, which OpenCode has admitted.
    pub(super) fn sent(&mut self, session: &str, item: Value) {
        let id = text(&item, "id").to_owned();
        let known = self.get_mut(session);
        if known.message(&id).is_none() && !id.is_empty() {
            known.inbox.insert(id, item);
        }
    }

    /// Events may have been lost.
    pub(super) fn missed(&mut self) {
        for known in self.known.values_mut() {
            known.whole = false;
            known.before_gap = known.messages.len();
        }
    }

    pub(super) fn get(&self, session: &str) -> Option<&Relayed> {
        self.known.get(session)
    }

    fn get_mut(&mut self, session: &str) -> &mut Relayed {
        self.heard += 1;
        if self.known.len() >= SESSIONS && !self.known.contains_key(session) {
            let mut heard: Vec<u64> = self.known.values().map(|it| it.heard).collect();
            heard.sort_unstable();
            let middle = heard.get(heard.len() / 2).copied().unwrap_or_default();
            self.known.retain(|_, it| it.heard > middle);
        }
        let known = self.known.entry(session.to_owned()).or_default();
        known.heard = self.heard;
        known
    }
}

impl Relayed {
    pub(super) fn inbox(&self) -> Vec<&Value> {
        self.inbox.values().collect()
    }

    pub(super) fn permissions(&self) -> Vec<&Value> {
        self.permissions.values().collect()
    }

    pub(super) fn forms(&self) -> Vec<&Value> {
        self.forms.values().collect()
    }

    pub(super) fn message(&self, id: &str) -> Option<&Value> {
        self.messages.iter().rev().find(|it| text(it, "id") == id)
    }

    fn end(&mut self) {
        self.permissions.clear();
        self.forms.clear();
    }

    fn ask(&mut self, permission: Value) {
        let id = text(&permission, "id").to_owned();
        self.permissions.insert(id, permission);
    }

    fn inbox_changed(&mut self, kind: &str, created: f64, mut data: Value) {
        let id = text(&data, "inboxID").to_owned();
        match kind {
            "enqueued" if self.message(&id).is_none() => {
                let mut item = take(&mut data, "item");
                if let Some(item) = item.as_object_mut() {
                    item.insert("id".to_owned(), id.as_str().into());
                }
                self.inbox.insert(id, item);
            }
            "cancelled" => drop(self.inbox.remove(&id)),
            "delivered" => {
                let item = self.inbox.remove(&id);
                // What it says was missed; that it is there is known.
                self.whole &= item.is_some();
                let mut item = item.unwrap_or_default();
                let mut message = take(&mut item, "payload");
                if !message.is_object() {
                    message = json!({"text": ""});
                }
                let kind = item["type"].as_str().unwrap_or("user");
                message["type"] = kind.into();
                message["id"] = id.into();
                message["time"] = json!({"created": created});
                self.push(message);
            }
            _ => {}
        }
    }

    /// A compaction begins, is complete or has failed. It has its name from its beginning, made as
    /// OpenCode makes it.
    fn compacted(&mut self, kind: &str, event: &str, created: f64, mut data: Value) {
        let status = match kind {
            "session.compaction.started" => "running",
            "session.compaction.ended" => "completed",
            _ => "failed",
        };
        let given = take(&mut data, "inputID");
        let mut message = json!({
            "type": "compaction",
            "status": status,
            "reason": take(&mut data, "reason"),
            "summary": take(&mut data, "text"),
            "recent": take(&mut data, "recent"),
            "error": take(&mut data, "error"),
        });
        let is_running = |it: &&mut Value| it["type"] == "compaction" && it["status"] == "running";
        let begun = self.messages.iter_mut().rfind(is_running);
        match begun.filter(|_| status != "running") {
            Some(begun) => {
                message["id"] = take(begun, "id");
                message["time"] = take(begun, "time");
                *begun = message;
            }
            None => {
                let of_event = || event.replacen("evt_", "msg_", 1);
                message["id"] = given.as_str().map_or_else(of_event, str::to_owned).into();
                message["time"] = json!({"created": created});
                self.push(message);
            }
        }
    }

    /// The agent writes, calls tools, or ends a step.
    fn answering(&mut self, kind: &str, created: f64, mut data: Value) {
        let id = text(&data, "assistantMessageID").to_owned();
        if id.is_empty() {
            return;
        }
        if self.message(&id).is_none() {
            // If it did not begin now, its beginning was missed.
            self.whole &= kind == "session.step.started";
            let time = json!({"created": created});
            self.push(json!({"id": id, "type": "assistant", "content": [], "time": time}));
        }
        let mut newest = self.messages.iter_mut().rev();
        let Some(message) = newest.find(|it| text(it, "id") == id) else {
            return;
        };
        match kind {
            "session.step.started" => {
                message["agent"] = take(&mut data, "agent");
                message["model"] = take(&mut data, "model");
                message["retry"] = Value::Null;
            }
            "session.retry.scheduled" => message["retry"] = data,
            "session.step.ended" | "session.step.failed" => end_step(message, created, data),
            "session.text.started" | "session.text.ended" => write(message, "text", data),
            "session.reasoning.started" | "session.reasoning.ended" => {
                write(message, "reasoning", data);
            }
            kind => use_tool(message, kind, data),
        }
    }

    fn push(&mut self, message: Value) {
        self.messages.push(message);
        if self.messages.len() > MESSAGES {
            self.messages.drain(..MESSAGES / 4);
            self.whole = false;
            self.before_gap = self.before_gap.saturating_sub(MESSAGES / 4);
        }
    }
}

fn end_step(message: &mut Value, created: f64, mut data: Value) {
    let finish = match take(&mut data, "finish") {
        Value::Null => "error".into(),
        finish => finish,
    };
    message["finish"] = finish;
    for key in ["error", "cost", "tokens"] {
        if !data[key].is_null() {
            message[key] = take(&mut data, key);
        }
    }
    message["time"]["completed"] = created.into();
}

/// A text begins, or is complete. Of each kind they are counted.
fn write(message: &mut Value, kind: &str, mut data: Value) {
    let Some(content) = message["content"].as_array_mut() else {
        return;
    };
    let ordinal = take(&mut data, "ordinal");
    let same = |part: &&mut Value| part["type"] == kind && part["ordinal"] == ordinal;
    let written = take(&mut data, "text");
    match content.iter_mut().find(same) {
        Some(part) if written.is_string() => part["text"] = written,
        Some(_) => {}
        None => {
            let text = written.as_str().unwrap_or_default();
            content.push(json!({"type": kind, "ordinal": ordinal, "text": text}));
        }
    }
}

fn use_tool(message: &mut Value, kind: &str, mut data: Value) {
    let Some(content) = message["content"].as_array_mut() else {
        return;
    };
    let id = text(&data, "id").to_owned();
    if !content.iter().any(|part| text(part, "id") == id) {
        let name = data["name"].as_str().unwrap_or("unknown");
        let state = json!({"status": "streaming"});
        content.push(json!({"type": "tool", "id": id, "name": name, "state": state}));
    }
    let Some(part) = content.iter_mut().find(|part| text(part, "id") == id) else {
        return;
    };
    let input = part.get_mut("state").map(|state| take(state, "input"));
    part["state"] = match kind {
        "session.tool.called" => json!({"status": "running", "input": take(&mut data, "input")}),
        "session.tool.success" => {
            let (content, metadata) = (take(&mut data, "content"), take(&mut data, "metadata"));
            json!({"status": "completed", "input": input, "content": content, "metadata": metadata})
        }
        "session.tool.failed" => {
            json!({"status": "error", "input": input, "error": take(&mut data, "error")})
        }
        _ => return,
    };
}

/// A text in an object; empty if there is none.
fn text<'a>(object: &'a Value, key: &str) -> &'a str {
    object[key].as_str().unwrap_or_default()
}
