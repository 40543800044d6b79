//! How a conversation is laid out in a request.

use std::borrow::Cow;

use asyncagents_core::agent::{Answer, Block, Call, Raw, ToolOutcome, Turn};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::request::Request;

/// A conversation as the protocols see it: the two sides in turn.
pub(crate) enum Side<'a> {
    /// The user's side: results first, then texts.
    User {
        results: Vec<(&'a Call, &'a ToolOutcome)>,
        texts: Vec<&'a str>,
        /// How many of the texts end what other conversations begin with too, if it ends here.
        inherited: Option<usize>,
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
pub(crate) fn sides<'a>(request: &Request<'a>, origin: &str) -> Vec<Side<'a>> {
    let mut sides: Vec<Side<'a>> = Vec::new();
    let mut spelling = Spelling::Plain;
    for (number, turn) in (1..).zip(request.turns) {
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
                inherited: None,
                spelling,
            });
        }
        if let Some(Side::User {
            results,
            texts,
            inherited,
            ..
        }) = sides.last_mut()
        {
            match turn {
                Turn::Said(text) if !is_blank(text) => {
                    texts.push(text);
                    if number == request.inherited {
                        *inherited = Some(texts.len());
                    }
                }
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

pub(super) fn is_blank(text: &str) -> bool {
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

/// Lets a provider cache what comes before it.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum CacheControl {
    Ephemeral,
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
