//! What is asked of a model, and what happens while it answers.

use std::time::Duration;

use asyncagents_core::agent::{Effort, ToolSpec, Turn};

/// One question to a model: the whole conversation, as it must be seen now.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// Who the model is and how it works.
    pub system: &'a str,
    /// What it may use.
    pub tools: &'a [ToolSpec],
    /// The conversation. Each call of an answer has its result.
    pub turns: &'a [Turn],
    /// How many of the first turns other conversations begin with too: the children of one fork.
    /// They find them in the provider's cache.
    pub inherited: usize,
    /// The tools stay declared, because the provider's cache begins with them, but the model
    /// must answer without them.
    pub no_tools: bool,
    /// How many tokens the answer may have, if not as many as the model can.
    pub max_output: Option<u64>,
    /// The same for requests that begin alike: it leads them to the same cache.
    pub cache_key: &'a str,
    /// How long to think; nothing leaves it to the provider.
    pub effort: Option<Effort>,
}

/// Something that happens while a model answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerEvent<'a> {
    /// A piece of the answer's text.
    Text(&'a str),
    /// A piece of the model's reasoning.
    Reasoning(&'a str),
    /// The model begins to call this tool.
    Call(&'a str),
    /// Nothing new, but the request is still under way.
    KeepAlive,
    /// What came of this answer is void: the request is sent again.
    Retry {
        /// What went wrong, or what the request is waiting for.
        why: String,
        /// When it is sent again.
        after: Duration,
    },
}

/// Called with each event.
pub(crate) type OnEvent<'a> = &'a mut (dyn FnMut(AnswerEvent<'_>) + Send);
