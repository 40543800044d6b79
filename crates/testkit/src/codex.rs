//! Codex's rollouts, written a record at a time in the shape of the real host.

use serde_json::{Value, json};

/// A rollout being written.
#[derive(Debug, Clone)]
pub struct Rollout {
    lines: Vec<String>,
}

/// The thread whose rollouts these are.
pub const THREAD: &str = "01a1e536-bcc1-7b41-9aa2-aa856fb88bcc";
const TURN: &str = "01a1e536-d06a-7161-b5db-e91ed3ad8958";

/// A message as an item of the conversation, as one of these kinds.
pub fn message(role: &str, text: &str, kind: &str) -> Value {
    let of_model = role == "assistant";
    let content_type = if of_model {
        "output_text"
    } else {
        "input_text"
    };
    json!({
        "type": "message", "role": role, "content": [{"type": content_type, "text": text}],
        "internal_chat_message_metadata_passthrough": {
            "turn_id": TURN, "content_item_kinds": [kind],
        },
    })
}

impl Default for Rollout {
    fn default() -> Self {
        Self::new()
    }
}

impl Rollout {
    /// A thread in which nothing was said yet.
    pub fn new() -> Self {
        Self { lines: Vec::new() }.line(
            "session_meta",
            json!({
                "session_id": THREAD, "id": THREAD, "cwd": "/project", "originator": "codex-tui",
                "cli_version": "0.166.0", "source": "vscode", "base_instructions": "You are Codex.",
            }),
        )
    }

    /// The user says something, which begins a turn.
    pub fn user(self, text: &str) -> Self {
        self.event(json!({"type": "task_started", "turn_id": TURN}))
            .line("turn_context", json!({"turn_id": TURN, "cwd": "/project"}))
            .item(message("user", text, "user.text"))
            .event(
                json!({"type": "item_completed", "item": {"type": "UserMessage", "content": text}}),
            )
    }

    /// How the model is to work.
    pub fn developer(self, text: &str) -> Self {
        self.item(message("developer", text, "permissions.instructions"))
    }

    /// What a hook adds.
    pub fn hook(self, text: &str) -> Self {
        self.item(message("developer", text, "hooks.additional_context"))
    }

    /// The model says something.
    pub fn says(self, text: &str) -> Self {
        self.item(message("assistant", text, "unknown"))
    }

    /// The model thinks.
    pub fn reasoning(self, summary: &str) -> Self {
        self.item(json!({
            "type": "reasoning", "id": "rs_1", "encrypted_content": "gAAAA",
            "summary": [{"type": "summary_text", "text": summary}],
        }))
    }

    /// The model calls a tool. Arguments are JSON in a string.
    pub fn calls(self, call: &str, tool: &str, arguments: &Value) -> Self {
        self.item(json!({
            "type": "function_call", "status": "completed", "id": format!("fc_{call}"),
            "name": tool, "arguments": arguments.to_string(), "call_id": call,
        }))
    }

    /// An answer is complete.
    pub fn answered(self) -> Self {
        self.line(
            "token_usage_record",
            json!({"thread_id": THREAD, "turn_id": TURN}),
        )
    }

    /// What a tool answers.
    pub fn result(self, call: &str, text: &str) -> Self {
        self.item(json!({
            "type": "function_call_output", "id": format!("fco_{call}"), "call_id": call,
            "output": [{"type": "input_text", "text": text}],
        }))
        .event(json!({"type": "token_count", "info": null}))
    }

    /// The end of a turn.
    pub fn turn_over(self) -> Self {
        self.event(json!({"type": "task_complete", "turn_id": TURN}))
    }

    /// A compaction that keeps these words of the user beside its summary.
    pub fn compacted(self, summary: &str, kept: &[&str]) -> Self {
        let kept = kept.iter().map(|text| message("user", text, "user.text"));
        let mut history: Vec<Value> = kept.collect();
        history.push(message(
            "developer",
            "<permissions instructions>…",
            "permissions.instructions",
        ));
        history.push(message(
            "user",
            "<environment_context>…",
            "environment.context",
        ));
        history.push(message("user", summary, "compaction.summary"));
        self.line(
            "compacted",
            json!({"message": summary, "replacement_history": history}),
        )
    }

    /// The user goes back so many turns.
    pub fn rolled_back(self, turns: usize) -> Self {
        self.event(json!({"type": "thread_rolled_back", "num_turns": turns}))
    }

    /// An event that the model does not see.
    pub fn event(self, payload: Value) -> Self {
        self.line("event_msg", payload)
    }

    /// An item of the conversation.
    pub fn item(self, payload: Value) -> Self {
        self.line("response_item", payload)
    }

    /// A record of any kind.
    pub fn line(mut self, kind: &str, payload: Value) -> Self {
        let ordinal = self.lines.len();
        self.lines.push(
            json!({
                "timestamp": "2026-11-16T16:35:37.225Z", "ordinal": ordinal, "type": kind,
                "payload": payload,
            })
            .to_string(),
        );
        self
    }

    /// Any line at all.
    pub fn text(mut self, line: impl Into<String>) -> Self {
        self.lines.push(line.into());
        self
    }

    /// The lines, oldest first.
    pub fn lines(&self) -> &[String] {
        &self.lines
    }

    /// The file.
    pub fn jsonl(&self) -> String {
        self.lines.iter().map(|line| format!("{line}\n")).collect()
    }
}
