//! The three protocols, and what they have in common: how a conversation is laid out, and
//! what is made of a stream of events.

mod anthropic;
mod chat;
mod fold;
mod layout;
mod responses;
#[cfg(test)]
pub(crate) mod testing;

pub(crate) use fold::{CacheTokens, Fold, Folded, Lenient, Step, StreamError, arguments_in, raw};
pub(crate) use layout::{
    CacheControl, Parameters, Schema, Side, Spelling, cache_key, plain, schema, sides, verbatim,
};

use std::{fmt, str::FromStr};

use crate::{
    answer_limits::AnswerLimits, error::ModelError, price::Figures, request::Request,
    unwanted::Unwanted,
};

use layout::is_blank;

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
