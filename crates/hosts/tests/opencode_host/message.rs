//! Messages as OpenCode 1.18.33 writes them. What only it can know is filled in by the fake:
//! the names of messages and parts, and when they were made.

use serde_json::{Value, json};

/// Something a user said.
pub(crate) fn user(said: &str) -> Value {
    user_of(vec![text(said)])
}

pub(crate) fn user_of(parts: Vec<Value>) -> Value {
    json!({
        "info": {
            "role": "user", "summary": {"diffs": []}, "agent": "build",
            "model": {"providerID": "fake", "modelID": "fake-1"},
        },
        "parts": parts,
    })
}

/// A step of the agent, the last of its turn.
pub(crate) fn agent(parts: Vec<Value>) -> Value {
    agent_with(json!({}), parts)
}

/// A step of the agent about which something else is known; what is null is not.
pub(crate) fn agent_with(more: Value, parts: Vec<Value>) -> Value {
    let mut info = json!({
        "role": "assistant", "mode": "build", "agent": "build",
        "path": {"cwd": "/home/user/project", "root": "/home/user/project"},
        "cost": 0, "modelID": "fake-1", "providerID": "fake", "finish": "stop",
        "tokens": {
            "total": 0, "input": 0, "output": 0, "reasoning": 0,
            "cache": {"write": 0, "read": 0},
        },
        "time": {"completed": 1_794_767_260_449_i64},
    });
    let fields = info.as_object_mut().expect("an object");
    for (key, value) in more.as_object().expect("an object") {
        match value {
            Value::Null => drop(fields.remove(key)),
            value => drop(fields.insert(key.clone(), value.clone())),
        }
    }
    json!({"info": info, "parts": parts})
}

/// A step that was never finished.
pub(crate) fn unfinished(parts: Vec<Value>) -> Value {
    agent_with(json!({"finish": null, "time": {}}), parts)
}

/// A step that ended in an error.
pub(crate) fn failed(error: Value, parts: Vec<Value>) -> Value {
    agent_with(json!({"finish": null, "error": error}), parts)
}

pub(crate) fn text(said: &str) -> Value {
    json!({"type": "text", "text": said, "time": {"start": 1, "end": 2}})
}

/// A call that has its answer.
pub(crate) fn called(call: &str, tool: &str, output: &str) -> Value {
    json!({"type": "tool", "callID": call, "tool": tool, "state": {
        "status": "completed", "input": {"filePath": format!("{call}.rs")}, "output": output,
        "title": tool, "metadata": {"truncated": false}, "time": {"start": 1, "end": 2},
    }})
}

/// A call that failed.
pub(crate) fn call_failed(call: &str, tool: &str, error: &str) -> Value {
    json!({"type": "tool", "callID": call, "tool": tool, "state": {
        "status": "error", "input": {}, "error": error, "time": {"start": 1, "end": 2},
    }})
}

/// A call without an answer.
pub(crate) fn calling(call: &str, tool: &str) -> Value {
    json!({"type": "tool", "callID": call, "tool": tool, "state": {
        "status": "running", "input": {"prompt": "go"}, "time": {"start": 1},
    }})
}

/// What a step has used, at its end.
pub(crate) fn step_finish() -> Value {
    json!({
        "type": "step-finish", "reason": "stop", "cost": 0.25,
        "snapshot": "4512e8bf3c75e305def26f63787edfa3f2faca20", "tokens": tokens(),
    })
}

/// 8,292 tokens in all.
pub(crate) fn tokens() -> Value {
    json!({
        "total": 8292, "input": 8282, "output": 8, "reasoning": 1,
        "cache": {"write": 0, "read": 1},
    })
}

/// What came of a call, as its part says it.
pub(crate) fn output(message: &Value, part: usize) -> &str {
    let state = &message["parts"][part]["state"];
    let said = state["output"].as_str().or(state["error"].as_str());
    said.expect("a call with an answer")
}

/// Everything said in a message.
pub(crate) fn said(message: &Value) -> String {
    let parts = message["parts"].as_array().expect("parts");
    let texts = parts.iter().filter_map(|part| part["text"].as_str());
    texts.collect::<Vec<_>>().join("\n")
}

pub(crate) fn id(message: &Value) -> String {
    message["info"]["id"].as_str().expect("an ID").to_owned()
}
