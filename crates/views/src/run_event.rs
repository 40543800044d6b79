//! Events of a run of the built-in agent. The engine has events of its own; a listener maps them to
//! these, so neither crate knows the other.

use asyncagents_core::budget::Spent;
use serde::Serialize;
use serde_json::Value;

use crate::TaskView;

/// An event of a run.
#[derive(Debug, Serialize)]
#[serde(remote = "Self", tag = "type", rename_all = "snake_case")]
pub enum RunEvent<'a> {
    /// The run begins, in this session.
    Session { id: &'a str },
    /// A piece of an answer, as the model writes it.
    TextDelta { text: &'a str },
    /// What was written of the newest answer is void.
    Reset,
    /// The model is asked again.
    Again { why: &'a str },
    /// An answer is complete.
    Text { text: &'a str },
    /// A tool begins.
    Tool {
        call: &'a str,
        name: &'a str,
        target: &'a str,
        arguments: Value,
    },
    /// A tool has ended, or was not run at all.
    ToolEnded {
        call: &'a str,
        name: &'a str,
        error: Option<&'a str>,
        result: Option<&'a str>,
    },
    /// The session got a notice: a background task has ended.
    #[serde(rename = "told")]
    Notice { text: &'a str },
    /// A command waits until fewer of others run.
    CommandQueued,
    /// The conversation is being summarised.
    Compacting,
    /// A background task has another status.
    Task { task: Box<TaskView<'a>> },
    /// The run has ended.
    End(Box<RunTotals<'a>>),
}

/// How a run ended, and what it used.
#[derive(Debug, Serialize)]
pub struct RunTotals<'a> {
    pub session: &'a str,
    pub answer: Option<&'a str>,
    pub error: Option<&'a str>,
    /// By this run and the tasks below it.
    #[serde(flatten)]
    pub spent: SpentView,
    /// Read from the provider's cache, by the session's own model.
    pub cached_tokens: u64,
    pub seconds: f64,
    pub tasks: Vec<TaskView<'a>>,
}

/// What has been used up.
#[derive(Debug, Serialize)]
pub struct SpentView {
    cost_usd: Option<f64>,
    tokens: u64,
    tool_calls: u64,
    turns: u64,
    unpriced_tokens: u64,
}

impl From<Spent> for SpentView {
    fn from(spent: Spent) -> Self {
        Self {
            cost_usd: spent.price().dollars(),
            tokens: spent.tokens,
            tool_calls: spent.tool_calls,
            turns: spent.turns,
            unpriced_tokens: spent.unpriced,
        }
    }
}
