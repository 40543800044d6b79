//! The records that Claude Code writes, as far as they are needed. They come from outside: what is
//! not known is passed over.

use std::collections::BTreeMap;

use asyncagents_core::agent::Usage;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

/// A record.
#[derive(Debug)]
pub(super) enum Record {
    Init(Init),
    Assistant(Assistant),
    User(User),
    Lifecycle(Lifecycle),
    Result(Box<TurnResult>),
    /// It asks something.
    Request(Request),
    /// It needs no answer any more.
    Cancelled(Cancelled),
    /// It answers something.
    Response(Response),
    /// Anything else.
    Other,
}

/// A turn begins.
#[derive(Debug, Deserialize)]
pub(super) struct Init {
    pub(super) model: Option<String>,
}

/// A piece of an answer.
#[derive(Debug, Deserialize)]
pub(super) struct Assistant {
    pub(super) message: Answer,
    /// The call of a sub-agent whose answer it is.
    pub(super) parent_tool_use_id: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Answer {
    pub(super) id: Option<String>,
    pub(super) model: Option<String>,
    #[serde(default)]
    pub(super) content: Vec<Value>,
    pub(super) usage: Option<WireUsage>,
}

/// A part of an answer, or of what the model is told.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Block {
    Text {
        text: String,
    },
    Thinking {
        thinking: String,
    },
    ToolUse {
        id: String,
        name: String,
        input: Value,
    },
    ToolResult {
        tool_use_id: String,
        #[serde(default)]
        content: Value,
        is_error: Option<bool>,
    },
}

/// What the model is told: messages and results.
#[derive(Debug, Deserialize)]
pub(super) struct User {
    pub(super) message: Told,
    pub(super) parent_tool_use_id: Option<String>,
    pub(super) uuid: Option<String>,
    #[serde(default, rename = "isReplay")]
    pub(super) is_replay: bool,
}

#[derive(Debug, Deserialize)]
pub(super) struct Told {
    /// A text, or blocks.
    #[serde(default)]
    pub(super) content: Value,
}

/// What becomes of a message of ours.
#[derive(Debug, Deserialize)]
pub(super) struct Lifecycle {
    pub(super) command_uuid: String,
    pub(super) state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum State {
    Queued,
    /// A turn has it.
    Started,
    Completed,
    Cancelled,
    Discarded,
    Refused,
    #[serde(other)]
    Unknown,
}

/// The end of a turn.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TurnResult {
    pub(super) subtype: String,
    pub(super) is_error: bool,
    /// What the model has said last, or what went wrong.
    pub(super) result: Option<String>,
    pub(super) errors: Vec<String>,
    pub(super) terminal_reason: Option<String>,
    pub(super) usage: Option<WireUsage>,
    pub(super) total_cost_usd: Option<f64>,
    model_usage_since_last_result: Option<BTreeMap<String, ModelUsage>>,
    /// The messages of the turn.
    pub(super) user_message_uuids: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct ModelUsage {
    #[serde(rename = "costUSD")]
    cost: Option<f64>,
}

impl TurnResult {
    /// What was paid since the turn before, if it says so.
    pub(super) fn new_cost(&self) -> Option<f64> {
        let models = self.model_usage_since_last_result.as_ref()?;
        models.values().map(|model| model.cost).sum()
    }

    /// Whether it was ended by us.
    pub(super) fn was_interrupted(&self) -> bool {
        let reason = self.terminal_reason.as_deref().unwrap_or_default();
        self.subtype == "error_during_execution" || reason.starts_with("aborted")
    }

    /// What went wrong, for people.
    pub(super) fn failure(&self) -> Option<String> {
        if !self.is_error {
            return None;
        }
        let said = self.result.as_deref().map(str::trim);
        if let Some(said) = said.filter(|said| !said.is_empty()) {
            return Some(said.to_owned());
        }
        match (self.subtype.as_str(), self.errors.as_slice()) {
            (subtype, []) => Some(format!("Claude Code has failed: {subtype}")),
            (_, errors) => Some(errors.join("; ")),
        }
    }
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(super) struct WireUsage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
}

impl From<WireUsage> for Usage {
    fn from(usage: WireUsage) -> Self {
        Self {
            input: usage.input_tokens.unwrap_or_default(),
            cache_read: usage.cache_read_input_tokens.unwrap_or_default(),
            cache_write: usage.cache_creation_input_tokens.unwrap_or_default(),
            output: usage.output_tokens.unwrap_or_default(),
        }
    }
}

/// Something that it asks.
#[derive(Debug, Deserialize)]
pub(super) struct Request {
    pub(super) request_id: String,
    pub(super) request: Value,
}

#[derive(Debug, Deserialize)]
pub(super) struct Cancelled {
    pub(super) request_id: String,
}

/// Its answer to something that we ask.
#[derive(Debug, Deserialize)]
pub(super) struct Response {
    pub(super) response: Answered,
}

#[derive(Debug, Deserialize)]
pub(super) struct Answered {
    pub(super) request_id: String,
    pub(super) error: Option<String>,
    #[serde(default)]
    pub(super) response: Value,
}

#[derive(Deserialize)]
struct Head {
    #[serde(rename = "type")]
    kind: String,
    subtype: Option<String>,
}

impl Record {
    /// The record of a line; nothing if it is none.
    pub(super) fn parse(line: &[u8]) -> Option<Self> {
        let head: Head = serde_json::from_slice(line).ok()?;
        let subtype = head.subtype.as_deref();
        Some(match (head.kind.as_str(), subtype) {
            ("system", Some("init")) => Self::Init(read(line)?),
            ("assistant", _) => Self::Assistant(read(line)?),
            ("user", _) => Self::User(read(line)?),
            ("command_lifecycle", _) => Self::Lifecycle(read(line)?),
            // A turn ends even if its end cannot be read.
            ("result", _) => Self::Result(read(line).unwrap_or_default()),
            ("control_request", _) => Self::Request(read(line)?),
            ("control_cancel_request", _) => Self::Cancelled(read(line)?),
            ("control_response", _) => Self::Response(read(line)?),
            _ => Self::Other,
        })
    }
}

fn read<T: DeserializeOwned>(line: &[u8]) -> Option<T> {
    serde_json::from_slice(line).ok()
}

/// The blocks of a message that are known.
pub(super) fn blocks(content: Vec<Value>) -> impl Iterator<Item = Block> {
    let block = |block| serde_json::from_value(block).ok();
    content.into_iter().filter_map(block)
}

/// A text, or the texts in blocks.
pub(super) fn text(content: Value) -> String {
    match content {
        Value::String(text) => text,
        Value::Array(blocks) => {
            let texts = blocks.into_iter().map(|block| match block {
                Value::String(text) => text,
                block => match (block["text"].as_str(), block["type"].as_str()) {
                    (Some(text), _) => text.to_owned(),
                    (None, kind) => format!("[{}]", kind.unwrap_or("unknown")),
                },
            });
            Vec::from_iter(texts).join("\n")
        }
        Value::Null => String::new(),
        other => other.to_string(),
    }
}
