//! Writes requests.

use std::borrow::Cow;

use asyncagents_core::agent::{Block, Call, ToolSpec};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, value::RawValue};

use crate::wire::{
    CacheControl, Parameters, Question, Schema, Side, Spelling, cache_key, plain, schema, sides,
    verbatim,
};

/// The request: what never changes first, what grows last.
#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_cache_key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    messages: Vec<Message<'a>>,
    // Only now and then: everything before it stays as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
#[serde(tag = "type", content = "function", rename_all = "snake_case")]
enum Tool<'a> {
    Function {
        name: &'a str,
        description: &'a str,
        parameters: Schema<'a>,
    },
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
enum Message<'a> {
    System {
        content: Content<'a>,
    },
    User {
        content: Content<'a>,
    },
    Assistant {
        content: Option<String>,
        #[serde(flatten)]
        thoughts: Thoughts<'a>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<ToolCall<'a>>,
    },
    Tool {
        tool_call_id: Cow<'a, str>,
        content: &'a str,
    },
}

/// What a message says: many servers take a text only.
#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(Cow<'a, str>),
    /// Texts with a marker where a provider's cache may end.
    Parts(Vec<Part<'a>>),
}

#[derive(Serialize)]
struct Part<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    text: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

/// The fields of a message that carry thoughts, each under the name its provider gave it.
#[derive(Serialize, Deserialize, Default)]
struct Thoughts<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<&'a RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    reasoning: Option<&'a RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    reasoning_details: Option<&'a RawValue>,
}

#[derive(Serialize)]
struct ToolCall<'a> {
    id: Cow<'a, str>,
    #[serde(rename = "type")]
    kind: &'static str,
    function: Function<'a>,
    #[serde(flatten)]
    more: Map<String, Value>,
}

/// The fields of a call that are not known here, such as the signature of a thought. They are
/// kept as a block of its own before the call, which cannot carry them, and go back in it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Mark {
    pub(super) tool_call: Map<String, Value>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: Cow<'a, str>,
    arguments: Cow<'a, str>,
}

pub(crate) fn body(question: &Question<'_>) -> Result<String, serde_json::Error> {
    let request = question.request;
    // Other servers refuse fields they do not know.
    let is_openai = question.provider == "openai";
    let unwanted = question.unwanted;
    // The router hands it on to the only maker whose cache must be asked for.
    let asks_for_cache = question.provider == "openrouter"
        && question.model.contains("claude")
        && !unwanted.cache_control;
    let most = question.max_output();
    let tools = request.tools.iter().map(|tool| Tool::Function {
        name: &tool.name,
        description: &tool.description,
        parameters: schema(&tool.schema),
    });
    let system = question.system();
    let system = system.map(|text| Message::System {
        content: said(&[text], Some(1).filter(|_| asks_for_cache)),
    });
    let conversation = sides(request, question.origin);
    let style = Style {
        in_turn: takes_turns(question.model),
        asks_for_cache,
    };
    let conversation = conversation
        .into_iter()
        .flat_map(|side| messages(side, request.tools, style));
    serde_json::to_string(&Body {
        model: question.model,
        stream: true,
        stream_options: (!unwanted.stream_options).then_some(StreamOptions {
            include_usage: true,
        }),
        prompt_cache_key: cache_key(request.cache_key).filter(|_| is_openai),
        cache_control: asks_for_cache.then_some(CacheControl::Ephemeral),
        max_tokens: most.filter(|_| !is_openai),
        max_completion_tokens: most.filter(|_| is_openai),
        reasoning_effort: request
            .effort
            .filter(|_| !unwanted.reasoning_effort)
            .map(|effort| effort.word()),
        tools: tools.collect(),
        messages: system.into_iter().chain(conversation).collect(),
        tool_choice: question.forbids_tools().then_some("none"),
    })
}

/// Mistral's models refuse a user message right after a tool's: an assistant's must be between.
fn takes_turns(model: &str) -> bool {
    const MISTRAL: [&str; 5] = ["mistral", "devstral", "magistral", "codestral", "ministral"];
    let model = model.to_lowercase();
    MISTRAL.iter().any(|name| model.contains(name))
}

/// What a model, or who hands requests on to it, wants beyond the protocol.
#[derive(Clone, Copy)]
struct Style {
    in_turn: bool,
    asks_for_cache: bool,
}

/// Texts as one message: many templates insist that the sides take turns. After `cached` of them a
/// provider's cache may end.
fn said<'a>(texts: &[&'a str], cached: Option<usize>) -> Content<'a> {
    let joined = |texts: &[&'a str]| match texts {
        [one] => Cow::Borrowed(*one),
        several => Cow::Owned(several.join("\n\n")),
    };
    let Some((before, after)) = cached.and_then(|cached| texts.split_at_checked(cached)) else {
        return Content::Text(joined(texts));
    };
    let part = |texts, cache_control| Part {
        kind: "text",
        text: joined(texts),
        cache_control,
    };
    let rest = (!after.is_empty()).then(|| part(after, None));
    let cached = part(before, Some(CacheControl::Ephemeral));
    Content::Parts(std::iter::once(cached).chain(rest).collect())
}

fn messages<'a>(side: Side<'a>, tools: &[ToolSpec], style: Style) -> Vec<Message<'a>> {
    match side {
        Side::User {
            results,
            texts,
            inherited,
            spelling,
        } => {
            let interrupts = style.in_turn && !results.is_empty() && !texts.is_empty();
            let between = interrupts.then(|| Message::Assistant {
                content: Some("Understood.".to_owned()),
                thoughts: Thoughts::default(),
                tool_calls: Vec::new(),
            });
            let results = results.into_iter().map(|(call, outcome)| Message::Tool {
                tool_call_id: spelling.write(&call.id),
                content: outcome.text(),
            });
            let user = (!texts.is_empty()).then(|| Message::User {
                content: said(&texts, inherited.filter(|_| style.asks_for_cache)),
            });
            results.chain(between).chain(user).collect()
        }
        Side::Model { blocks, spelling } => vec![answered(&blocks, tools, spelling)],
    }
}

fn answered<'a>(blocks: &[&'a Block], tools: &[ToolSpec], spelling: Spelling) -> Message<'a> {
    let mut texts: Vec<&str> = Vec::new();
    let mut thoughts = Thoughts::default();
    let mut tool_calls = Vec::new();
    let mut more = Map::new();
    for block in blocks {
        match block {
            Block::Text(text) => texts.push(text),
            Block::Reasoning { raw, .. } => {
                let json = raw.as_ref().and_then(verbatim).map(RawValue::get);
                if let Some(raw) = json.and_then(|json| serde_json::from_str(json).ok()) {
                    thoughts = raw;
                }
            }
            Block::Call(call) => tool_calls.push(ToolCall {
                id: spelling.write(&call.id),
                kind: "function",
                function: Function {
                    name: name(call, tools),
                    arguments: arguments(call),
                },
                more: std::mem::take(&mut more),
            }),
            // This protocol has no blocks, so there are none that we do not know.
            Block::Other(raw) => {
                if let Ok(mark) = serde_json::from_str::<Mark>(&raw.json) {
                    more = mark.tool_call;
                }
            }
        }
    }
    Message::Assistant {
        content: (!texts.is_empty()).then(|| texts.join("\n\n")),
        thoughts,
        tool_calls,
    }
}

/// A name that was declared is good as it is. One that the model has invented might be refused.
pub(super) fn name<'a>(call: &'a Call, tools: &[ToolSpec]) -> Cow<'a, str> {
    if tools.iter().any(|tool| tool.name == call.name) {
        Cow::Borrowed(&call.name)
    } else {
        plain(&call.name)
    }
}

/// The model's own bytes, unless they are no JSON: some servers parse them and fail.
fn arguments(call: &Call) -> Cow<'_, str> {
    match Parameters::of(call) {
        Parameters::Verbatim(_) => Cow::Borrowed(&call.input),
        mistaken => serde_json::to_string(&mistaken).map_or(Cow::Borrowed("{}"), Cow::Owned),
    }
}
