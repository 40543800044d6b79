//! Writes requests.

use std::borrow::Cow;

use asyncagents_core::agent::Block;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::wire::{Question, Schema, Side, cache_key, plain, schema, sides, verbatim};

/// The request: what never changes first, what grows last.
#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    stream: bool,
    // The conversation is kept here, so thoughts must come along, encrypted.
    store: bool,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    include: &'static [&'static str],
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_cache_key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Reasoning>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "str::is_empty")]
    instructions: &'a str,
    input: Vec<Item<'a>>,
    // Only now and then: everything before it stays as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
}

#[derive(Serialize)]
struct Reasoning {
    effort: &'static str,
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "function")]
struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    parameters: Schema<'a>,
    strict: bool,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Item<'a> {
    Message {
        role: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        phase: Option<String>,
        content: [Text<'a>; 1],
    },
    FunctionCall {
        call_id: Cow<'a, str>,
        name: Cow<'a, str>,
        arguments: &'a str,
    },
    FunctionCallOutput {
        call_id: Cow<'a, str>,
        output: &'a str,
    },
    #[serde(untagged)]
    Verbatim(&'a RawValue),
}

#[derive(Serialize)]
struct Text<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    text: &'a str,
}

pub(crate) fn body(question: &Question<'_>) -> Result<String, serde_json::Error> {
    let request = question.request;
    let tools = request.tools.iter().map(|tool| Tool {
        name: &tool.name,
        description: &tool.description,
        parameters: schema(&tool.schema),
        strict: false,
    });
    // A model that does not think is refused when it is asked for its thoughts.
    let include: &[&str] = if question.figures.thinks() {
        &["reasoning.encrypted_content"]
    } else {
        &[]
    };
    serde_json::to_string(&Body {
        model: question.model,
        stream: true,
        store: false,
        include,
        prompt_cache_key: cache_key(request.cache_key),
        max_output_tokens: question.max_output(),
        reasoning: request.effort.map(|effort| Reasoning {
            effort: effort.word(),
        }),
        tools: tools.collect(),
        instructions: request.system,
        input: sides(request, question.origin)
            .into_iter()
            .flat_map(items)
            .collect(),
        tool_choice: question.forbids_tools().then_some("none"),
    })
}

fn items(side: Side<'_>) -> Vec<Item<'_>> {
    match side {
        Side::User { results, texts, .. } => {
            let results = results.into_iter();
            let results = results.map(|(call, outcome)| Item::FunctionCallOutput {
                call_id: plain(&call.id),
                output: outcome.text(),
            });
            let texts = texts.into_iter();
            let texts = texts.map(|text| message("user", "input_text", text));
            results.chain(texts).collect()
        }
        Side::Model { blocks, .. } => {
            let mut phase = None;
            let mut items = Vec::new();
            for block in blocks {
                match phase_of(block) {
                    Some(mark) => phase = Some(mark),
                    None => items.extend(item(block, &mut phase)),
                }
            }
            items
        }
    }
}

fn item<'a>(block: &'a Block, phase: &mut Option<String>) -> Option<Item<'a>> {
    match block {
        Block::Text(text) => {
            let mut item = message("assistant", "output_text", text);
            if let Item::Message { phase: its, .. } = &mut item {
                *its = phase.take();
            }
            Some(item)
        }
        Block::Reasoning { raw, .. } => raw.as_ref().and_then(verbatim).map(Item::Verbatim),
        Block::Other(raw) => verbatim(raw).map(Item::Verbatim),
        Block::Call(call) => Some(Item::FunctionCall {
            call_id: plain(&call.id),
            name: plain(&call.name),
            arguments: match call.input.as_str() {
                "" => "{}",
                arguments => arguments,
            },
        }),
    }
}

fn message<'a>(role: &'static str, kind: &'static str, text: &'a str) -> Item<'a> {
    Item::Message {
        role,
        phase: None,
        content: [Text { kind, text }],
    }
}

/// Models tell remarks on the way from the last word, and want to be reminded which was which.
/// The phase is kept as a block of its own before the text, which cannot carry it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Mark {
    pub(super) phase: String,
}

fn phase_of(block: &Block) -> Option<String> {
    let Block::Other(raw) = block else {
        return None;
    };
    let mark: Mark = serde_json::from_str(&raw.json).ok()?;
    Some(mark.phase)
}
