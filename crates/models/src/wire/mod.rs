//! The three protocols, and what they have in common: how a conversation is laid out, and
//! what is made of a stream of events.

mod anthropic;
mod chat;
mod responses;

use std::{borrow::Cow, collections::HashSet, fmt, str::FromStr};

use asyncagents_core::{
    agent::{Answer, Block, Call, Raw, Stop, ToolOutcome, Turn, Usage},
    budget::Cost,
};
use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;

use crate::{
    answer_limits::{AnswerLimits, Exceeded},
    error::ModelError,
    price::Figures,
    provider_error::ProviderError,
    request::{OnEvent, Request},
    unwanted::Unwanted,
};

/// What a provider speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Responses.
    Responses,
    /// OpenAI Chat Completions, which nearly all other servers imitate.
    Chat,
}

impl fmt::Display for Wire {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Wire::Anthropic => "anthropic",
            Wire::Responses => "responses",
            Wire::Chat => "chat",
        })
    }
}

impl FromStr for Wire {
    type Err = ModelError;

    fn from_str(name: &str) -> Result<Self, ModelError> {
        match name {
            "anthropic" => Ok(Wire::Anthropic),
            "responses" => Ok(Wire::Responses),
            "chat" => Ok(Wire::Chat),
            other => Err(ModelError::settings(
                "wire",
                format!("`{other}` is none of anthropic, responses, chat"),
            )),
        }
    }
}

/// All that a request is written from. The same gives the same bytes, in any process.
#[derive(Clone, Copy)]
pub(crate) struct Question<'a> {
    pub(crate) provider: &'a str,
    /// The provider's name for it.
    pub(crate) model: &'a str,
    /// Who understands blocks that are sent back as they came.
    pub(crate) origin: &'a str,
    pub(crate) figures: Figures,
    pub(crate) unwanted: Unwanted,
    pub(crate) request: &'a Request<'a>,
}

impl Question<'_> {
    /// What the model is told first, if anything.
    pub(crate) fn system(&self) -> Option<&str> {
        Some(self.request.system).filter(|text| !is_blank(text))
    }

    /// Whether tools are declared that must not be called.
    pub(crate) fn forbids_tools(&self) -> bool {
        self.request.no_tools && !self.request.tools.is_empty()
    }

    /// How many tokens the answer may have, as far as that is known or wanted.
    pub(crate) fn max_output(&self) -> Option<u64> {
        let known = self.figures.known_max_output();
        known
            .map(|most| self.at_most(most))
            .or(self.request.max_output)
    }

    /// So many tokens, or fewer if the request wants fewer.
    pub(crate) fn at_most(&self, most: u64) -> u64 {
        self.request
            .max_output
            .map_or(most, |wanted| wanted.min(most))
    }
}

impl Wire {
    /// The body of the request.
    pub(crate) fn body(self, question: &Question<'_>) -> Result<String, serde_json::Error> {
        match self {
            Wire::Anthropic => anthropic::body(question),
            Wire::Responses => responses::body(question),
            Wire::Chat => chat::body(question),
        }
    }

    /// An empty answer, into which the stream is folded.
    pub(crate) fn fold(
        self,
        question: &Question<'_>,
        asked: usize,
        limits: AnswerLimits,
    ) -> Box<dyn Fold> {
        let origin = question.origin.to_owned();
        match self {
            Wire::Anthropic => Box::new(anthropic::Answering::new(origin, limits)),
            Wire::Responses => Box::new(responses::Answering::new(origin, limits)),
            Wire::Chat => Box::new(chat::Answering::new(origin, asked, limits)),
        }
    }
}

/// Folds the events of a stream into an answer.
pub(crate) trait Fold: Send {
    /// Takes the data of one event. `Done` is the proper end of the stream.
    fn event(&mut self, data: &str, on_event: OnEvent<'_>) -> Result<Step, StreamError>;

    /// How much of the answer has come. An event that adds nothing to it is only a keep-alive.
    fn size(&self) -> usize;

    /// Whether the answer is complete, should the stream end here.
    fn is_whole(&self) -> bool;

    fn folded(self: Box<Self>) -> Folded;
}

/// Whether more is to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    More,
    Done,
}

/// Why a stream has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StreamError {
    Malformed(String),
    /// The stream contains an error of the provider.
    Provider(ProviderError),
    TooLong(Exceeded),
}

impl StreamError {
    /// The provider's error in an event.
    pub(crate) fn provider_error_in(event: &str) -> Result<Self, Self> {
        let error = ProviderError::in_stream(&serde_json::from_str(event)?);
        Ok(StreamError::Provider(error))
    }
}

impl From<Exceeded> for StreamError {
    fn from(exceeded: Exceeded) -> Self {
        StreamError::TooLong(exceeded)
    }
}

impl From<serde_json::Error> for StreamError {
    fn from(error: serde_json::Error) -> Self {
        // The error of the parser quotes nothing of the stream.
        StreamError::Malformed(format!("an event is not valid JSON: {error}"))
    }
}

/// A complete answer, without its price.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Folded {
    pub(crate) blocks: Vec<Block>,
    pub(crate) stop: Stop,
    pub(crate) usage: Usage,
    /// What the provider says that it cost.
    pub(crate) cost: Option<Cost>,
}

impl Folded {
    /// Providers differ in what they call the end of an answer with calls. The calls decide.
    pub(crate) fn new(blocks: Vec<Block>, stop: Stop, usage: Usage) -> Self {
        let calls = blocks.iter().any(|block| matches!(block, Block::Call(_)));
        let stop = match (stop, calls) {
            (Stop::Finished | Stop::Tools, true) => Stop::Tools,
            (Stop::Finished | Stop::Tools, false) => Stop::Finished,
            (Stop::Length | Stop::Refused, _) => stop,
        };
        Self {
            blocks,
            stop,
            usage,
            cost: None,
        }
    }

    /// Gives an ID to each call that has none, or the same as another one. `turns` is how many
    /// the conversation has: no two of its answers share the IDs made here.
    pub(crate) fn with_distinct_ids(mut self, turns: usize) -> Self {
        let calls = self.blocks.iter_mut().filter_map(|block| match block {
            Block::Call(call) => Some(call),
            Block::Text(_) | Block::Reasoning { .. } | Block::Other(_) => None,
        });
        let mut seen = HashSet::new();
        for (number, call) in (1..).zip(calls) {
            if call.id.is_empty() || seen.contains(&call.id) {
                let mut made = (number..).map(|number: usize| format!("call_{turns}_{number}"));
                call.id = made.find(|id| !seen.contains(id)).unwrap_or_default();
            }
            seen.insert(call.id.clone());
        }
        self
    }
}

/// A conversation as the protocols see it: the two sides in turn.
pub(crate) enum Side<'a> {
    /// The user's side: results first, then texts.
    User {
        results: Vec<(&'a Call, &'a ToolOutcome)>,
        texts: Vec<&'a str>,
        /// How the IDs of the results are written.
        spelling: Spelling,
    },
    /// The model's side.
    Model {
        /// At least one, all of which can be sent.
        blocks: Vec<&'a Block>,
        spelling: Spelling,
    },
}

/// How the IDs of calls are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spelling {
    /// As they came: the model that is asked has made them itself.
    Own,
    /// In letters that all providers accept.
    Plain,
}

impl Spelling {
    fn of(answer: &Answer, origin: &str) -> Self {
        match origin.split_once('@') {
            Some((_, model)) if model == answer.model.as_str() => Spelling::Own,
            _ => Spelling::Plain,
        }
    }

    pub(crate) fn write(self, id: &str) -> Cow<'_, str> {
        match self {
            Spelling::Own if !id.is_empty() => Cow::Borrowed(id),
            Spelling::Own | Spelling::Plain => plain(id),
        }
    }
}

/// Stands for an empty message of the user, which no protocol takes.
const NO_TEXT: &str = "(no text)";

/// Joins what belongs to one side, and leaves out what cannot be sent to `origin`.
pub(crate) fn sides<'a>(turns: &'a [Turn], origin: &str) -> Vec<Side<'a>> {
    let mut sides: Vec<Side<'a>> = Vec::new();
    let mut spelling = Spelling::Plain;
    for turn in turns {
        if let Turn::Answered(answer) = turn {
            let blocks = sendable(answer, origin);
            if !blocks.is_empty() {
                spelling = Spelling::of(answer, origin);
                sides.push(Side::Model { blocks, spelling });
            }
            continue;
        }
        if !matches!(sides.last(), Some(Side::User { .. })) {
            sides.push(Side::User {
                results: Vec::new(),
                texts: Vec::new(),
                spelling,
            });
        }
        if let Some(Side::User { results, texts, .. }) = sides.last_mut() {
            match turn {
                Turn::Said(text) if !is_blank(text) => texts.push(text),
                Turn::Result { call, outcome } => results.push((call, outcome)),
                Turn::Said(_) | Turn::Answered(_) => {}
            }
        }
    }
    for side in &mut sides {
        if let Side::User { results, texts, .. } = side
            && results.is_empty()
            && texts.is_empty()
        {
            texts.push(NO_TEXT);
        }
    }
    sides
}

fn sendable<'a>(answer: &'a Answer, origin: &str) -> Vec<&'a Block> {
    let goes = |block: &&Block| match block {
        Block::Text(text) => !is_blank(text),
        Block::Reasoning { raw, .. } => raw.as_ref().is_some_and(|raw| raw.wire == origin),
        Block::Call(_) => true,
        Block::Other(raw) => raw.wire == origin,
    };
    let mut blocks: Vec<&Block> = answer.blocks.iter().filter(goes).collect();
    // A thought that leads to nothing is not accepted.
    while let Some(Block::Reasoning { .. }) = blocks.last() {
        blocks.pop();
    }
    blocks
}

fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

/// A block that goes back as it came.
pub(crate) fn verbatim(raw: &Raw) -> Option<&RawValue> {
    serde_json::from_str(&raw.json).ok()
}

/// A name or an ID in the letters that all protocols accept. Models invent others, and an ID
/// may come from another provider.
pub(crate) fn plain(name: &str) -> Cow<'_, str> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    if name.is_empty() {
        Cow::Borrowed("unknown")
    } else if name.chars().all(is_plain) {
        Cow::Borrowed(name)
    } else {
        Cow::Owned(name.replace(|letter| !is_plain(letter), "_"))
    }
}

/// What goes back to `origin` as it came.
pub(crate) fn raw(origin: &str, json: String) -> Raw {
    let wire = origin.to_owned();
    Raw { wire, json }
}

/// An optional field: one of an unexpected type is as good as none.
#[derive(Clone)]
pub(crate) struct Lenient<T>(pub(crate) Option<T>);

impl<T> Default for Lenient<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Lenient<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Option::<Box<RawValue>>::deserialize(deserializer)?;
        Ok(Self(
            raw.and_then(|raw| serde_json::from_str(raw.get()).ok()),
        ))
    }
}

/// Lets a provider cache what comes before it.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum CacheControl {
    Ephemeral,
}

/// How many of the tokens that were read are from the cache, or new in it, as OpenAI counts.
#[derive(Deserialize, Default, Clone, Copy)]
pub(crate) struct CacheTokens {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
}

impl CacheTokens {
    pub(crate) fn usage(self, read: u64, output: u64) -> Usage {
        let cache_read = self.cached_tokens.unwrap_or(0);
        let cache_write = self.cache_write_tokens.unwrap_or(0);
        Usage {
            input: read.saturating_sub(cache_read.saturating_add(cache_write)),
            cache_read,
            cache_write,
            output,
        }
    }
}

/// The parameters of a call, or a piece of them: a string with JSON in it. Some servers send
/// the JSON itself.
pub(crate) fn arguments_in(json: &str) -> String {
    match serde_json::from_str::<Option<String>>(json) {
        Ok(text) => text.unwrap_or_default(),
        Err(_) => json.to_owned(),
    }
}

/// OpenAI takes keys of up to 64 characters.
pub(crate) fn cache_key(key: &str) -> Option<&str> {
    let end = key.char_indices().nth(64).map_or(key.len(), |(at, _)| at);
    key.get(..end).filter(|key| !key.is_empty())
}

/// The parameters of a call as a JSON object: the model's own bytes, unless it made a mistake.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Parameters<'a> {
    Verbatim(&'a RawValue),
    /// What the model wrote, so that it sees its mistake.
    Mistaken {
        invalid: &'a str,
    },
    Nothing {},
}

impl<'a> Parameters<'a> {
    pub(crate) fn of(call: &'a Call) -> Self {
        let input = call.input.trim();
        match serde_json::from_str::<&RawValue>(input) {
            Ok(raw) if input.starts_with('{') => Parameters::Verbatim(raw),
            _ if input.is_empty() => Parameters::Nothing {},
            _ => Parameters::Mistaken {
                invalid: &call.input,
            },
        }
    }
}

/// A tool's schema, as it was written.
pub(crate) fn schema(schema: &str) -> Schema<'_> {
    match serde_json::from_str::<&RawValue>(schema) {
        Ok(raw) => Schema::Verbatim(raw),
        Err(_) => Schema::Anything { kind: "object" },
    }
}

#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Schema<'a> {
    Verbatim(&'a RawValue),
    Anything {
        #[serde(rename = "type")]
        kind: &'static str,
    },
}

/// For the tests of the protocols.
#[cfg(test)]
pub(crate) mod testing {
    use serde_json::Value;

    use super::*;
    use crate::{price::Prices, request::AnswerEvent};

    /// Far more than the tests say, except for those that say too much.
    pub(crate) const LIMITS: AnswerLimits = AnswerLimits {
        answer: 100_000,
        arguments: 50_000,
    };

    /// A fold with nothing in it.
    pub(crate) fn empty(wire: Wire) -> Box<dyn Fold> {
        let request = request(&[]);
        wire.fold(&question(&request), 400, LIMITS)
    }

    /// Plays events into a fold.
    pub(crate) fn play(wire: Wire, events: &[Value]) -> Result<Box<dyn Fold>, StreamError> {
        let mut fold = empty(wire);
        for event in events {
            let data = match event {
                Value::String(bare) => bare.clone(),
                json => json.to_string(),
            };
            fold.event(&data, &mut |_: AnswerEvent<'_>| {})?;
        }
        Ok(fold)
    }

    /// The answer that these events make.
    pub(crate) fn folded(wire: Wire, events: &[Value]) -> Folded {
        let fold = play(wire, events).expect("no trouble");
        assert!(fold.is_whole(), "the stream has ended");
        fold.folded().with_distinct_ids(0)
    }

    /// The messages (or the input) of a request with these turns.
    pub(crate) fn sent(wire: Wire, turns: &[Turn]) -> Value {
        let request = request(turns);
        let body = wire.body(&question(&request)).expect("a body");
        let mut body: Value = serde_json::from_str(&body).expect("JSON");
        let name = if wire == Wire::Responses {
            "input"
        } else {
            "messages"
        };
        body[name].take()
    }

    pub(crate) fn request(turns: &[Turn]) -> Request<'_> {
        Request {
            system: "",
            tools: &[],
            turns,
            no_tools: false,
            max_output: None,
            cache_key: "",
            effort: None,
        }
    }

    pub(crate) fn question<'a>(request: &'a Request<'a>) -> Question<'a> {
        let prices = Prices::with(None).expect("the table");
        Question {
            provider: "house",
            model: "m",
            origin: "here@house/m",
            figures: prices.figures("house", "m", false),
            unwanted: Unwanted::default(),
            request,
        }
    }

    pub(crate) fn answered(blocks: Vec<Block>) -> Turn {
        Turn::Answered(Answer {
            model: "house/m".into(),
            blocks,
            stop: Stop::Tools,
            usage: Usage::default(),
            cost: Some(Cost(0)),
        })
    }

    pub(crate) fn call(id: &str, name: &str, input: &str) -> Call {
        Call {
            id: id.to_owned(),
            name: name.to_owned(),
            input: input.to_owned(),
        }
    }

    pub(crate) fn raw(wire: &str, json: &str) -> Raw {
        Raw {
            wire: wire.to_owned(),
            json: json.to_owned(),
        }
    }
}
