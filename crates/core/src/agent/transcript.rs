//! A session as a host-neutral conversation, for forks and for people who look at it.

use super::{Answer, Block, Entry, Filed, SUMMARISE, ToolOutcome};
use crate::transcript::{
    CallId, Compaction, Message, MessageId, Outcome, Part, Role, Skipped, Text, ToolCall,
    Transcript,
};

/// A session's entries as a transcript. A message's ID is the number of its entry.
pub fn transcript(entries: &[Filed]) -> Transcript<'static> {
    let mut messages: Vec<Message<'static>> = Vec::new();
    for filed in entries {
        match &filed.entry {
            Entry::Inherited {
                preamble, context, ..
            } => messages.push(user(filed.seq, format!("{preamble}\n\n{context}"))),
            Entry::Prompted { text, .. } => messages.push(user(filed.seq, text.clone())),
            Entry::Notice {
                visible, hidden, ..
            } => messages.push(user(filed.seq, format!("{visible}\n\n{hidden}"))),
            Entry::Answered { answer, .. } => messages.push(agent(filed.seq, answer)),
            Entry::ToolEnded { call, outcome } => settle(&mut messages, call, outcome),
            Entry::Compacted { answer, .. } => {
                let mut request = user(filed.seq, SUMMARISE.to_owned());
                let id = format!("{}.request", filed.seq);
                request.id = Some(MessageId::new(id.clone()));
                request.compaction = Some(Compaction::Request { tail_start: None });
                let mut summary = agent(filed.seq, answer);
                summary.parts.retain(|part| matches!(part, Part::Text(_)));
                summary.compaction = Some(Compaction::Summary {
                    request: Some(MessageId::new(id)),
                    complete: true,
                });
                messages.extend([request, summary]);
            }
            // The host's own remarks are not part of what was said.
            Entry::AgentSession { .. }
            | Entry::Nudged { .. }
            | Entry::LastTurn { .. }
            | Entry::FellBack(_)
            | Entry::ToolBegan { .. } => {}
            Entry::Ended { .. } => {
                if let Some(newest) = messages.last_mut() {
                    newest.finished = true;
                }
            }
        }
    }
    for message in &mut messages {
        let pending = |part: &Part| matches!(part, Part::Tool(call) if !call.has_result());
        message.finished |= !message.parts.iter().any(pending);
    }
    Transcript::new(messages, Skipped::default())
}

fn user(seq: u64, text: String) -> Message<'static> {
    Message {
        id: Some(MessageId::new(seq.to_string())),
        role: Role::User,
        finished: true,
        compaction: None,
        parts: vec![Part::Text(Text::new(text))],
    }
}

fn agent(seq: u64, answer: &Answer) -> Message<'static> {
    let parts = answer.blocks.iter().filter_map(|block| match block {
        Block::Text(text) => Some(Part::Text(Text::new(text.clone()))),
        Block::Call(call) => Some(Part::Tool(ToolCall {
            id: Some(CallId::new(call.id.clone())),
            name: Text::new(call.name.clone()),
            input: Text::new(compact(&call.input)),
            outcome: Outcome::Pending,
        })),
        Block::Reasoning { .. } | Block::Other(_) => None,
    });
    Message {
        id: Some(MessageId::new(seq.to_string())),
        role: Role::Assistant,
        finished: false,
        compaction: None,
        parts: parts.collect(),
    }
}

/// Models like to write JSON with blanks; a broken one is shown as it is.
fn compact(input: &str) -> String {
    let parsed: Result<serde_json::Value, _> = serde_json::from_str(input);
    parsed.map_or_else(|_| input.to_owned(), |value| value.to_string())
}

fn settle(messages: &mut [Message<'static>], call: &str, outcome: &ToolOutcome) {
    let newest_first = messages.iter_mut().rev();
    let calls = newest_first.flat_map(|message| message.parts.iter_mut());
    let called = calls.filter_map(|part| match part {
        Part::Tool(tool) => Some(tool),
        Part::Text(_) => None,
    });
    let is_it = |tool: &&mut ToolCall| {
        let id = tool.id.as_ref().map(CallId::as_str);
        id == Some(call) && tool.outcome == Outcome::Pending
    };
    if let Some(tool) = called.into_iter().find(is_it) {
        tool.outcome = match outcome {
            ToolOutcome::Done(text) => Outcome::Completed(Text::new(text.clone())),
            ToolOutcome::Failed(text) => Outcome::Failed(Text::new(text.clone())),
            ToolOutcome::Unknown => Outcome::Failed(Text::new(ToolOutcome::UNKNOWN)),
        };
    }
}
