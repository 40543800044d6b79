//! Requests of Gemini's protocol. Which model is asked, and whether for a stream, is in their address.

use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use super::{
    Message, RequestParts, Speaker,
    content::{call_text, take, take_text},
};
use crate::failure::{Failure, parse};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    contents: Option<Vec<Value>>,
    system_instruction: Option<Value>,
    #[serde(borrow)]
    tools: Option<&'a RawValue>,
}

pub(super) fn read(body: &str) -> Result<RequestParts<'_>, Failure> {
    parts(parse(body)?)
}

/// A request whose tokens are to be counted may be in another one.
pub(super) fn read_to_count(body: &str) -> Result<RequestParts<'_>, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Count<'a> {
        #[serde(borrow)]
        generate_content_request: Option<Body<'a>>,
    }
    let count: Count<'_> = parse(body)?;
    match count.generate_content_request {
        Some(request) => parts(request),
        None => read(body),
    }
}

fn parts(parsed: Body<'_>) -> Result<RequestParts<'_>, Failure> {
    let contents = parsed.contents.unwrap_or_default();
    if contents.is_empty() {
        return Err(Failure::invalid(
            "* GenerateContentRequest.contents: contents is not specified",
        ));
    }
    let system = parsed.system_instruction.map(|mut instruction| {
        let texts = texts_of(take(&mut instruction, "parts"));
        texts.into_iter().map(|(_, text)| text).collect()
    });
    let mut parts = RequestParts {
        tools: parsed.tools.map_or("", RawValue::get),
        system: system.unwrap_or_default(),
        ..RequestParts::default()
    };
    let mut in_turn = false;
    for mut content in contents {
        let is_model = take_text(&mut content, "role") == "model";
        let texts = texts_of(take(&mut content, "parts"));
        let by = match (is_model, in_turn) {
            (true, true) => Speaker::AssistantToo,
            (true, false) => Speaker::Assistant,
            (false, _) if texts.iter().any(|(is_result, _)| *is_result) => Speaker::Tool,
            (false, _) => Speaker::User,
        };
        in_turn = is_model;
        let texts: Vec<String> = texts.into_iter().map(|(_, text)| text).collect();
        parts.messages.push(Message {
            by,
            text: texts.join("\n"),
        });
    }
    Ok(parts)
}

/// The text of each part, and whether it is what came of a call. Pictures, files and reasoning have
/// none.
fn texts_of(parts: Value) -> Vec<(bool, String)> {
    let Value::Array(parts) = parts else {
        return Vec::new();
    };
    parts.into_iter().filter_map(text_of_part).collect()
}

fn text_of_part(mut part: Value) -> Option<(bool, String)> {
    if part.get("thought") == Some(&Value::Bool(true)) {
        return None;
    }
    if part.get("text").is_some() {
        return Some((false, take_text(&mut part, "text")));
    }
    let mut call = take(&mut part, "functionCall");
    if call.is_object() {
        let arguments = take(&mut call, "args").to_string();
        return Some((false, call_text(&take_text(&mut call, "name"), &arguments)));
    }
    let mut result = take(&mut part, "functionResponse");
    result.is_object().then(|| {
        let mut response = take(&mut result, "response");
        // The protocol has no form for it; these are the words that its documents use.
        let text = ["output", "error"].map(|name| take_text(&mut response, name));
        let text = text.into_iter().find(|text| !text.is_empty());
        (true, text.unwrap_or_else(|| response.to_string()))
    })
}
