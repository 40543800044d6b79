//! Claude Code's transcripts, written a record at a time in the shape of the real host.

use serde_json::{Map, Value, json};

/// A transcript being written. Records are called as [`uuid`] says, in the order of the file.
#[derive(Debug, Clone, Default)]
pub struct Transcript {
    lines: Vec<String>,
    records: usize,
    answers: usize,
    /// The record that the next one follows.
    newest: Option<String>,
    agent: Option<&'static str>,
}

/// The name of a record, by its place among those that have one.
pub fn uuid(record: usize) -> String {
    format!("00000000-0000-4000-8000-{record:012}")
}

/// A block of an answer: text.
pub fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// A block of an answer that is not for others.
pub fn thinking(text: &str) -> Value {
    json!({"type": "thinking", "thinking": text, "signature": "c2ln"})
}

/// A block of an answer: a tool call.
pub fn call(id: &str, tool: &str, input: Value) -> Value {
    json!({"type": "tool_use", "name": tool, "input": input, "id": id})
}

impl Transcript {
    /// A session without records.
    pub fn new() -> Self {
        Self::default()
    }

    /// The transcript of a sub-agent.
    pub fn of_sub_agent(agent: &'static str) -> Self {
        Self {
            agent: Some(agent),
            ..Self::default()
        }
    }

    /// The user says something.
    pub fn user(self, text: &str) -> Self {
        self.record(json!({
            "type": "user", "message": {"role": "user", "content": text},
            "origin": {"kind": "human"}, "promptSource": "typed", "turnOrigin": "human",
        }))
    }

    /// A finished answer, each block a record of its own, as Claude Code writes them.
    pub fn answer(mut self, blocks: Vec<Value>) -> Self {
        self.answers += 1;
        let name = format!("msg_{}", self.answers);
        blocks
            .into_iter()
            .fold(self, |transcript, block| transcript.piece(&name, block))
    }

    /// One block of an answer with this name.
    pub fn piece(self, answer: &str, block: Value) -> Self {
        self.record(json!({
            "type": "assistant", "madeBy": "model",
            "message": {
                "id": answer, "type": "message", "role": "assistant", "model": "claude-opus-5-5",
                "content": [block], "stop_reason": "tool_use", "stop_sequence": null,
                "usage": {"input_tokens": 14277, "output_tokens": 20, "service_tier": "standard"},
            },
        }))
    }

    /// What a tool answers.
    pub fn result(self, call: &str, text: &str) -> Self {
        self.result_with(json!({
            "tool_use_id": call, "type": "tool_result", "content": text, "is_error": false,
        }))
    }

    /// An MCP tool's answer, which has pieces.
    pub fn result_in_pieces(self, call: &str, texts: &[&str]) -> Self {
        let pieces: Vec<Value> = texts.iter().map(|piece| text(piece)).collect();
        self.result_with(json!({"tool_use_id": call, "type": "tool_result", "content": pieces}))
    }

    /// What a tool answers that failed.
    pub fn failed(self, call: &str, text: &str) -> Self {
        self.result_with(json!({
            "type": "tool_result", "content": text, "is_error": true, "tool_use_id": call,
        }))
    }

    fn result_with(self, block: Value) -> Self {
        let answered = self.newest.clone();
        let text = block["content"].clone();
        self.record(json!({
            "type": "user", "message": {"role": "user", "content": [block]},
            "toolUseResult": {"stdout": text, "stderr": "", "interrupted": false},
            "sourceToolAssistantUUID": answered,
        }))
    }

    /// A notice that came while the model was at work.
    pub fn notice(self, text: &str) -> Self {
        self.attachment(json!({
            "type": "queued_command", "prompt": text, "commandMode": "task-notification",
            "origin": {"kind": "task-notification", "producer": "session-task"},
        }))
    }

    /// What a hook adds.
    pub fn hook(self, text: &str) -> Self {
        self.attachment(json!({
            "type": "hook_additional_context", "content": [text], "hookName": "UserPromptSubmit",
        }))
    }

    /// What the host adds for the model.
    pub fn attachment(self, attachment: Value) -> Self {
        self.record(json!({"type": "attachment", "attachment": attachment}))
    }

    /// A note of the host that is a link of the chain.
    pub fn system(self, subtype: &str) -> Self {
        self.record(json!({"type": "system", "subtype": subtype, "level": "info"}))
    }

    /// A compaction that keeps so many of the records before it.
    pub fn compacted(self, summary: &str, keep: usize) -> Self {
        let first = self.records.saturating_sub(keep);
        let kept = (first..self.records).map(uuid).collect();
        self.compacted_keeping(summary, kept)
    }

    /// A compaction that keeps these records.
    pub fn compacted_keeping(mut self, summary: &str, kept: Vec<String>) -> Self {
        let before = self.newest.take();
        let anchor = uuid(self.records + 1);
        let segment = kept
            .first()
            .zip(kept.last())
            .map(|(head, tail)| json!({"headUuid": head, "anchorUuid": anchor, "tailUuid": tail}));
        self.record(json!({
            "type": "system", "subtype": "compact_boundary", "logicalParentUuid": before,
            "content": "Conversation compacted", "compactMetadata": {
                "trigger": "manual", "preTokens": 16290, "postTokens": 3081,
                "preservedSegment": segment,
                "preservedMessages": {"anchorUuid": anchor, "uuids": kept, "allUuids": kept},
            },
        }))
        .record(json!({
            "type": "user", "message": {"role": "user", "content": summary},
            "isVisibleInTranscriptOnly": true, "isCompactSummary": true,
        }))
    }

    /// What comes next follows this record: the user went back.
    pub fn back_to(mut self, record: Option<usize>) -> Self {
        self.newest = record.map(uuid);
        self
    }

    /// A record that takes part in the chain. It gets a name, and follows the newest, unless it
    /// says otherwise.
    pub fn record(mut self, record: Value) -> Self {
        let mut fields = Map::new();
        let name = uuid(self.records);
        fields.insert("parentUuid".to_owned(), json!(self.newest));
        fields.insert("isSidechain".to_owned(), json!(self.agent.is_some()));
        if let Some(agent) = self.agent {
            fields.insert("agentId".to_owned(), json!(agent));
        }
        fields.insert("uuid".to_owned(), json!(name));
        for (key, value) in [
            ("timestamp", "2026-11-16T16:32:43.468Z"),
            ("userType", "external"),
            ("cwd", "/project"),
            ("sessionId", SESSION),
            ("version", "2.1.325"),
        ] {
            fields.insert(key.to_owned(), json!(value));
        }
        if let Value::Object(record) = record {
            fields.extend(record);
        }
        self.records += 1;
        self.newest = Some(name);
        self.line(Value::from(fields).to_string())
    }

    /// A line of the host's own, such as `last-prompt`.
    pub fn bookkeeping(self, kind: &str) -> Self {
        self.line(json!({"type": kind, "sessionId": SESSION}).to_string())
    }

    /// Any line at all.
    pub fn line(mut self, line: impl Into<String>) -> Self {
        self.lines.push(line.into());
        self
    }

    /// The lines, oldest first.
    pub fn lines(&self) -> &[String] {
        &self.lines
    }

    /// How many records have a name.
    pub fn records(&self) -> usize {
        self.records
    }

    /// The file.
    pub fn jsonl(&self) -> String {
        self.lines.iter().map(|line| format!("{line}\n")).collect()
    }
}

/// The session whose transcripts these are.
pub const SESSION: &str = "60104808-db31-4a6a-bbca-a6b936b75c66";
