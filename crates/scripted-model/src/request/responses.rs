//! Requests of the Responses protocol.

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
    instructions: Option<String>,
    input: Option<Value>,
    #[serde(borrow)]
    tools: Option<&'a RawValue>,
    stream: Option<bool>,
    include: Option<Vec<String>>,
    previous_response_id: Option<String>,
}

pub(super) fn read(body: &str) -> Result<RequestParts<'_>, Failure> {
    let parsed: Body<'_> = parse(body)?;
    if let Some(id) = parsed.previous_response_id {
        return Err(Failure {
            code: Some("previous_response_not_found".to_owned()),
            ..Failure::invalid(format!("Previous response with id '{id}' not found."))
        });
    }
    let include = parsed.include.unwrap_or_default();
    let mut parts = RequestParts {
        model: parsed.model.ok_or_else(|| Failure::missing("model"))?,
        wants: Wants {
            stream: parsed.stream.unwrap_or(false),
            encrypted_reasoning: include
                .iter()
                .any(|what| what == "reasoning.encrypted_content"),
            ..Wants::default()
        },
        tools: parsed.tools.map_or("", RawValue::get),
        system: parsed.instructions.into_iter().collect(),
        messages: Vec::new(),
    };
    match parsed.input.ok_or_else(|| Failure::missing("input"))? {
        Value::Array(items) => {
            let mut in_turn = false;
            for item in items {
                parts.add(item, &mut in_turn)?;
            }
        }
        input => parts.messages.push(Message {
            by: Speaker::User,
            text: text_of(input),
        }),
    }
    Ok(parts)
}

impl RequestParts<'_> {
    /// Reasoning, text and calls of one turn are items of their own here; together they count
    /// as one assistant message.
    fn add(&mut self, mut item: Value, in_turn: &mut bool) -> Result<(), Failure> {
        let assistant = if *in_turn {
            Speaker::AssistantToo
        } else {
            Speaker::Assistant
        };
        let kind = take_text(&mut item, "type");
        let (by, text) = match kind.as_str() {
            "function_call" => {
                let arguments = take_text(&mut item, "arguments");
                let name = match take_text(&mut item, "namespace").as_str() {
                    "" => take_text(&mut item, "name"),
                    namespace => format!("{namespace}/{}", take_text(&mut item, "name")),
                };
                (assistant, call_text(&name, &arguments))
            }
            "custom_tool_call" => {
                let input = take_text(&mut item, "input");
                (assistant, call_text(&take_text(&mut item, "name"), &input))
            }
            "function_call_output" | "custom_tool_call_output" => {
                (Speaker::Tool, text_of(take(&mut item, "output")))
            }
            "" | "message" => {
                let text = text_of(take(&mut item, "content"));
                match take_text(&mut item, "role").as_str() {
                    // What comes after an answer is new to the model.
                    "system" | "developer" if !self.has_answers() => {
                        self.system.push(text);
                        return Ok(());
                    }
                    "assistant" => (assistant, text),
                    _ => (Speaker::User, text),
                }
            }
            "item_reference" => {
                let id = take_text(&mut item, "id");
                return Err(Failure {
                    status: 404,
                    ..Failure::invalid(format!("Item with id '{id}' not found."))
                });
            }
            _ => return Ok(()),
        };
        *in_turn = matches!(by, Speaker::Assistant | Speaker::AssistantToo);
        self.messages.push(Message { by, text });
        Ok(())
    }
}
