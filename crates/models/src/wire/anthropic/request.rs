//! Writes requests.

use std::borrow::Cow;

use asyncagents_core::agent::{Block, Effort};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::wire::{
    CacheControl, Parameters, Question, Schema, Side, plain, schema, sides, verbatim,
};

/// The request. What never changes comes first and what grows comes last, so that each
/// request repeats the bytes of the one before it. A marker at the end of the conversation would
/// have to move; the one at the top lets the API move it.
#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    max_tokens: u64,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Thinking>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Part<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
    messages: Vec<Message<'a>>,
    // Only now and then: everything before it stays as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<ToolChoice>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ToolChoice {
    None,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Thinking {
    Adaptive,
    Enabled { budget_tokens: u64 },
}

#[derive(Serialize)]
struct OutputConfig {
    effort: &'static str,
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: Schema<'a>,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: Vec<Part<'a>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    Text {
        text: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: Cow<'a, str>,
        input: Parameters<'a>,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        #[serde(skip_serializing_if = "str::is_empty")]
        content: &'a str,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
    #[serde(untagged)]
    Verbatim(&'a RawValue),
}

pub(crate) fn body(question: &Question<'_>) -> Result<String, serde_json::Error> {
    let request = question.request;
    let max_tokens = question.at_most(question.figures.max_output());
    let (thinking, output_config) = thinking(question, max_tokens);
    let tools = request.tools.iter().map(|tool| Tool {
        name: &tool.name,
        description: &tool.description,
        input_schema: schema(&tool.schema),
    });
    // A breakpoint of its own: a child with the same system prompt and tools starts warm.
    let system = question.system().map(|text| Part::Text {
        text,
        cache_control: Some(CacheControl::Ephemeral),
    });
    serde_json::to_string(&Body {
        model: question.model,
        max_tokens,
        stream: true,
        thinking,
        output_config,
        tools: tools.collect(),
        system: system.into_iter().collect(),
        cache_control: (!question.unwanted.cache_control).then_some(CacheControl::Ephemeral),
        messages: sides(request, question.origin)
            .into_iter()
            .map(message)
            .collect(),
        tool_choice: question.forbids_tools().then_some(ToolChoice::None),
    })
}

/// Newer models choose how long they think, within an effort; older ones get a number.
fn thinking(question: &Question<'_>, most: u64) -> (Option<Thinking>, Option<OutputConfig>) {
    let Some(effort) = question.request.effort else {
        return (None, None);
    };
    if question.figures.is_adaptive() {
        let effort = effort.word();
        return (Some(Thinking::Adaptive), Some(OutputConfig { effort }));
    }
    let wanted = match effort {
        Effort::Low => 4_000,
        Effort::Medium => 10_000,
        Effort::High => 24_000,
    };
    // Something must be left for the answer, and the API takes no less than 1,024.
    let budget_tokens = wanted.min(most.saturating_sub(most / 4));
    let thinking = (budget_tokens >= 1_024).then_some(Thinking::Enabled { budget_tokens });
    (thinking, None)
}

fn message(side: Side<'_>) -> Message<'_> {
    match side {
        Side::User {
            results,
            texts,
            inherited,
            ..
        } => {
            let results = results.into_iter().map(|(call, outcome)| Part::ToolResult {
                tool_use_id: plain(&call.id),
                content: outcome.text(),
                is_error: outcome.is_error(),
            });
            // Where children of one fork part, so that the first writes what the others find. It
            // stays where it is.
            let texts = (1..).zip(texts).map(|(number, text)| Part::Text {
                text,
                cache_control: (inherited == Some(number)).then_some(CacheControl::Ephemeral),
            });
            Message {
                role: "user",
                content: results.chain(texts).collect(),
            }
        }
        Side::Model { blocks, .. } => Message {
            role: "assistant",
            content: blocks.into_iter().filter_map(part).collect(),
        },
    }
}

fn part(block: &Block) -> Option<Part<'_>> {
    match block {
        Block::Text(block) => Some(text(block)),
        Block::Reasoning { raw, .. } => raw.as_ref().and_then(verbatim).map(Part::Verbatim),
        Block::Other(raw) => verbatim(raw).map(Part::Verbatim),
        Block::Call(call) => Some(Part::ToolUse {
            id: plain(&call.id),
            name: plain(&call.name),
            input: Parameters::of(call),
        }),
    }
}

fn text(text: &str) -> Part<'_> {
    Part::Text {
        text,
        cache_control: None,
    }
}
