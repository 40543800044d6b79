//! An answer before it is put into a protocol.

use crate::{
    fill::{Captured, fill, fill_json},
    protocol::Wire,
    reply::{Arguments, Content},
    request::{Request, Wants},
};

/// What the model says, and everything the protocols need to say it.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    /// Different for each answer of a server; the ids are made of it.
    pub(crate) number: u64,
    /// Seconds since 1970.
    pub(crate) created: u64,
    pub(crate) model: String,
    pub(crate) reasoning: Option<String>,
    pub(crate) text: Option<String>,
    pub(crate) calls: Vec<ToolCall>,
    pub(crate) ending: Ending,
    pub(crate) usage: Usage,
    pub(crate) wants: Wants,
    /// Characters in each piece.
    pub(crate) chunk: usize,
}

/// A tool call with everything filled in.
#[derive(Debug, Clone)]
pub(crate) struct ToolCall {
    pub(crate) id: String,
    pub(crate) name: String,
    /// JSON, unless the script wants it broken.
    pub(crate) arguments: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ending {
    Done,
    Calls,
    MaxTokens,
    Refusal,
    /// The protocol's own word.
    Other(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Usage {
    /// All of the prompt.
    pub(crate) input: u64,
    /// The part of it that was read from the cache.
    pub(crate) cached: u64,
    /// The part of it that was written to the cache.
    pub(crate) written: u64,
    pub(crate) output: u64,
    /// The part of the output that is reasoning.
    pub(crate) reasoning: u64,
}

/// What is known when an answer is made.
pub(crate) struct AnswerContext<'a> {
    pub(crate) wire: Wire,
    pub(crate) request: &'a Request,
    pub(crate) captures: &'a [Captured],
    /// How many bytes of the prompt were seen before.
    pub(crate) seen: usize,
    pub(crate) number: u64,
    pub(crate) created: u64,
}

impl Answer {
    pub(crate) fn new(content: &Content, context: &AnswerContext<'_>) -> Self {
        let filled = |text: &Option<String>| Some(fill(text.as_ref()?, context.captures));
        let mut answer = Self {
            number: context.number,
            created: context.created,
            model: context.request.model.clone(),
            reasoning: filled(&content.reasoning),
            text: filled(&content.text),
            calls: calls(content, context),
            ending: Ending::of(content),
            usage: Usage::default(),
            wants: context.request.wants,
            chunk: content.chunk(),
        };
        answer.usage = Usage::of(&answer, content, context);
        answer
    }

    /// The pieces a text is streamed in.
    pub(crate) fn pieces<'a>(&self, text: &'a str) -> impl Iterator<Item = &'a str> + use<'a> {
        split(text, self.chunk)
    }

    /// The pieces arguments are streamed in: two at least, as clients must expect.
    pub(crate) fn argument_pieces<'a>(
        &self,
        text: &'a str,
    ) -> impl Iterator<Item = &'a str> + use<'a> {
        let half = text.chars().count().div_ceil(2);
        split(text, self.chunk.min(half.max(1)))
    }
}

impl Ending {
    fn of(content: &Content) -> Self {
        match content.stop.as_deref() {
            Some("max_tokens") => Self::MaxTokens,
            Some("refusal") => Self::Refusal,
            Some(other) => Self::Other(other.to_owned()),
            None if content.calls.is_empty() => Self::Done,
            None => Self::Calls,
        }
    }
}

impl Usage {
    fn of(answer: &Answer, content: &Content, context: &AnswerContext<'_>) -> Self {
        let reasoning = answer.reasoning.as_deref().map_or(0, tokens);
        if let Some(set) = content.usage {
            return Self {
                input: set.input,
                cached: set.cached,
                written: 0,
                output: set.output,
                reasoning: reasoning.min(set.output),
            };
        }
        let prompt = context.request.prompt();
        let cached_part = prompt.get(..context.seen).unwrap_or_default();
        let input = tokens(prompt);
        // Rounded down: a few shared letters are no cached token.
        let cached = cached_part.chars().count() as u64 / 4;
        let text = answer.text.as_deref().map_or(0, tokens);
        let calls = answer
            .calls
            .iter()
            .map(|c| tokens(&c.name) + tokens(&c.arguments));
        Self {
            input,
            cached,
            written: if answer.wants.cache {
                input - cached
            } else {
                0
            },
            output: reasoning + text + calls.sum::<u64>(),
            reasoning,
        }
    }
}

/// About a quarter of the characters.
pub(crate) fn tokens(text: &str) -> u64 {
    text.chars().count().div_ceil(4) as u64
}

fn calls(content: &Content, context: &AnswerContext<'_>) -> Vec<ToolCall> {
    let calls = content.calls.iter().enumerate();
    calls
        .map(|(index, call)| ToolCall {
            id: call.id.clone().unwrap_or_else(|| {
                let prefix = context.wire.call_prefix();
                format!("{prefix}_{:08}_{index}", context.number)
            }),
            name: call.name.clone(),
            arguments: match &call.arguments {
                Arguments::Json(value) if context.captures.is_empty() => value.to_string(),
                Arguments::Json(value) => fill_json(value, context.captures).to_string(),
                Arguments::Raw(raw) => fill(raw, context.captures),
            },
        })
        .collect()
}

fn split(text: &str, characters: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = rest
            .char_indices()
            .nth(characters)
            .map_or(rest.len(), |(at, _)| at);
        let (piece, after) = rest.split_at_checked(end)?;
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::nothing("", 3, &[])]
    #[case::shorter("ab", 3, &["ab"])]
    #[case::even("abcdef", 3, &["abc", "def"])]
    #[case::a_rest("abcd", 3, &["abc", "d"])]
    #[case::letters_stay_whole("äöü€", 2, &["äö", "ü€"])]
    fn a_text_is_streamed_in_pieces(
        #[case] text: &str,
        #[case] characters: usize,
        #[case] pieces: &[&str],
    ) {
        assert_eq!(split(text, characters).collect::<Vec<_>>(), pieces);
    }
}
