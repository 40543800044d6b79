//! Folds the events of a stream into an answer.

use asyncagents_core::{
    agent::{Block, Call, Stop, Usage},
    budget::Cost,
};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Map, Value, value::RawValue};

use crate::{
    answer_limits::{AnswerLimits, Exceeded, Size, field},
    provider_error::ProviderError,
    request::{AnswerEvent, OnEvent},
    wire::{CacheTokens, Fold, Folded, Lenient, Step, StreamError, arguments_in, raw},
};

use super::request::Mark;

/// An answer in the making.
pub(crate) struct Answering {
    origin: String,
    /// How long the request was, for servers that do not count tokens.
    asked: usize,
    text: String,
    reasoning: String,
    /// Under which name the provider sends it.
    reasoning_field: Option<&'static str>,
    details: Vec<Map<String, Value>>,
    calls: Vec<OpenCall>,
    size: Size,
    stop: Option<Stop>,
    usage: Option<Tokens>,
    ended: bool,
}

#[derive(Default)]
struct OpenCall {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    /// What is not known here.
    more: Map<String, Value>,
}

#[derive(Deserialize)]
struct Chunk {
    choices: Option<Vec<Choice>>,
    #[serde(default)]
    usage: Lenient<Tokens>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice {
    delta: Option<Delta>,
    // Some servers send a whole message in one chunk.
    message: Option<Delta>,
    #[serde(default)]
    finish_reason: Lenient<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Delta {
    content: Option<Value>,
    refusal: Lenient<String>,
    reasoning_content: Lenient<String>,
    reasoning: Lenient<String>,
    reasoning_details: Lenient<Vec<Value>>,
    tool_calls: Option<Vec<CallDelta>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct CallDelta {
    index: Lenient<u64>,
    id: Lenient<String>,
    #[serde(rename = "type")]
    _kind: IgnoredAny,
    function: Option<FunctionDelta>,
    #[serde(flatten)]
    more: Map<String, Value>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct FunctionDelta {
    name: Lenient<String>,
    arguments: Option<Box<RawValue>>,
}

#[derive(Deserialize, Default, Clone)]
#[serde(default)]
struct Tokens {
    prompt_tokens: Lenient<u64>,
    completion_tokens: Lenient<u64>,
    prompt_tokens_details: Lenient<CacheTokens>,
    prompt_cache_hit_tokens: Lenient<u64>,
    /// Dollars.
    cost: Lenient<f64>,
    is_byok: Lenient<bool>,
}

impl Answering {
    pub(crate) fn new(origin: String, asked: usize, limits: AnswerLimits) -> Self {
        Self {
            origin,
            asked,
            text: String::new(),
            reasoning: String::new(),
            reasoning_field: None,
            details: Vec::new(),
            calls: Vec::new(),
            size: Size::within(limits),
            stop: None,
            usage: None,
            ended: false,
        }
    }

    fn say(&mut self, text: &str, on_event: OnEvent<'_>) -> Result<(), Exceeded> {
        if !text.is_empty() {
            self.size.grow(text.len())?;
            on_event(AnswerEvent::Text(text));
            self.text.push_str(text);
        }
        Ok(())
    }

    fn think(
        &mut self,
        field: &'static str,
        text: &str,
        on_event: OnEvent<'_>,
    ) -> Result<(), Exceeded> {
        if !text.is_empty() {
            self.size.grow(text.len())?;
            on_event(AnswerEvent::Reasoning(text));
            self.reasoning.push_str(text);
            self.reasoning_field = Some(field);
        }
        Ok(())
    }

    fn grow(&mut self, delta: Delta, on_event: OnEvent<'_>) -> Result<(), Exceeded> {
        match (delta.reasoning_content.0, delta.reasoning.0) {
            (Some(text), _) => self.think("reasoning_content", &text, on_event)?,
            (None, Some(text)) => self.think("reasoning", &text, on_event)?,
            (None, None) => {}
        }
        for detail in delta.reasoning_details.0.unwrap_or_default() {
            if let Value::Object(detail) = detail {
                join_detail(&mut self.details, detail, &mut self.size)?;
            }
        }
        match delta.content {
            Some(Value::String(text)) => self.say(&text, on_event)?,
            // Some servers send parts.
            Some(Value::Array(parts)) => {
                for part in parts {
                    let text = part.get("text").and_then(Value::as_str);
                    self.say(text.unwrap_or_default(), on_event)?;
                }
            }
            _ => {}
        }
        if let Some(refusal) = delta.refusal.0.filter(|text| !text.is_empty()) {
            self.say(&refusal, on_event)?;
            self.stop = Some(Stop::Refused);
        }
        for call in delta.tool_calls.unwrap_or_default() {
            self.call(call, on_event)?;
        }
        Ok(())
    }

    fn call(&mut self, delta: CallDelta, on_event: OnEvent<'_>) -> Result<(), Exceeded> {
        let function = delta.function.unwrap_or_default();
        let name = function.name.0.unwrap_or_default();
        let id = delta.id.0.unwrap_or_default();
        let at = match self.place(delta.index.0, &id, &name) {
            Some(at) => at,
            None => {
                self.size.grow_block(0)?;
                self.calls.push(OpenCall {
                    index: delta.index.0,
                    ..OpenCall::default()
                });
                self.calls.len() - 1
            }
        };
        let Some(call) = self.calls.get_mut(at) else {
            return Ok(());
        };
        if call.name.is_empty() && !name.is_empty() {
            self.size.grow(name.len())?;
            on_event(AnswerEvent::Call(&name));
            call.name = name;
        } else {
            on_event(AnswerEvent::KeepAlive);
        }
        if call.id.is_empty() {
            self.size.grow(id.len())?;
            call.id = id;
        }
        if let Some(arguments) = function.arguments {
            let more = arguments_in(arguments.get());
            self.size.grow_arguments(call.arguments.len(), more.len())?;
            call.arguments.push_str(&more);
        }
        for (name, value) in delta.more {
            if !value.is_null() {
                put(&mut call.more, name, value, &mut self.size)?;
            }
        }
        Ok(())
    }

    /// Which call a piece belongs to; none means a new one. Servers differ: some give each
    /// call an index, some give all the same one, some give none.
    fn place(&self, index: Option<u64>, id: &str, name: &str) -> Option<usize> {
        let fits = |call: &OpenCall| id.is_empty() || call.id.is_empty() || call.id == id;
        let mut calls = self.calls.iter().enumerate().rev();
        match index {
            Some(_) => calls.find(|(_, call)| call.index == index && fits(call)),
            None if !id.is_empty() => calls.find(|(_, call)| call.id == id),
            None if !name.is_empty() => None,
            None => calls.next(),
        }
        .map(|(at, _)| at)
    }

    /// The fields that carry the thoughts, as the provider wants them back.
    fn thoughts(&self) -> Option<String> {
        let mut fields: Vec<(&str, String)> = Vec::new();
        if let Some(field) = self.reasoning_field {
            // With the details, the bare text would say the same twice.
            if field == "reasoning_content" || self.details.is_empty() {
                fields.push((field, serde_json::to_string(&self.reasoning).ok()?));
            }
        }
        if !self.details.is_empty() {
            fields.push((
                "reasoning_details",
                serde_json::to_string(&self.details).ok()?,
            ));
        }
        let fields = fields
            .iter()
            .map(|(name, json)| format!("\"{name}\":{json}"));
        let fields: Vec<String> = fields.collect();
        (!fields.is_empty()).then(|| format!("{{{}}}", fields.join(",")))
    }

    fn counted(&self) -> Usage {
        let tokens = self.usage.clone().unwrap_or_default();
        let mut cached = tokens.prompt_tokens_details.0.unwrap_or_default();
        cached.cached_tokens = cached.cached_tokens.or(tokens.prompt_cache_hit_tokens.0);
        let calls = self
            .calls
            .iter()
            .map(|call| call.name.len() + call.arguments.len());
        let written = self.text.len() + self.reasoning.len() + calls.sum::<usize>();
        let (read, wrote) = (tokens.prompt_tokens.0, tokens.completion_tokens.0);
        cached.usage(
            read.unwrap_or_else(|| guessed(self.asked)),
            wrote.unwrap_or_else(|| guessed(written)),
        )
    }

    /// The cost that a router reports, unless another provider sends the bill.
    fn billed(&self) -> Option<Cost> {
        let tokens = self.usage.as_ref()?;
        let dollars = tokens.cost.0;
        let dollars = dollars.filter(|cost| cost.is_finite() && *cost >= 0.0)?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a price that is not negative becomes the nearest whole number"
        )]
        let cost = Cost((dollars * 1_000_000.0).round() as u64);
        (tokens.is_byok.0 != Some(true)).then_some(cost)
    }
}

impl Fold for Answering {
    fn event(&mut self, data: &str, on_event: OnEvent<'_>) -> Result<Step, StreamError> {
        if data.trim() == "[DONE]" {
            self.ended = true;
            return Ok(Step::Done);
        }
        let chunk: Chunk = serde_json::from_str(data)?;
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            let json = serde_json::json!({ "error": error });
            return Err(StreamError::Provider(ProviderError::in_stream(&json)));
        }
        if let Some(usage) = chunk.usage.0 {
            self.usage = Some(usage);
        }
        let mut is_news = false;
        let mut noted = |what: AnswerEvent<'_>| {
            is_news = true;
            on_event(what);
        };
        if let Some(choice) = chunk.choices.unwrap_or_default().into_iter().next() {
            if let Some(delta) = choice.delta.or(choice.message) {
                self.grow(delta, &mut noted)?;
            }
            match choice.finish_reason.0.as_deref() {
                None | Some("") => {}
                Some("error") => {
                    return Err(StreamError::Malformed("it ends with an error".to_owned()));
                }
                Some(reason) => self.stop = self.stop.or(Some(stop(reason))),
            }
        }
        if !is_news {
            on_event(AnswerEvent::KeepAlive);
        }
        Ok(Step::More)
    }

    fn size(&self) -> usize {
        self.size.bytes()
    }

    fn is_whole(&self) -> bool {
        self.ended || self.stop.is_some()
    }

    fn folded(self: Box<Self>) -> Folded {
        let usage = self.counted();
        let cost = self.billed();
        let raw = self.thoughts().map(|json| raw(&self.origin, json));
        let mut blocks = Vec::new();
        if raw.is_some() || !self.reasoning.is_empty() {
            blocks.push(Block::Reasoning {
                text: self.reasoning,
                raw,
            });
        }
        if !self.text.is_empty() {
            blocks.push(Block::Text(self.text));
        }
        for call in self.calls {
            blocks.extend(mark(call.more, &self.origin));
            blocks.push(Block::Call(Call {
                id: call.id,
                name: call.name,
                input: call.arguments,
            }));
        }
        let folded = Folded::new(blocks, self.stop.unwrap_or(Stop::Finished), usage);
        Folded { cost, ..folded }
    }
}

fn stop(reason: &str) -> Stop {
    match reason {
        "tool_calls" | "function_call" => Stop::Tools,
        "length" => Stop::Length,
        "content_filter" => Stop::Refused,
        _ => Stop::Finished,
    }
}

/// Four characters are about one token.
fn guessed(characters: usize) -> u64 {
    u64::try_from(characters.div_ceil(4)).unwrap_or(u64::MAX)
}

/// What is not known of a call, as a block.
fn mark(tool_call: Map<String, Value>, origin: &str) -> Option<Block> {
    if tool_call.is_empty() {
        return None;
    }
    let json = serde_json::to_string(&Mark { tool_call }).ok()?;
    Some(Block::Other(raw(origin, json)))
}

/// Puts a piece of a thought to the piece before it, if they belong together.
fn join_detail(
    details: &mut Vec<Map<String, Value>>,
    piece: Map<String, Value>,
    size: &mut Size,
) -> Result<(), Exceeded> {
    let same = |detail: &Map<String, Value>| {
        let alike = ["type", "index"]
            .iter()
            .all(|name| detail.get(*name) == piece.get(*name));
        // What is encrypted comes whole.
        alike && !piece.contains_key("data")
    };
    match details.last_mut() {
        Some(last) if same(last) => {
            for (name, value) in piece {
                let grows = matches!(name.as_str(), "text" | "summary");
                match (last.get_mut(&name), value) {
                    (_, Value::Null) => {}
                    (Some(Value::String(text)), Value::String(more)) if grows => {
                        size.grow(more.len())?;
                        text.push_str(&more);
                    }
                    (_, value) => put(last, name, value, size)?,
                }
            }
        }
        _ => {
            let fields = piece.iter().map(|(name, value)| field(name, value));
            size.grow_block(fields.sum())?;
            details.push(piece);
        }
    }
    Ok(())
}

/// Puts a field in. Providers repeat fields with each piece, so only what is more than before
/// counts.
fn put(
    fields: &mut Map<String, Value>,
    name: String,
    value: Value,
    size: &mut Size,
) -> Result<(), Exceeded> {
    let before = fields.get(&name).map_or(0, |before| field(&name, before));
    size.grow(field(&name, &value).saturating_sub(before))?;
    fields.insert(name, value);
    Ok(())
}
