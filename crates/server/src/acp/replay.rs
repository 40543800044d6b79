//! A session that is loaded, told from its beginning.

use agent_client_protocol::v1::schema::SessionUpdate;
use asyncagents_core::agent::{Block, Call, Entry, Filed};
use std::collections::HashMap;

use super::{Happening, updates::Updates};

/// Everything that was said and done in a session.
pub(super) fn replay(entries: &[Filed], updates: &mut Updates) -> Vec<SessionUpdate> {
    let mut told = Vec::new();
    let mut open: HashMap<&str, &Call> = HashMap::new();
    for filed in entries {
        match &filed.entry {
            Entry::Prompted { text, .. } => told.push(updates.prompted(text)),
            Entry::Answered { answer, .. } => {
                for block in &answer.blocks {
                    let happening = match block {
                        Block::Text(text) => Happening::Text(text.clone()),
                        Block::Reasoning { text, .. } if text.is_empty() => continue,
                        Block::Reasoning { text, .. } => Happening::Thought(text.clone()),
                        Block::Call(call) => {
                            open.insert(&call.id, call);
                            Happening::CallBegan(call.clone())
                        }
                        Block::Other(_) => continue,
                    };
                    told.extend(updates.of(happening));
                }
                told.extend(updates.of(Happening::Answered));
            }
            Entry::ToolEnded { call, outcome } => {
                let name = open.remove(call.as_str()).map(|call| call.name.clone());
                told.extend(updates.of(Happening::CallEnded {
                    call: call.clone(),
                    name: name.unwrap_or_default(),
                    failed: outcome.is_error(),
                    result: outcome.text().to_owned(),
                }));
            }
            Entry::Ended { .. } => told.extend(updates.close_calls()),
            // These are for the model.
            Entry::Inherited { .. }
            | Entry::Notice { .. }
            | Entry::Nudged { .. }
            | Entry::LastTurn { .. }
            | Entry::FellBack(_)
            | Entry::AgentSession { .. }
            | Entry::ToolBegan { .. }
            | Entry::Compacted { .. } => {}
        }
    }
    told
}
