//! Requests of the Messages protocol.

use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use super::{
    Message, RequestParts, Speaker, Wants,
    content::{take, text_of},
};
use crate::failure::{Failure, parse};

#[derive(Deserialize)]
struct Body<'a> {
    model: Option<String>,
    max_tokens: Option<u64>,
    messages: Option<Vec<Value>>,
    system: Option<Value>,
    #[serde(borrow)]
    tools: Option<&'a RawValue>,
    stream: Option<bool>,
}

pub(super) fn read(body: &str) -> Result<RequestParts<'_>, Failure> {
    let parsed: Body<'_> = parse(body)?;
    let required = |field: &str| Failure::invalid(format!("{field}: Field required"));
    parsed.max_tokens.ok_or_else(|| required("max_tokens"))?;
    let messages = parsed.messages.ok_or_else(|| required("messages"))?;
    if messages.is_empty() {
        return Err(Failure::invalid(
            "messages: at least one message is required",
        ));
    }
    Ok(RequestParts {
        model: parsed.model.ok_or_else(|| required("model"))?,
        wants: Wants {
            stream: parsed.stream.unwrap_or(false),
            // Quotes inside a JSON string are escaped, so this is a key.
            cache: body.contains("\"cache_control\""),
            ..Wants::default()
        },
        tools: parsed.tools.map_or("", RawValue::get),
        system: parsed.system.map(text_of).into_iter().collect(),
        messages: messages.into_iter().map(read_message).collect(),
    })
}

fn read_message(mut message: Value) -> Message {
    let by = match message.get("role").and_then(Value::as_str) {
        Some("assistant") => Speaker::Assistant,
        _ => Speaker::User,
    };
    let text = text_of(take(&mut message, "content"));
    Message { by, text }
}
