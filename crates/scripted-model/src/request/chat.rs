//! Requests of the Chat Completions protocol.

use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use super::{
    Message, RequestParts, Speaker, Wants,
    content::{call_text, take, take_text, text_of},
};
use crate::failure::{Failure, parse};

#[derive(Deserialize)]
struct Body<'a> {
    model: Option<String>,
    messages: Option<Vec<Value>>,
    #[serde(borrow)]
    tools: Option<&'a RawValue>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
}

#[derive(Deserialize)]
struct StreamOptions {
    include_usage: Option<bool>,
}

pub(super) fn read(body: &str) -> Result<RequestParts<'_>, Failure> {
    let parsed: Body<'_> = parse(body)?;
    let usage_chunk = parsed
        .stream_options
        .and_then(|options| options.include_usage);
    let mut parts = RequestParts {
        model: parsed.model.ok_or_else(|| Failure::missing("model"))?,
        wants: Wants {
            stream: parsed.stream.unwrap_or(false),
            usage_chunk: usage_chunk.unwrap_or(false),
            ..Wants::default()
        },
        tools: parsed.tools.map_or("", RawValue::get),
        ..RequestParts::default()
    };
    for mut message in parsed
        .messages
        .ok_or_else(|| Failure::missing("messages"))?
    {
        let role = take_text(&mut message, "role");
        let text = text_of(take(&mut message, "content"));
        let by = match role.as_str() {
            "system" | "developer" => {
                parts.system.push(text);
                continue;
            }
            "assistant" => Speaker::Assistant,
            "tool" | "function" => Speaker::Tool,
            _ => Speaker::User,
        };
        let text = with_calls(text, take(&mut message, "tool_calls"));
        parts.messages.push(Message { by, text });
    }
    Ok(parts)
}

fn with_calls(text: String, calls: Value) -> String {
    let Value::Array(calls) = calls else {
        return text;
    };
    let mut lines = if text.is_empty() { vec![] } else { vec![text] };
    for mut call in calls {
        let mut function = take(&mut call, "function");
        let arguments = take_text(&mut function, "arguments");
        lines.push(call_text(&take_text(&mut function, "name"), &arguments));
    }
    lines.join("\n")
}
