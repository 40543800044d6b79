//! Requests of the Messages protocol.

use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use super::{
    Message, RequestParts, Speaker, Wants,
    content::{take, take_text, text_of},
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
    parsed.max_tokens.ok_or_else(|| required("max_tokens"))?;
    parts(parsed, body)
}

/// A request whose tokens are to be counted: nothing will be said.
pub(super) fn read_to_count(body: &str) -> Result<RequestParts<'_>, Failure> {
    parts(parse(body)?, body)
}

fn parts<'a>(parsed: Body<'a>, body: &str) -> Result<RequestParts<'a>, Failure> {
    let messages = parsed.messages.ok_or_else(|| required("messages"))?;
    if messages.is_empty() {
        return Err(Failure::invalid(
            "messages: at least one message is required",
        ));
    }
    let mut parts = RequestParts {
        model: parsed.model.ok_or_else(|| required("model"))?,
        wants: Wants {
            stream: parsed.stream.unwrap_or(false),
            // Quotes inside a JSON string are escaped, so this is a key.
            cache: body.contains("\"cache_control\""),
            ..Wants::default()
        },
        tools: parsed.tools.map_or("", RawValue::get),
        system: parsed.system.map(text_of).into_iter().collect(),
        messages: Vec::new(),
    };
    for mut message in messages {
        let role = take_text(&mut message, "role");
        let text = text_of(take(&mut message, "content"));
        let by = match role.as_str() {
            // Claude Code also instructs the model inside a conversation. What comes after an answer is
            // new to it.
            "system" if !parts.has_answers() => {
                parts.system.push(text);
                continue;
            }
            "assistant" => Speaker::Assistant,
            _ => Speaker::User,
        };
        parts.messages.push(Message { by, text });
    }
    Ok(parts)
}

fn required(field: &str) -> Failure {
    Failure::invalid(format!("{field}: Field required"))
}
