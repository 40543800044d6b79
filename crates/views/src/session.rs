//! A session of the built-in agent.

use asyncagents_core::{budget::Price, port::Session, progress::Totals};
use serde::Serialize;

use crate::time;

/// A session, and what it has used.
#[derive(Debug, Serialize)]
pub struct SessionView<'a> {
    agent: &'a str,
    begun_at: String,
    cost_usd: Option<f64>,
    folder: &'a str,
    id: &'a str,
    model: &'a str,
    state: &'static str,
    title: &'a str,
    tokens: u64,
    tool_calls: u64,
    turns: u64,
    unpriced_tokens: u64,
}

impl<'a> SessionView<'a> {
    /// A session in this state, which has used this without its background tasks.
    pub fn new(session: &'a Session, state: &'static str, used: &Totals) -> Self {
        Self {
            agent: session.agent.as_str(),
            begun_at: time(session.begun),
            cost_usd: Price::new(used.cost, used.unpriced).dollars(),
            folder: &session.workspace,
            id: session.id.as_str(),
            model: session.model.as_str(),
            state,
            title: &session.title,
            tokens: used.tokens,
            tool_calls: used.by_tool.values().sum(),
            turns: used.turns,
            unpriced_tokens: used.unpriced,
        }
    }
}
