//! The text in a message's content.

use serde_json::Value;

/// Takes the text out of content: a string, or a list of parts, calls and results among them.
/// Pictures, files and reasoning have none.
pub(super) fn text_of(content: Value) -> String {
    match content {
        Value::String(text) => text,
        Value::Array(parts) => {
            let texts: Vec<String> = parts.into_iter().filter_map(text_of_part).collect();
            texts.join("\n")
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

/// Takes a string out of an object; empty when there is none.
pub(super) fn take_text(object: &mut Value, key: &str) -> String {
    match object.get_mut(key).map(Value::take) {
        Some(Value::String(text)) => text,
        _ => String::new(),
    }
}

/// Takes anything out of an object; null when there is nothing.
pub(super) fn take(object: &mut Value, key: &str) -> Value {
    object.get_mut(key).map(Value::take).unwrap_or_default()
}

/// A tool call as text.
pub(super) fn call_text(name: &str, arguments: &str) -> String {
    format!("{name} {arguments}")
}

fn text_of_part(mut part: Value) -> Option<String> {
    Some(match part.get("type").and_then(Value::as_str)? {
        "text" | "input_text" | "output_text" => take_text(&mut part, "text"),
        "refusal" => take_text(&mut part, "refusal"),
        "tool_use" => {
            let input = take(&mut part, "input").to_string();
            call_text(&take_text(&mut part, "name"), &input)
        }
        "tool_result" => text_of(take(&mut part, "content")),
        _ => return None,
    })
}
