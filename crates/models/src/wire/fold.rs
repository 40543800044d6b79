//! What is made of a stream of events.

use std::collections::HashSet;

use asyncagents_core::{
    agent::{Block, Raw, Stop, Usage},
    budget::Cost,
};
use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::value::RawValue;

use crate::{answer_limits::Exceeded, provider_error::ProviderError, request::OnEvent};

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

/// How many of the tokens that were read are from the cache, or new in it, as OpenAI counts.
#[derive(Deserialize, Default, Clone, Copy)]
pub(crate) struct CacheTokens {
    pub(super) cached_tokens: Option<u64>,
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
