//! What a model was shown, as messages of its session: all that a plugin gets to see of what was
//! said before it was loaded.

use asyncagents_core::moment::Moment;
use serde_json::{Map, Value, json};

use super::json::take;

/// The messages of a session, oldest first, as OpenCode's API would write them. What a model is not
/// shown, such as times and costs, they do not have.
pub(super) fn messages(shown: Value) -> Vec<Value> {
    let Value::Array(shown) = shown else {
        return Vec::new();
    };
    let mut messages: Vec<Value> = Vec::new();
    for mut turn in shown {
        let content = take(&mut turn, "content");
        match turn["role"].as_str() {
            Some("user") => messages.push(user(&turn, &content)),
            Some("assistant") => messages.push(assistant(&turn, content)),
            Some("tool") => add_results(&mut messages, content),
            // A system prompt is not part of the conversation.
            _ => {}
        }
    }
    messages
}

/// Dates the newest messages: a model was asked about them since OpenCode began. More is not known.
pub(super) fn date(messages: &mut [Value], began: Moment) {
    let time = json!({"created": began.as_millis()});
    let is_answer = |message: &Value| message["type"] == "assistant";
    let answer = messages.iter().rposition(is_answer);
    let newest = messages.len().checked_sub(1);
    for place in [answer, newest].into_iter().flatten() {
        if let Some(message) = messages.get_mut(place).and_then(Value::as_object_mut) {
            message.insert("time".to_owned(), time.clone());
        }
    }
}

fn user(turn: &Value, content: &Value) -> Value {
    let mut message = json!({"type": "user", "text": text(content)});
    if let Some(id) = turn["id"].as_str() {
        message["id"] = id.into();
    }
    message
}

fn assistant(turn: &Value, content: Value) -> Value {
    let parts = match content {
        Value::Array(parts) => parts,
        text => vec![json!({"type": "text", "text": text})],
    };
    let calls = |part: &Value| part["type"] == "tool-call";
    let finish = if parts.iter().any(calls) {
        "tool-calls"
    } else {
        "stop"
    };
    let content: Vec<Value> = parts.into_iter().filter_map(part).collect();
    let mut message = json!({"type": "assistant", "content": content, "finish": finish});
    if let Some(id) = turn["id"].as_str() {
        message["id"] = id.into();
    }
    message
}

fn part(mut part: Value) -> Option<Value> {
    let kind = part["type"].as_str()?.to_owned();
    match kind.as_str() {
        "text" | "reasoning" => Some(json!({"type": kind, "text": take(&mut part, "text")})),
        "tool-call" => Some(json!({
            "type": "tool",
            "id": take(&mut part, "id"),
            "name": take(&mut part, "name"),
            "state": {"status": "running", "input": take(&mut part, "input")},
        })),
        _ => None,
    }
}

/// Adds results to the calls of the newest message that has such calls.
fn add_results(messages: &mut [Value], content: Value) {
    let Value::Array(results) = content else {
        return;
    };
    for mut result in results {
        let id = take(&mut result, "id");
        let mut newest = messages.iter_mut().rev();
        let call = newest.find_map(|message| {
            let parts = message["content"].as_array_mut()?;
            parts.iter_mut().find(|part| part["id"] == id)
        });
        if let Some(state) = call.and_then(|call| call["state"].as_object_mut()) {
            set_result(state, take(&mut result, "result"));
        }
    }
}

fn set_result(state: &mut Map<String, Value>, mut result: Value) {
    let value = take(&mut result, "value");
    if result["type"] == "error" {
        let error = match &value["error"] {
            Value::Null => json!({"type": "unknown", "message": plain(&value)}),
            error => error.clone(),
        };
        state.insert("status".to_owned(), "error".into());
        state.insert("error".to_owned(), error);
        return;
    }
    let content = match value {
        Value::Array(content) => Value::Array(content),
        value => json!([{"type": "text", "text": plain(&value)}]),
    };
    state.insert("status".to_owned(), "completed".into());
    state.insert("content".to_owned(), content);
}

/// The text of a content, which may be text itself.
fn text(content: &Value) -> String {
    match content {
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|part| part["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        content => plain(content),
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::messages;

    #[test]
    fn a_conversation_is_read_back() {
        let call = |id: &str| json!({"type": "tool-call", "id": id, "name": "shell", "input": {"command": id}});
        let error = json!({"error": {"type": "unknown", "message": "no"}, "content": []});
        let shown = json!([
            {"role": "system", "content": "you are"},
            {"id": "msg_1", "role": "user", "content": [{"type": "text", "text": "go"}], "metadata": {}},
            {"id": "msg_2", "role": "assistant", "content": [
                {"type": "reasoning", "text": "hm"}, call("a"), call("b"), call("c"),
            ]},
            {"role": "tool", "content": [{"type": "tool-result", "id": "a", "result": {"type": "text", "value": "done"}}]},
            {"role": "tool", "content": [{"type": "tool-result", "id": "b", "result": {"type": "error", "value": error}}]},
            {"id": "msg_3", "role": "assistant", "content": [{"type": "text", "text": "well"}]},
        ]);
        let state = |status: &str, id: &str| json!({"status": status, "input": {"command": id}});
        let mut done = state("completed", "a");
        done["content"] = json!([{"type": "text", "text": "done"}]);
        let mut failed = state("error", "b");
        failed["error"] = json!({"type": "unknown", "message": "no"});
        let tool =
            |id: &str, state| json!({"type": "tool", "id": id, "name": "shell", "state": state});
        assert_eq!(
            messages(shown),
            [
                json!({"id": "msg_1", "type": "user", "text": "go"}),
                json!({"id": "msg_2", "type": "assistant", "finish": "tool-calls", "content": [
                    {"type": "reasoning", "text": "hm"},
                    tool("a", done), tool("b", failed), tool("c", state("running", "c")),
                ]}),
                json!({"id": "msg_3", "type": "assistant", "finish": "stop", "content": [
                    {"type": "text", "text": "well"},
                ]}),
            ]
        );
    }

    #[test]
    fn what_is_no_conversation_is_none() {
        for shown in [
            json!(null),
            json!("x"),
            json!([1, {"role": 7}, {"role": "tool"}]),
        ] {
            assert!(messages(shown).is_empty());
        }
    }
}
