//! Folds the events of a stream into an answer.

use std::{borrow::Cow, collections::BTreeMap};

use asyncagents_core::agent::{Block, Call, Stop, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    answer_limits::{AnswerLimits, Size},
    request::{AnswerEvent, OnEvent},
    wire::{CacheTokens, Fold, Folded, Lenient, Step, StreamError, arguments_in, raw},
};

use super::request::Mark;

/// An answer in the making.
pub(crate) struct Answering {
    origin: String,
    /// Complete items with their places.
    items: Vec<(u64, String)>,
    kept: Size,
    /// What has come in pieces. It comes again in the complete items, so it is not kept, but an
    /// item that never becomes complete must end too.
    streamed: Size,
    /// How many arguments have come in pieces, for the call at each place.
    arguments: BTreeMap<u64, usize>,
    stop: Stop,
    usage: Usage,
    ended: bool,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type", default, borrow)]
    kind: Cow<'a, str>,
    #[serde(default)]
    output_index: u64,
    #[serde(borrow)]
    delta: Option<&'a RawValue>,
    #[serde(borrow)]
    item: Option<&'a RawValue>,
    #[serde(borrow)]
    response: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
struct Response {
    output: Option<Vec<Box<RawValue>>>,
    usage: Option<Tokens>,
    incomplete_details: Option<Incomplete>,
}

#[derive(Deserialize)]
struct Incomplete {
    reason: Option<String>,
}

#[derive(Deserialize)]
struct Tokens {
    #[serde(default)]
    input_tokens: u64,
    #[serde(default)]
    output_tokens: u64,
    input_tokens_details: Option<CacheTokens>,
}

/// An item of the output. What is not read here goes back as it came.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Output {
    #[serde(rename = "type")]
    kind: String,
    content: Lenient<Vec<Content>>,
    summary: Lenient<Vec<Content>>,
    encrypted_content: Lenient<String>,
    call_id: Lenient<String>,
    id: Lenient<String>,
    name: Lenient<String>,
    arguments: Option<Box<RawValue>>,
    phase: Lenient<String>,
}

#[derive(Deserialize)]
struct Content {
    #[serde(rename = "type", default)]
    kind: String,
    text: Option<String>,
    refusal: Option<String>,
}

impl Answering {
    pub(crate) fn new(origin: String, limits: AnswerLimits) -> Self {
        Self {
            origin,
            items: Vec::new(),
            kept: Size::within(limits),
            streamed: Size::within(limits),
            arguments: BTreeMap::new(),
            stop: Stop::Finished,
            usage: Usage::default(),
            ended: false,
        }
    }

    fn end(&mut self, response: Option<&RawValue>) -> Result<Step, StreamError> {
        let response: Response = match response {
            Some(response) => serde_json::from_str(response.get())?,
            None => Response::default(),
        };
        if let Some(tokens) = response.usage {
            let cached = tokens.input_tokens_details.unwrap_or_default();
            self.usage = cached.usage(tokens.input_tokens, tokens.output_tokens);
        }
        match response
            .incomplete_details
            .and_then(|details| details.reason)
        {
            Some(reason) if reason == "content_filter" => self.stop = Stop::Refused,
            Some(_) => self.stop = Stop::Length,
            None => {}
        }
        // Some servers say nothing of single items and everything at the end.
        if let (true, Some(output)) = (self.items.is_empty(), response.output) {
            for (place, item) in (0..).zip(&output) {
                self.keep(place, item)?;
            }
        }
        self.ended = true;
        Ok(Step::Done)
    }

    fn keep(&mut self, place: u64, item: &RawValue) -> Result<(), StreamError> {
        let json = item.get();
        self.kept.grow_block(json.len())?;
        // The arguments are within the item, so most need not be looked at.
        if self.kept.check_arguments(json.len()).is_err() {
            let arguments = read(json).arguments;
            let arguments = arguments.map(|arguments| arguments_in(arguments.get()).len());
            self.kept.check_arguments(arguments.unwrap_or(0))?;
        }
        self.items.push((place, json.to_owned()));
        Ok(())
    }

    fn count_arguments(&mut self, place: u64, more: usize) -> Result<(), StreamError> {
        let before = self.arguments.get(&place).copied();
        if before.is_none() {
            self.streamed.grow_block(0)?;
        }
        let before = before.unwrap_or(0);
        self.streamed.grow_arguments(before, more)?;
        self.arguments.insert(place, before + more);
        Ok(())
    }
}

impl Fold for Answering {
    fn event(&mut self, data: &str, on_event: OnEvent<'_>) -> Result<Step, StreamError> {
        // Some servers end the stream as Chat does; it has ended before.
        if data == "[DONE]" {
            return Ok(Step::More);
        }
        let event: Event<'_> = serde_json::from_str(data)?;
        let delta = || {
            let delta = event.delta.map(RawValue::get).unwrap_or_default();
            serde_json::from_str::<String>(delta).unwrap_or_default()
        };
        match &*event.kind {
            "response.output_text.delta" | "response.refusal.delta" => {
                let delta = delta();
                self.streamed.grow(delta.len())?;
                on_event(AnswerEvent::Text(&delta));
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                let delta = delta();
                self.streamed.grow(delta.len())?;
                on_event(AnswerEvent::Reasoning(&delta));
            }
            "response.function_call_arguments.delta" => {
                self.count_arguments(event.output_index, delta().len())?;
                on_event(AnswerEvent::KeepAlive);
            }
            "response.output_item.added" => {
                self.streamed.grow_block(0)?;
                let output = event.item.map(|item| read(item.get())).unwrap_or_default();
                match (output.kind.as_str(), output.name.0) {
                    ("function_call", Some(name)) => on_event(AnswerEvent::Call(&name)),
                    _ => on_event(AnswerEvent::KeepAlive),
                }
            }
            "response.output_item.done" => {
                if let Some(item) = event.item {
                    self.keep(event.output_index, item)?;
                }
            }
            "response.completed" | "response.incomplete" => return self.end(event.response),
            "response.failed" => {
                let response = event.response.map_or("{}", RawValue::get);
                return Err(StreamError::provider_error_in(response)?);
            }
            "error" => return Err(StreamError::provider_error_in(data)?),
            // Pieces of other things count as well: something is happening.
            _ => {
                self.streamed.grow(delta().len())?;
                on_event(AnswerEvent::KeepAlive);
            }
        }
        Ok(Step::More)
    }

    fn size(&self) -> usize {
        self.streamed.bytes().saturating_add(self.kept.bytes())
    }

    fn is_whole(&self) -> bool {
        self.ended
    }

    fn folded(mut self: Box<Self>) -> Folded {
        self.items.sort_by_key(|(place, _)| *place);
        let mut blocks = Vec::new();
        let mut stop = self.stop;
        for (_, json) in self.items {
            if !push_blocks(&mut blocks, json, &self.origin) {
                stop = Stop::Refused;
            }
        }
        Folded::new(blocks, stop, self.usage)
    }
}

fn read(item: &str) -> Output {
    serde_json::from_str(item).unwrap_or_default()
}

/// Whether the item is anything but a refusal.
fn push_blocks(blocks: &mut Vec<Block>, json: String, origin: &str) -> bool {
    let output = read(&json);
    let raw = |json| raw(origin, json);
    match output.kind.as_str() {
        "message" => {
            let mark = output.phase.0.map(|phase| Mark { phase });
            let mark = mark.and_then(|mark| serde_json::to_string(&mark).ok());
            blocks.extend(mark.map(|json| Block::Other(raw(json))));
            let contents = output.content.0.unwrap_or_default();
            let refuses = contents.iter().any(|content| content.kind == "refusal");
            let texts = contents
                .into_iter()
                .filter_map(|content| content.text.or(content.refusal));
            blocks.extend(texts.map(Block::Text));
            return !refuses;
        }
        "reasoning" => {
            let thoughts =
                [output.summary, output.content].map(|parts| parts.0.unwrap_or_default());
            let text = thoughts
                .iter()
                .flatten()
                .filter_map(|part| part.text.as_deref());
            // Without its content it is of no use to the provider, which stores nothing.
            let has_content = output.encrypted_content.0.is_some() || !thoughts[1].is_empty();
            blocks.push(Block::Reasoning {
                text: text.collect::<Vec<_>>().join("\n\n"),
                raw: has_content.then(|| raw(json)),
            });
        }
        "function_call" => blocks.push(Block::Call(Call {
            id: output.call_id.0.or(output.id.0).unwrap_or_default(),
            name: output.name.0.unwrap_or_default(),
            input: output
                .arguments
                .map(|arguments| arguments_in(arguments.get()))
                .unwrap_or_default(),
        })),
        _ => blocks.push(Block::Other(raw(json))),
    }
    true
}
