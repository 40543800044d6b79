//! OpenCode 2's messages, written one at a time in the shape of the real host.

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
        self.message(json!({"type": "user", "text": text}))
    }

    /// OpenCode, or a plugin, says something in the user's name.
    pub fn synthetic(self, text: &str, description: &str) -> Self {
        self.message(json!({"type": "synthetic", "text": text, "description": description}))
    }

    /// The user runs a command.
    pub fn shell(self, command: &str, output: &str) -> Self {
        let output =
            json!({"output": output, "cursor": 0, "size": output.len(), "truncated": false});
        self.message(json!({
            "type": "shell", "shellID": "sh_1", "command": command, "status": "exited", "exit": 0,
            "output": output,
        }))
    }

    /// A finished message of the agent.
    pub fn agent(self, content: Vec<Value>) -> Self {
        let mut session = self.agent_in_flight(content);
        if let Some(message) = session.messages.last_mut() {
            message["time"]["completed"] = message["time"]["created"].clone();
            message["finish"] = json!("tool-calls");
            message["cost"] = json!(0);
            message["tokens"] = json!({
                "input": 1, "output": 1, "reasoning": 0, "cache": {"read": 0, "write": 0},
            });
        }
        session
    }

    /// The message that the agent is still writing.
    pub fn agent_in_flight(self, content: Vec<Value>) -> Self {
        self.message(json!({
            "type": "assistant", "agent": "build", "content": content,
            "model": {"id": "fake-1", "providerID": "fake"},
        }))
    }

    /// A compaction that worked, and kept `recent` beside its summary.
    pub fn compacted(self, summary: &str, recent: &str) -> Self {
        self.compaction("completed", json!({"summary": summary, "recent": recent}))
    }

    /// A compaction that ended in an error.
    pub fn compaction_failed(self) -> Self {
        self.compaction(
            "failed",
            json!({"error": {"type": "unknown", "message": "no"}}),
        )
    }

    /// A compaction whose summary is still being written.
    pub fn compaction_unfinished(self, partial: &str) -> Self {
        self.compaction("running", json!({"summary": partial, "recent": ""}))
    }

    /// A message of any kind, which gets an ID and a time unless it has them.
    pub fn message(mut self, mut message: Value) -> Self {
        let at = self.messages.len();
        for (key, value) in [
            ("id", json!(self.next_id())),
            ("time", json!({"created": 1_000 + 10 * at})),
        ] {
            if message[key].is_null() {
                message[key] = value;
            }
        }
        self.messages.push(message);
        self
    }

    /// Any entry at all.
    pub fn entry(mut self, entry: Value) -> Self {
        self.messages.push(entry);
        self
    }

    /// The messages, oldest first.
    pub fn messages(&self) -> &[Value] {
        &self.messages
    }

    /// The list as JSON text, oldest first.
    pub fn json(&self) -> String {
        Value::from(self.messages.clone()).to_string()
    }

    /// All messages as one page, newest first, as OpenCode answers by default.
    pub fn page(&self) -> String {
        let newest_first: Vec<&Value> = self.messages.iter().rev().collect();
        json!({"data": newest_first, "cursor": {"previous": "cHJldg", "next": "bmV4dA"}})
            .to_string()
    }

    /// All messages as one page, oldest first.
    pub fn page_oldest_first(&self) -> String {
        json!({"data": self.messages, "cursor": {"previous": "cHJldg", "next": "bmV4dA"}})
            .to_string()
    }

    /// What `GET …/context` answers if there was no compaction.
    pub fn context(&self) -> String {
        json!({"data": self.messages}).to_string()
    }

    /// What the session's export is.
    pub fn export(&self) -> Value {
        json!({
            "info": {
                "id": "ses_1", "projectID": "global", "cost": 0, "title": "a session",
                "tokens": {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}},
                "time": {"created": 1, "updated": 2}, "location": {"directory": "/home/user/project"},
            },
            "messages": self.messages,
            "location": {"directory": "/home/user/project"},
        })
    }

    /// The ID the next message will have.
    pub fn next_id(&self) -> String {
        format!("msg_{}", self.messages.len())
    }

    fn compaction(self, status: &str, mut about: Value) -> Self {
        about["type"] = json!("compaction");
        about["status"] = json!(status);
        about["reason"] = json!("auto");
        self.message(about)
    }
}

/// A text of the agent.
pub fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// A finished call.
pub fn tool(name: &str, input: Value, output: &str) -> Value {
    call(
        name,
        json!({
            "status": "completed", "input": input, "content": [{"type": "text", "text": output}],
            "metadata": {"truncated": false},
        }),
    )
}

/// A finished read, for results whose call does not matter.
pub fn result(output: &str) -> Value {
    tool("read", json!({"path": "a.rs"}), output)
}

/// A call that failed.
pub fn tool_error(name: &str, input: Value, error: &str) -> Value {
    call(
        name,
        json!({"status": "error", "input": input, "error": {"type": "unknown", "message": error}}),
    )
}

/// A call that has no result.
pub fn tool_running(name: &str, input: Value) -> Value {
    call(
        name,
        json!({"status": "running", "input": input, "metadata": {}}),
    )
}

/// A call in any state.
pub fn call(name: &str, state: Value) -> Value {
    json!({
        "type": "tool", "id": format!("call_{name}"), "name": name, "executed": false, "state": state,
        "time": {"created": 1, "ran": 2, "completed": 3},
    })
}
