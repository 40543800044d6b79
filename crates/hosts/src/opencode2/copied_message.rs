//! A message as it is copied into another session: what its model is shown of it, and nothing else.
//!
//! Left out are files and reasoning, which no fork inherits; what a provider keeps beside its
//! answers, for it refuses a part of that without the rest; and how many tokens a message took, by
//! which OpenCode judges whether the session is full: the copy is shorter.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};

/// What OpenCode itself says of a call that has no result.
const INTERRUPTED: &str = "Tool execution interrupted";
/// Stands for a result without any text.
const NO_TEXT: &str = "[The result has no text]";

/// What is different in the copy of one message.
#[derive(Default)]
pub(super) struct Changes<'c> {
    /// What stays of results, by the names of their calls.
    pub(super) cut: HashMap<&'c str, &'c str>,
    /// Calls that are left out.
    pub(super) hidden: HashSet<&'c str>,
}

/// The copy of a message, under another name.
pub(super) fn copy(message: &Value, id: String, changes: &Changes) -> Value {
    let kind = message["type"].as_str().unwrap_or_default();
    let mut copy = Map::new();
    copy.insert("id".to_owned(), json!(id));
    for key in fields(kind) {
        if let Some(value) = message.get(key).filter(|value| !value.is_null()) {
            copy.insert((*key).to_owned(), value.clone());
        }
    }
    match kind {
        "assistant" => copy_answer(message, &mut copy, changes),
        "shell" => copy_shell(message, &mut copy, changes),
        _ => {}
    }
    Value::Object(copy)
}

/// What is copied of each kind of message.
fn fields(kind: &str) -> &'static [&'static str] {
    match kind {
        "user" => &["type", "time", "text", "skills"],
        "synthetic" => &["type", "time", "text", "description"],
        "skill" => &["type", "time", "skill", "name", "text"],
        "shell" => &[
            "type", "time", "shellID", "command", "status", "exit", "output",
        ],
        "compaction" => &["type", "time", "status", "reason", "summary", "recent"],
        "location-switched" => &["type", "time", "location", "projectID", "subpath"],
        _ => &["type", "time", "agent", "model", "finish"],
    }
}

fn copy_answer(message: &Value, copy: &mut Map<String, Value>, changes: &Changes) {
    let parts = message["content"].as_array().map(Vec::as_slice);
    let parts = parts.unwrap_or_default().iter();
    let content: Vec<Value> = parts.filter_map(|part| copy_part(part, changes)).collect();
    copy.insert("content".to_owned(), json!(content));
    complete(copy);
}

/// Nothing goes on in a copy.
fn complete(copy: &mut Map<String, Value>) {
    if let Some(time) = copy.get_mut("time").filter(|time| time.is_object())
        && time["completed"].is_null()
    {
        time["completed"] = time["created"].clone();
    }
}

fn copy_shell(message: &Value, copy: &mut Map<String, Value>, changes: &Changes) {
    let call = message["shellID"].as_str().unwrap_or_default();
    if let (Some(stays), Some(output)) = (changes.cut.get(call), copy.get_mut("output")) {
        output["output"] = json!(stays);
    }
    if message["status"] == "running" {
        copy.insert("status".to_owned(), json!("killed"));
    }
    complete(copy);
}

fn copy_part(part: &Value, changes: &Changes) -> Option<Value> {
    match part["type"].as_str()? {
        "text" => Some(json!({"type": "text", "text": part["text"]})),
        "tool" => {
            let call = part["id"].as_str().unwrap_or_default();
            let is_hidden = changes.hidden.contains(call);
            (!is_hidden).then(|| copy_call(part, changes.cut.get(call).copied()))
        }
        _ => None,
    }
}

fn copy_call(part: &Value, stays: Option<&str>) -> Value {
    let state = &part["state"];
    let input = match &state["input"] {
        Value::Object(input) => Value::Object(input.clone()),
        // What had come of it when the agent was interrupted.
        Value::String(text) => serde_json::from_str(text)
            .ok()
            .filter(Value::is_object)
            .unwrap_or_else(|| json!({})),
        _ => json!({}),
    };
    let state = match state["status"].as_str() {
        Some("completed") => completed(state, input, stays),
        Some("error") => failed(state, input, stays),
        _ => json!({
            "status": "error", "input": input,
            "error": {"type": "aborted", "message": INTERRUPTED},
        }),
    };
    json!({
        "type": "tool", "id": part["id"], "name": part["name"], "executed": false, "state": state,
        "time": part["time"],
    })
}

fn completed(state: &Value, input: Value, stays: Option<&str>) -> Value {
    let mut content = match stays {
        Some(stays) => vec![text(stays)],
        None => texts(state),
    };
    if content.is_empty() {
        content.push(text(NO_TEXT));
    }
    json!({"status": "completed", "input": input, "content": content})
}

fn failed(state: &Value, input: Value, stays: Option<&str>) -> Value {
    let kind = state["error"]["type"].as_str().unwrap_or("unknown");
    let message = state["error"]["message"].as_str().unwrap_or_default();
    let mut failed = json!({
        "status": "error", "input": input,
        "error": {"type": kind, "message": stays.unwrap_or(message)},
    });
    let content = texts(state);
    if stays.is_none() && !content.is_empty() {
        failed["content"] = json!(content);
    }
    failed
}

/// The texts of a result, without its files.
fn texts(state: &Value) -> Vec<Value> {
    let content = state["content"].as_array().map(Vec::as_slice);
    let content = content.unwrap_or_default().iter();
    let texts = content.filter_map(|item| item["text"].as_str());
    texts.map(text).collect()
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(state: Value) -> Value {
        json!({
            "type": "tool", "id": "call_1", "name": "read", "executed": true, "state": state,
            "providerState": {"itemId": "fc_1"}, "time": {"created": 1},
        })
    }

    /// The state of a call in the copy of a message.
    fn state_of(state: Value, changes: &Changes) -> Value {
        let message =
            json!({"type": "assistant", "time": {"created": 1}, "content": [call(state)]});
        copy(&message, "msg_1".to_owned(), changes)["content"][0]["state"].clone()
    }

    fn cut_to(text: &str) -> Changes<'_> {
        let cut = HashMap::from([("call_1", text)]);
        Changes {
            cut,
            ..Changes::default()
        }
    }

    #[test]
    fn a_copy_has_what_the_model_is_shown_and_nothing_else() {
        let message = json!({
            "id": "msg_9", "type": "assistant", "agent": "build", "finish": "tool-calls",
            "model": {"id": "m", "providerID": "p"}, "time": {"created": 1},
            "tokens": {"input": 127_000}, "cost": 1.5, "snapshot": {"start": "c6"},
            "metadata": {"x": 1}, "providerState": {"id": "resp_1"},
            "error": {"type": "aborted", "message": "Step interrupted"},
            "content": [
                {"type": "reasoning", "text": "hm", "state": {"encrypted": "…"}},
                {"type": "text", "text": "I look.", "state": {"itemId": "msg_1"}},
                call(json!({"status": "completed", "input": {"path": "a"}, "metadata": {"diff": "…"},
                    "content": [{"type": "text", "text": "fn"}]})),
            ],
        });
        let expected = json!({
            "id": "msg_1", "type": "assistant", "agent": "build", "finish": "tool-calls",
            "model": {"id": "m", "providerID": "p"}, "time": {"created": 1, "completed": 1},
            "content": [
                {"type": "text", "text": "I look."},
                {"type": "tool", "id": "call_1", "name": "read", "executed": false,
                    "time": {"created": 1}, "state": {"status": "completed", "input": {"path": "a"},
                    "content": [{"type": "text", "text": "fn"}]}},
            ],
        });
        let copied = copy(&message, "msg_1".to_owned(), &Changes::default());
        assert_eq!(copied, expected);
    }

    #[test]
    fn no_call_goes_on_in_a_copy() {
        for (state, input) in [
            (
                json!({"status": "running", "input": {"s": 5}, "metadata": {}}),
                json!({"s": 5}),
            ),
            (
                json!({"status": "streaming", "input": "{\"s\": 5}"}),
                json!({"s": 5}),
            ),
            (
                json!({"status": "streaming", "input": "{\"s\": "}),
                json!({}),
            ),
            (json!({"status": "streaming", "input": "[1]"}), json!({})),
        ] {
            let copied = state_of(state, &Changes::default());
            let error = json!({"type": "aborted", "message": INTERRUPTED});
            assert_eq!(
                copied,
                json!({"status": "error", "input": input, "error": error})
            );
        }
        let hidden = Changes {
            hidden: HashSet::from(["call_1"]),
            ..Changes::default()
        };
        assert_eq!(state_of(json!({"status": "running"}), &hidden), Value::Null);
    }

    #[test]
    fn results_are_cut_and_lose_their_files() {
        let file = json!({"type": "file", "uri": "data:…", "mime": "image/png"});
        let completed =
            |content: Value| json!({"status": "completed", "input": {}, "content": content});
        let texts = json!([text("one"), file, text("two")]);
        let none = Changes::default();
        let copied = |content: &Value, changes: &Changes| {
            state_of(completed(content.clone()), changes)["content"].clone()
        };
        assert_eq!(copied(&texts, &none), json!([text("one"), text("two")]));
        assert_eq!(copied(&texts, &cut_to("o")), json!([text("o")]));
        assert_eq!(copied(&json!([file]), &none), json!([text(NO_TEXT)]));
        let failed = json!({
            "status": "error", "input": {}, "content": [text("so far")],
            "error": {"type": "tool.execution", "message": "boom"},
        });
        assert_eq!(state_of(failed.clone(), &none), failed);
        let cut = state_of(failed, &cut_to("b"));
        assert_eq!(cut["error"]["message"], "b");
        assert_eq!(cut["content"], Value::Null);
    }

    #[test]
    fn a_command_of_the_user_is_cut_like_a_call() {
        let output = json!({"output": "long", "cursor": 0, "size": 4, "truncated": false});
        let message = json!({
            "type": "shell", "shellID": "call_1", "command": "make", "status": "running",
            "time": {"created": 1}, "output": output,
        });
        let copied = copy(&message, "msg_1".to_owned(), &cut_to("lo"));
        assert_eq!(copied["output"]["output"], "lo");
        assert_eq!(copied["status"], "killed");
        assert_eq!(copied["time"]["completed"], 1);
    }
}
