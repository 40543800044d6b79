//! The protocols: one answer becomes events or one JSON document in each of them.

mod anthropic;
mod chat;
mod gemini;
mod responses;

use serde_json::{Value, json};

use crate::{answer::Answer, failure::Failure, protocol::Wire};

/// One server-sent event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) name: Option<&'static str>,
    pub(crate) data: String,
}

impl Wire {
    /// The answer as a stream.
    pub(crate) fn events(self, answer: &Answer) -> Vec<Event> {
        match self {
            Self::Anthropic => anthropic::events(answer),
            Self::Responses => responses::events(answer),
            Self::Chat => chat::events(answer),
            Self::Gemini => gemini::events(answer),
        }
    }

    /// The beginning of a stream, and the protocol's error in it.
    pub(crate) fn failing_events(self, answer: &Answer, message: &str) -> Vec<Event> {
        match self {
            Self::Anthropic => anthropic::failing_events(answer, message),
            Self::Responses => responses::failing_events(answer, message),
            Self::Chat => chat::failing_events(answer, message),
            Self::Gemini => gemini::failing_events(answer, message),
        }
    }

    /// The answer as one document.
    pub(crate) fn whole(self, answer: &Answer) -> Value {
        match self {
            Self::Anthropic => anthropic::whole(answer),
            Self::Responses => responses::whole(answer),
            Self::Chat => chat::whole(answer),
            Self::Gemini => gemini::whole(answer),
        }
    }

    /// The body of an HTTP error.
    pub(crate) fn failure(self, failure: &Failure, request_id: &str) -> Value {
        match self {
            Self::Anthropic => anthropic::failure(failure, request_id),
            Self::Responses | Self::Chat => openai_failure(failure),
            Self::Gemini => gemini::failure(failure),
        }
    }
}

impl Event {
    /// An event called like the `type` in its data.
    fn named(name: &'static str, mut data: Value) -> Self {
        data["type"] = name.into();
        Self {
            name: Some(name),
            data: data.to_string(),
        }
    }

    /// An event without a name.
    fn plain(data: impl ToString) -> Self {
        Self {
            name: None,
            data: data.to_string(),
        }
    }
}

fn openai_failure(failure: &Failure) -> Value {
    let (kind, code) = match failure.status {
        401 => ("invalid_request_error", Some("invalid_api_key")),
        403 => ("permission_error", None),
        404 => ("invalid_request_error", None),
        429 => ("rate_limit_error", Some("rate_limit_exceeded")),
        500.. => ("server_error", None),
        _ => ("invalid_request_error", None),
    };
    let code = failure.code.as_deref().or(code);
    json!({"error": {"message": failure.message, "type": kind, "param": null, "code": code}})
}
