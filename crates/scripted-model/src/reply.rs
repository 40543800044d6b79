//! What a rule answers.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use crate::gate::Gate;

const USUAL_CHUNK: usize = 24;

/// What a rule answers: a message, an error, or something that goes wrong on the way.
#[derive(Debug, Clone)]
pub struct Reply {
    pub(crate) outcome: Outcome,
    pub(crate) content: Content,
    pub(crate) message: Option<String>,
    pub(crate) delay: Duration,
    pub(crate) pace: Duration,
    pub(crate) gate: Option<Gate>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    Answer,
    Status(HttpError),
    Fault(Fault),
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct HttpError {
    pub(crate) status: u16,
    pub(crate) retry_after: Option<String>,
    pub(crate) code: Option<String>,
}

/// What the model says.
#[derive(Debug, Clone, Default)]
pub(crate) struct Content {
    pub(crate) reasoning: Option<String>,
    pub(crate) text: Option<String>,
    pub(crate) calls: Vec<Call>,
    pub(crate) stop: Option<String>,
    pub(crate) usage: Option<SetUsage>,
    pub(crate) chunk: Option<usize>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    pub(crate) name: String,
    pub(crate) arguments: Arguments,
    pub(crate) id: Option<String>,
}

/// The arguments of a tool call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Arguments {
    Json(Value),
    /// Sent as it is; it may be broken.
    Raw(String),
}

/// Token counts that replace those worked out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SetUsage {
    pub(crate) input: u64,
    #[serde(default)]
    pub(crate) cached: u64,
    pub(crate) output: u64,
}

/// What may go wrong with an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// The connection breaks after about half of the events, without a proper end.
    Cut,
    /// An event in the middle is broken JSON.
    Malformed,
    /// Headers and a first event, then nothing until the client goes.
    Hang,
    /// A proper answer without any content.
    Empty,
    /// The protocol's own error event inside a stream that began well. Without streaming, an
    /// HTTP error that says the same.
    ErrorEvent,
    /// The connection is closed without any response.
    Drop,
}

impl Reply {
    /// An answer in words.
    pub fn text(text: impl Into<String>) -> Self {
        Self::with(Outcome::Answer).and_text(text)
    }

    /// An answer that calls a tool. In the Responses protocol a tool may be in a namespace:
    /// `mcp__files/read`.
    pub fn call(name: impl Into<String>, arguments: Value) -> Self {
        Self::with(Outcome::Answer).and_call(name, arguments)
    }

    /// An HTTP error.
    pub fn status(status: u16) -> Self {
        Self::with(Outcome::Status(HttpError {
            status,
            ..HttpError::default()
        }))
    }

    /// An answer that goes wrong. What it says can be added; without, it says something.
    pub fn fault(fault: Fault) -> Self {
        Self::with(Outcome::Fault(fault))
    }

    /// The same with this text. Text comes after reasoning and before calls.
    #[must_use]
    pub fn and_text(mut self, text: impl Into<String>) -> Self {
        self.content.text = Some(text.into());
        self
    }

    /// The same with one more tool call.
    #[must_use]
    pub fn and_call(self, name: impl Into<String>, arguments: Value) -> Self {
        self.push_call(name.into(), Arguments::Json(arguments))
    }

    /// The same with one more tool call, whose arguments are sent as they are, broken or not.
    #[must_use]
    pub fn raw_call(self, name: impl Into<String>, arguments: impl Into<String>) -> Self {
        self.push_call(name.into(), Arguments::Raw(arguments.into()))
    }

    /// The same after some thinking.
    #[must_use]
    pub fn reasoning(mut self, reasoning: impl Into<String>) -> Self {
        self.content.reasoning = Some(reasoning.into());
        self
    }

    /// The same, after a pause before the first byte.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// The same, but not before the gate is opened.
    #[must_use]
    pub fn behind(mut self, gate: &Gate) -> Self {
        self.gate = Some(gate.clone());
        self
    }

    /// The same, with a pause between events.
    #[must_use]
    pub fn pace(mut self, pace: Duration) -> Self {
        self.pace = pace;
        self
    }

    /// The same, with so many characters in each piece of text; 24 unless said.
    #[must_use]
    pub fn chunk(mut self, characters: usize) -> Self {
        self.content.chunk = Some(characters.max(1));
        self
    }

    /// The same with these token counts; `cached` is a part of `input`.
    #[must_use]
    pub fn usage(mut self, input: u64, cached: u64, output: u64) -> Self {
        self.content.usage = Some(SetUsage {
            input,
            cached: cached.min(input),
            output,
        });
        self
    }

    /// The same, ended for another reason: `max_tokens` and `refusal` are said in each
    /// protocol's own way, anything else word for word.
    #[must_use]
    pub fn stop(mut self, reason: impl Into<String>) -> Self {
        self.content.stop = Some(reason.into());
        self
    }

    /// The same HTTP error with a `Retry-After` header. Means nothing for other replies.
    #[must_use]
    pub fn retry_after(mut self, value: impl Into<String>) -> Self {
        if let Outcome::Status(error) = &mut self.outcome {
            error.retry_after = Some(value.into());
        }
        self
    }

    /// The same HTTP error with this error code (`error.code` of OpenAI, `error.type` of
    /// Anthropic). Means nothing for other replies.
    #[must_use]
    pub fn code(mut self, code: impl Into<String>) -> Self {
        if let Outcome::Status(error) = &mut self.outcome {
            error.code = Some(code.into());
        }
        self
    }

    /// The same error in these words.
    #[must_use]
    pub fn message(mut self, message: impl Into<String>) -> Self {
        self.message = Some(message.into());
        self
    }

    pub(crate) fn with(outcome: Outcome) -> Self {
        Self {
            outcome,
            content: Content::default(),
            message: None,
            delay: Duration::ZERO,
            pace: Duration::ZERO,
            gate: None,
        }
    }

    pub(crate) fn message_or(&self, usual: &str) -> String {
        self.message.as_deref().unwrap_or(usual).to_owned()
    }

    fn push_call(mut self, name: String, arguments: Arguments) -> Self {
        self.content.calls.push(Call {
            name,
            arguments,
            id: None,
        });
        self
    }
}

impl Content {
    pub(crate) fn is_empty(&self) -> bool {
        self.reasoning.is_none() && self.text.is_none() && self.calls.is_empty()
    }

    pub(crate) fn chunk(&self) -> usize {
        self.chunk.unwrap_or(USUAL_CHUNK)
    }
}
