//! OpenCode's message list, written a message at a time in the shape of the real host.

use serde_json::{Value, json};

/// A session being written; message IDs are `msg_0`, `msg_1`, …
#[derive(Debug, Clone, Default)]
pub struct Session {
    messages: Vec<Value>,
}

impl Session {
    /// A session without messages.
    pub fn new() -> Self {
        Self::default()
    }

    /// The user says something.
    pub fn user(self, text: &str) -> Self {
        self.user_parts(vec![self::text(text)])
    }

    /// A user message of any parts.
    pub fn user_parts(mut self, parts: Vec<Value>) -> Self {
        let info = json!({
            "id": self.next_id(), "sessionID": "ses_1", "role": "user",
            "time": {"created": 1}, "summary": {"diffs": []}, "agent": "build",
            "model": {"providerID": "fake", "modelID": "fake-1"},
        });
        self.messages.push(json!({"info": info, "parts": parts}));
        self
    }

    /// A finished message of the agent.
    pub fn agent(mut self, parts: Vec<Value>) -> Self {
        let mut info = self.agent_info();
        info["time"]["completed"] = json!(2);
        info["finish"] = json!("tool-calls");
        self.messages.push(json!({"info": info, "parts": parts}));
        self
    }

    /// The message that the agent is still writing.
    pub fn agent_in_flight(mut self, parts: Vec<Value>) -> Self {
        let info = self.agent_info();
        self.messages.push(json!({"info": info, "parts": parts}));
        self
    }

    /// A compaction that worked.
    pub fn compacted(self, summary: &str) -> Self {
        self.compacted_keeping(None, summary)
    }

    /// A compaction that worked, and kept the messages from `tail_start` on.
    pub fn compacted_keeping(self, tail_start: Option<&str>, summary: &str) -> Self {
        self.compaction(tail_start, summary, |info| {
            info["finish"] = json!("stop");
            info["time"]["completed"] = json!(2);
        })
    }

    /// A compaction whose summary ended in an error.
    pub fn compaction_failed(self, partial: &str) -> Self {
        self.compaction(None, partial, |info| {
            info["error"] = json!({"name": "UnknownError", "data": {"message": "no"}});
            info["time"]["completed"] = json!(2);
        })
    }

    /// A compaction whose summary is still being written.
    pub fn compaction_unfinished(self, partial: &str) -> Self {
        self.compaction(None, partial, |_| {})
    }

    /// Any entry at all.
    pub fn entry(mut self, entry: Value) -> Self {
        self.messages.push(entry);
        self
    }

    /// The list as JSON text.
    pub fn json(&self) -> String {
        Value::from(self.messages.clone()).to_string()
    }

    /// The ID the next message will have.
    pub fn next_id(&self) -> String {
        format!("msg_{}", self.messages.len())
    }

    /// The request, and a summary that ends as `end` says.
    fn compaction(self, tail_start: Option<&str>, summary: &str, end: impl Fn(&mut Value)) -> Self {
        let request = self.next_id();
        let mut part = json!({"type": "compaction", "auto": true});
        if let Some(id) = tail_start {
            part["tail_start_id"] = json!(id);
        }
        let mut session = self.user_parts(vec![part]);
        let mut info = session.agent_info();
        info["parentID"] = json!(request);
        info["summary"] = json!(true);
        end(&mut info);
        let message = json!({"info": info, "parts": [text(summary)]});
        session.messages.push(message);
        session
    }

    fn agent_info(&self) -> Value {
        json!({
            "id": self.next_id(), "sessionID": "ses_1", "role": "assistant",
            "time": {"created": 1}, "parentID": "msg_0", "modelID": "fake-1",
            "providerID": "fake", "mode": "build", "agent": "build",
            "path": {"cwd": "/home/user/project", "root": "/home/user/project"},
            "cost": 0, "tokens": {"input": 1, "output": 1, "reasoning": 0, "cache": {"read": 0, "write": 0}},
        })
    }
}

/// A text part.
pub fn text(text: &str) -> Value {
    json!({"id": "prt_1", "type": "text", "text": text})
}

/// A finished call.
pub fn tool(name: &str, input: Value, output: &str) -> Value {
    json!({"id": "prt_1", "type": "tool", "callID": format!("call_{name}"), "tool": name, "state": {
        "status": "completed", "input": input, "output": output, "title": name,
        "metadata": {}, "time": {"start": 1, "end": 2},
    }})
}

/// A finished read, for results whose call does not matter.
pub fn result(output: &str) -> Value {
    tool("read", json!({"filePath": "a.rs"}), output)
}

/// A call that failed.
pub fn tool_error(name: &str, input: Value, error: &str) -> Value {
    json!({"type": "tool", "callID": "call_e", "tool": name, "state": {
        "status": "error", "input": input, "error": error, "time": {"start": 1, "end": 2},
    }})
}

/// A finished call whose output the host has cleared since.
pub fn tool_cleared(name: &str, input: Value, output: &str) -> Value {
    let mut part = tool(name, input, output);
    part["state"]["time"]["compacted"] = json!(3);
    part
}

/// A call that has no result.
pub fn tool_running(name: &str, input: Value) -> Value {
    json!({"type": "tool", "callID": "call_r", "tool": name, "state": {
        "status": "running", "input": input, "time": {"start": 1},
    }})
}
