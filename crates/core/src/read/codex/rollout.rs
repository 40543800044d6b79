//! A conversation, put together item by item.

use std::{borrow::Cow, collections::HashMap};

use serde_json::value::RawValue;

use super::{
    item::{Meaning, WireItem},
    line::{COMPACTED, Line, Payload, WireCompacted, WireEvent},
};
use crate::{
    read::lines::{End, Go, Reached, Reading},
    transcript::{Compaction, Message, MessageId, Part, Role, Skipped, Text, ToolCall, Transcript},
};

/// A conversation, put together item by item.
#[derive(Default)]
pub(super) struct Rollout<'a> {
    messages: Vec<Message<'a>>,
    /// The answer that is not complete yet.
    open: Option<usize>,
    /// Calls by their names: the message, and the part of it.
    calls: HashMap<Cow<'a, str>, (usize, usize)>,
    /// Messages that the user has written: what can be gone back to.
    prompts: Vec<usize>,
    /// The answer that asks for a fork.
    asking: Option<usize>,
    is_compacted: bool,
    /// Whether the user went back further than what was read.
    lost_track: bool,
}

impl<'a> Rollout<'a> {
    pub(super) fn take(
        &mut self,
        line: Line<'a>,
        reading: &Reading,
    ) -> Result<Go, serde_json::Error> {
        let Some(payload) = line.payload else {
            return Ok(Go::On);
        };
        match (&*line.kind.0, payload) {
            ("response_item", item) => return self.take_item(item.item()?, reading.asked_in),
            (COMPACTED, Payload::Unread(payload)) => {
                self.open = None;
                if self.asking.is_none() {
                    self.compact(payload)?;
                }
            }
            ("event_msg", event) => self.take_event(&event.event()?, reading.has_more),
            // One for each answer.
            ("token_usage_record", _) => self.open = None,
            _ => {}
        }
        Ok(self.go_on())
    }

    /// After the answer that asks for a fork, nothing counts.
    fn go_on(&self) -> Go {
        if self.asking.is_some() && self.open.is_none() {
            Go::NoFurther
        } else {
            Go::On
        }
    }

    fn take_item(
        &mut self,
        mut item: WireItem<'a>,
        asked_in: Option<&str>,
    ) -> Result<Go, serde_json::Error> {
        let id = item.id.take().map(|id| MessageId::new(id.0));
        match item.meaning()? {
            Meaning::Nothing => {}
            Meaning::Answer(parts) => self.push_answer(id, parts, asked_in),
            Meaning::Said { parts, is_prompt } => {
                if is_prompt {
                    self.open = None;
                }
                if self.asking.is_none() {
                    self.push_said(id, parts, is_prompt);
                }
            }
            Meaning::Result { call, outcome } => {
                self.open = None;
                if self.asking.is_none()
                    && let Some(made) = self.call(&call)
                {
                    made.outcome = outcome;
                }
            }
        }
        Ok(self.go_on())
    }

    fn call(&mut self, call: &str) -> Option<&mut ToolCall<'a>> {
        let (message, part) = self.calls.get(call)?;
        match self.messages.get_mut(*message)?.parts.get_mut(*part)? {
            // It may be another's place by now, if the user went back.
            Part::Tool(made) if made.id.as_ref().is_some_and(|id| id.as_str() == call) => {
                Some(made)
            }
            Part::Tool(_) | Part::Text(_) => None,
        }
    }

    fn push_said(&mut self, id: Option<MessageId<'a>>, parts: Vec<Part<'a>>, is_prompt: bool) {
        if parts.is_empty() {
            return;
        }
        if is_prompt {
            self.prompts.push(self.messages.len());
        }
        self.messages.push(Message {
            id,
            role: Role::User,
            finished: true,
            compaction: None,
            parts,
        });
    }

    fn push_answer(
        &mut self,
        id: Option<MessageId<'a>>,
        parts: Vec<Part<'a>>,
        asked_in: Option<&str>,
    ) {
        if self.asking.is_some() && self.open.is_none() {
            return;
        }
        let at = self.open.unwrap_or_else(|| {
            self.messages.push(Message {
                id,
                role: Role::Assistant,
                finished: true,
                compaction: None,
                parts: Vec::new(),
            });
            self.messages.len() - 1
        });
        self.open = Some(at);
        for part in parts {
            if let Part::Tool(ToolCall { id: Some(id), .. }) = &part {
                if asked_in == Some(id.as_str()) {
                    self.asking = Some(at);
                }
                let place = (at, self.messages[at].parts.len());
                self.calls.insert(Cow::Owned(id.as_str().to_owned()), place);
            }
            self.messages[at].parts.push(part);
        }
    }

    /// Replaces everything before by a summary and what is kept beside it. One that cannot be read
    /// replaces nothing: everything before would be lost.
    fn compact(&mut self, payload: &'a RawValue) -> Result<(), serde_json::Error> {
        let WireCompacted {
            message,
            replacement_history,
        } = serde_json::from_str(payload.get())?;
        let mut items = Vec::new();
        for item in replacement_history.into_iter().flatten() {
            let mut item = WireItem::read(item)?;
            let id = item.id.take().map(|id| MessageId::new(id.0));
            items.push((id, item.meaning()?));
        }
        let summary = message.map(|message| message.0);
        let summary = summary.filter(|summary| !summary.is_blank());
        // The summary is the last of what it is kept with.
        let is_prompt = |(_, meaning): &(_, Meaning)| {
            matches!(
                meaning,
                Meaning::Said {
                    is_prompt: true,
                    ..
                }
            )
        };
        let last = items.iter().rposition(is_prompt);
        let in_history = last.filter(|at| summary.is_none() || is_text_of(&items[*at].1, &summary));
        let (id, parts) = match (in_history.map(|at| items.remove(at)), summary) {
            (Some((id, Meaning::Said { parts, .. })), _) => (id, parts),
            (_, Some(summary)) => (None, vec![Part::Text(summary)]),
            (_, None) => return Ok(()),
        };
        self.is_compacted = true;
        // What was replaced cannot be gone back to.
        self.prompts.clear();
        self.messages.push(Message {
            id,
            role: Role::Assistant,
            finished: true,
            compaction: Some(Compaction::Checkpoint { complete: true }),
            parts,
        });
        for (id, meaning) in items {
            match meaning {
                Meaning::Said { parts, is_prompt } => {
                    self.open = None;
                    self.push_said(id, parts, is_prompt);
                }
                Meaning::Answer(parts) => self.push_answer(id, parts, None),
                Meaning::Result { call, outcome } => {
                    self.open = None;
                    if let Some(made) = self.call(&call) {
                        made.outcome = outcome;
                    }
                }
                Meaning::Nothing => {}
            }
        }
        self.open = None;
        Ok(())
    }

    fn take_event(&mut self, event: &WireEvent, has_more: bool) {
        match &*event.kind.0 {
            "task_started" | "turn_started" => self.open = None,
            "thread_rolled_back" if self.asking.is_none() => {
                self.open = None;
                let turns = usize::try_from(event.num_turns.unwrap_or(1)).unwrap_or(usize::MAX);
                self.go_back(turns, has_more);
            }
            _ => {}
        }
    }

    /// Forgets the last turns, as the user told the host to.
    fn go_back(&mut self, turns: usize, has_more: bool) {
        if turns == 0 {
            return;
        }
        let first = self.prompts.len().checked_sub(turns);
        self.lost_track |= first.is_none() && has_more && !self.is_compacted;
        let first = first.unwrap_or_default();
        if let Some(prompt) = self.prompts.get(first) {
            self.messages.truncate(*prompt);
        }
        self.prompts.truncate(first);
    }

    pub(super) fn into_end(mut self, skipped: Skipped, reading: &Reading) -> End<'a> {
        let has_call = reading.asked_in.is_none() || self.asking.is_some();
        let reached = if !reading.has_more {
            Reached::Beginning
        } else if self.lost_track || !has_call {
            Reached::TooLittle
        } else if self.is_compacted && self.messages.iter().any(is_checkpoint) {
            Reached::Compaction
        } else {
            Reached::Middle
        };
        self.mark_unfinished();
        let begins_with_answer = self.messages.first().is_some_and(is_answer);
        if reached == Reached::Middle && begins_with_answer {
            self.messages.remove(0);
        }
        End {
            transcript: Transcript::new(self.messages, skipped),
            reached,
        }
    }

    /// A call that waits is still running, unless its user has gone on without it.
    fn mark_unfinished(&mut self) {
        let newest = self.messages.iter().rposition(is_answer);
        let Some(newest) = newest.filter(|newest| self.prompts.last() < Some(newest)) else {
            return;
        };
        let message = &mut self.messages[newest];
        let waits = |part: &Part| matches!(part, Part::Tool(call) if !call.has_result());
        message.finished = !message.parts.iter().any(waits);
    }
}

fn is_answer(message: &Message) -> bool {
    message.role == Role::Assistant && message.compaction.is_none()
}

fn is_checkpoint(message: &Message) -> bool {
    matches!(message.compaction, Some(Compaction::Checkpoint { .. }))
}

/// Whether something that was said is this text. The host may have cut either.
fn is_text_of(meaning: &Meaning, text: &Option<Text>) -> bool {
    let Some(text) = text else { return false };
    match meaning {
        Meaning::Said { parts, .. } => parts.iter().any(|part| match part {
            Part::Text(said) => {
                let (said, text) = (said.as_str(), text.as_str());
                said.ends_with(text) || text.ends_with(said)
            }
            Part::Tool(_) => false,
        }),
        Meaning::Answer(_) | Meaning::Result { .. } | Meaning::Nothing => false,
    }
}
