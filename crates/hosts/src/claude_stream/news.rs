//! What the records of Claude Code tell of a session.

use asyncagents_core::agent::{ToolOutcome, Usage};

use super::record::{Assistant, Block, User, blocks, text};
use crate::agent::{ToolNews, WireEvent};

/// Who "says" what Claude Code itself says in the model's place, such as errors.
const NO_MODEL: &str = "<synthetic>";

/// What was told before, so that it is not told again.
#[derive(Debug, Default)]
pub(super) struct News {
    model: Option<String>,
    /// The answer whose tokens were told last, and how many.
    context: Option<(Option<String>, u64)>,
}

impl News {
    /// Which model answers, if that is new.
    pub(super) fn of_model(&mut self, model: Option<String>) -> Option<WireEvent> {
        let model = model.filter(|model| model != NO_MODEL)?;
        if self.model.as_ref() == Some(&model) {
            return None;
        }
        self.model = Some(model.clone());
        Some(WireEvent::Model(model))
    }

    /// What a piece of an answer tells. Sub-agents are alive.
    pub(super) fn of_answer(&mut self, record: Assistant) -> Vec<WireEvent> {
        let answer = record.message;
        let is_synthetic = answer.model.as_deref() == Some(NO_MODEL);
        if record.parent_tool_use_id.is_some() || is_synthetic {
            return vec![WireEvent::Alive];
        }
        let mut events = Vec::from_iter(self.of_model(answer.model));
        events.extend(blocks(answer.content).filter_map(of_block));
        // Each piece of an answer has the tokens of the whole.
        let tokens = answer.usage.map(|usage| Usage::from(usage).context());
        if let Some(tokens) = tokens.filter(|tokens| *tokens > 0) {
            let context = Some((answer.id, tokens));
            if self.context != context {
                self.context = context;
                events.push(WireEvent::Context(tokens));
            }
        }
        events
    }
}

fn of_block(block: Block) -> Option<WireEvent> {
    match block {
        Block::Text { text } if !text.is_empty() => Some(WireEvent::Text(text)),
        Block::Thinking { thinking } if !thinking.is_empty() => Some(WireEvent::Thought(thinking)),
        Block::ToolUse { id, name, input } => Some(WireEvent::Tool(ToolNews {
            id,
            name: Some(name),
            input: Some(input.to_string()),
            began: true,
            ..ToolNews::default()
        })),
        Block::Text { .. } | Block::Thinking { .. } | Block::ToolResult { .. } => None,
    }
}

/// What came of calls.
pub(super) fn of_results(record: User) -> Vec<WireEvent> {
    if record.parent_tool_use_id.is_some() {
        return vec![WireEvent::Alive];
    }
    let serde_json::Value::Array(content) = record.message.content else {
        return Vec::new();
    };
    let outcomes = blocks(content).filter_map(|block| match block {
        Block::ToolResult {
            tool_use_id,
            content,
            is_error,
        } => {
            let text = text(content);
            let outcome = if is_error.unwrap_or(false) {
                ToolOutcome::Failed(text)
            } else {
                ToolOutcome::Done(text)
            };
            Some(WireEvent::Tool(ToolNews {
                id: tool_use_id,
                outcome: Some(outcome),
                ..ToolNews::default()
            }))
        }
        Block::Text { .. } | Block::Thinking { .. } | Block::ToolUse { .. } => None,
    });
    outcomes.collect()
}
