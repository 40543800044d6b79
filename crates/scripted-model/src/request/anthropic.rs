//! Requests of the Messages protocol.

use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use super::{
    Complaint, Outline, Said, Speaker, Wants,
    content::{call_text, take, take_text, text_of},
};

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

pub(super) fn read(body: &str) -> Result<Outline<'_>, Complaint> {
    let parsed: Body<'_> =
        serde_json::from_str(body).map_err(|error| Complaint::not_json(&error))?;
    let required = |field: &str| Complaint::invalid(format!("{field}: Field required"));
    parsed.max_tokens.ok_or_else(|| required("max_tokens"))?;
    let messages = parsed.messages.ok_or_else(|| required("messages"))?;
    if messages.is_empty() {
        return Err(Complaint::invalid(
            "messages: at least one message is required",
        ));
    }
    Ok(Outline {
        model: parsed.model.ok_or_else(|| required("model"))?,
        wants: Wants {
            stream: parsed.stream.unwrap_or(false),
            // Quotes inside a JSON string are escaped, so this is a key.
            cache: body.contains("\"cache_control\""),
            ..Wants::default()
        },
        tools: parsed.tools.map_or("", RawValue::get),
        system: parsed.system.map(text_of).into_iter().collect(),
        said: messages.into_iter().map(said).collect(),
    })
}

fn said(mut message: Value) -> Said {
    let by = match message.get("role").and_then(Value::as_str) {
        Some("assistant") => Speaker::Assistant,
        _ => Speaker::User,
    };
    let text = match take(&mut message, "content") {
        Value::Array(blocks) => {
            let texts: Vec<String> = blocks.into_iter().filter_map(block_text).collect();
            texts.join("\n")
        }
        content => text_of(content),
    };
    Said { by, text }
}

fn block_text(mut block: Value) -> Option<String> {
    match block.get("type").and_then(Value::as_str)? {
        "text" => Some(take_text(&mut block, "text")),
        "tool_use" => {
            let input = take(&mut block, "input").to_string();
            Some(call_text(&take_text(&mut block, "name"), &input))
        }
        "tool_result" => Some(text_of(take(&mut block, "content"))),
        _ => None,
    }
}
