//! The records of a conversation as messages.

use std::{borrow::Cow, collections::HashMap};

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    chain::{Chain, Compacted},
    record::{Kind, Record, Said},
};
use crate::{
    read::{
        compact_json::compact,
        content::{completed, text},
        lines::{End, Reached},
        lossy::{Fields, JsonText, Lenient, LossyStr, missing, readable},
    },
    transcript::{
        CallId, Compaction, Message, MessageId, Outcome, Part, Role, Skipped, Text, ToolCall,
        Transcript,
    },
};

/// The model's name on answers that the host has written itself, such as errors.
const OF_THE_HOST: &str = "<synthetic>";
/// What a command of the host, which no model has seen, begins with; and what it printed.
const HOST_COMMANDS: [&str; 2] = ["<command-name>", "<local-command-"];
/// What the host tells its model of itself begins with.
const REMINDER: &str = "<system-reminder>";

/// Messages, put together record by record.
#[derive(Default)]
pub(super) struct Messages<'a> {
    messages: Vec<Message<'a>>,
    /// Answers by their names: each piece of one is a record.
    answers: HashMap<Cow<'a, str>, usize>,
    /// Calls by their names: the message, and the part of it.
    calls: HashMap<Cow<'a, str>, (usize, usize)>,
    /// The newest message that the user has written.
    prompt: Option<usize>,
    skipped: Skipped,
}

/// Every kind of block in one struct: a tagged enum would copy each block first.
#[derive(Deserialize)]
struct WireBlock<'a> {
    #[serde(borrow, rename = "type")]
    kind: LossyStr<'a>,
    #[serde(borrow)]
    text: Option<JsonText<'a>>,
    /// Of a call.
    #[serde(borrow)]
    id: Option<LossyStr<'a>>,
    #[serde(borrow)]
    name: Option<LossyStr<'a>>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    /// Of a result.
    #[serde(borrow)]
    tool_use_id: Option<LossyStr<'a>>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    is_error: Option<bool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireAttachment<'a> {
    #[serde(borrow, rename = "type")]
    kind: LossyStr<'a>,
    /// What was waiting until the model could take it: a notice, or words of the user.
    #[serde(borrow)]
    prompt: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    blocking_error: Lenient<WireBlockingError<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireBlockingError<'a> {
    #[serde(borrow)]
    blocking_error: JsonText<'a>,
}

/// What a block is.
enum Block<'a> {
    Text(Text<'a>),
    Call(ToolCall<'a>),
    Result {
        call: Cow<'a, str>,
        outcome: Outcome<'a>,
    },
    /// Thinking, pictures and what is not known.
    NotInherited,
}

/// Whether an answer makes this call.
pub(super) fn has_call(content: &RawValue, call: &str) -> bool {
    let blocks = blocks(content, &mut 0);
    let is_it = |block: Block| match block {
        Block::Call(made) => made.id.is_some_and(|id| id.as_str() == call),
        Block::Text(_) | Block::Result { .. } | Block::NotInherited => false,
    };
    blocks.is_ok_and(|blocks| blocks.into_iter().any(is_it))
}

/// The text of a summary, if it can be read.
pub(super) fn summary_text<'a>(message: &Said<'a>) -> Option<Text<'a>> {
    text(message.as_ref().ok()?.content).ok()
}

impl<'a> Messages<'a> {
    /// The messages of a conversation.
    pub(super) fn of(chain: &Chain<'a>, skipped: Skipped) -> End<'a> {
        let mut messages = Self {
            skipped,
            ..Self::default()
        };
        let mut is_used = vec![false; chain.records.len()];
        // By the first copies. Of a record that is there again, the one in the chain counts.
        let mut is_known = vec![false; chain.records.len()];
        for at in (0..chain.records.len()).filter(|at| chain.has(*at)) {
            is_known[chain.first_copy(at)] = true;
        }
        let kept = chain
            .stretches
            .iter()
            .flat_map(|stretch| &stretch.compaction);
        for at in kept.flat_map(|compacted| &compacted.kept) {
            is_used[*at] = true;
        }
        for stretch in &chain.stretches {
            if let Some(compacted) = &stretch.compaction {
                messages.take_compaction(chain, compacted);
                is_used[compacted.summary] = true;
            }
            for at in stretch.from..stretch.to {
                let first = chain.first_copy(at);
                if !is_used[at] && (chain.has(at) || !is_known[first]) {
                    is_used[at] = messages.take(chain, at, stretch.from, &is_used);
                    is_known[first] |= is_used[at];
                }
            }
        }
        if let Some(asking) = chain.asking {
            messages.cut_to(chain, asking);
        }
        messages.into_end(chain.reached)
    }

    /// Takes a record. One that is not in the chain counts if it belongs to an answer that is: of
    /// several calls at once, the result of one only is followed by what comes next.
    fn take(&mut self, chain: &Chain<'a>, at: usize, from: usize, is_used: &[bool]) -> bool {
        let record = &chain.records[at];
        let is_in_chain = chain.has(at);
        match &record.kind {
            Kind::User {
                message, is_meta, ..
            } => self.take_user(record, message, *is_meta, is_in_chain),
            Kind::Assistant { message } => self.take_answer(record, message, is_in_chain),
            Kind::Attachment { attachment } => {
                // Beside the chain there are also records that the user has gone back from. What a
                // compaction kept is followed by the chain, or by nothing that counts.
                let beside =
                    |parent: usize| parent >= from && is_used[parent] && !chain.has(parent);
                let belongs = || chain.parent(at).is_some_and(beside);
                let is_taken = is_in_chain || belongs();
                if is_taken {
                    self.take_attachment(record, attachment);
                }
                is_taken
            }
            Kind::Boundary { .. } | Kind::Other => is_in_chain,
        }
    }

    fn take_user(
        &mut self,
        record: &Record<'a>,
        message: &Said<'a>,
        is_meta: bool,
        is_in_chain: bool,
    ) -> bool {
        let mut broken = 0;
        let read = message.as_ref().ok();
        let Some(blocks) = read.and_then(|wire| blocks(wire.content, &mut broken).ok()) else {
            self.skipped.messages += usize::from(is_in_chain);
            return is_in_chain;
        };
        let mut parts = Vec::new();
        let mut is_used = is_in_chain;
        for block in blocks {
            match block {
                Block::Result { call, outcome } => {
                    is_used |= self.take_result(&call, outcome, is_in_chain);
                }
                Block::Text(text) if is_in_chain && is_for_model(&text, is_meta) => {
                    parts.push(Part::Text(text));
                }
                Block::Text(_) | Block::Call(_) | Block::NotInherited => {}
            }
        }
        if is_used {
            self.skipped.parts += broken;
        }
        if !parts.is_empty() {
            self.prompt = Some(self.messages.len());
            self.push_said(record, parts);
        }
        is_used
    }

    /// Notes a result. Whether its call is one of the conversation's.
    fn take_result(&mut self, call: &str, outcome: Outcome<'a>, is_in_chain: bool) -> bool {
        let Some(made) = self.call(call) else {
            return false;
        };
        if is_in_chain || !made.has_result() {
            made.outcome = outcome;
        }
        true
    }

    fn call(&mut self, call: &str) -> Option<&mut ToolCall<'a>> {
        let (message, part) = self.calls.get(call)?;
        match self.messages.get_mut(*message)?.parts.get_mut(*part)? {
            Part::Tool(call) => Some(call),
            Part::Text(_) => None,
        }
    }

    fn take_answer(&mut self, record: &Record<'a>, message: &Said<'a>, is_in_chain: bool) -> bool {
        let Ok(wire) = message else {
            self.skipped.messages += usize::from(is_in_chain);
            return is_in_chain;
        };
        let name = name_of(message).unwrap_or(&record.uuid).clone();
        let known = self.answers.get(&name).copied();
        if !is_in_chain && known.is_none() {
            return false;
        }
        let model = wire.model.as_ref();
        if model.is_some_and(|model| model.0 == OF_THE_HOST) {
            return true;
        }
        let mut broken = 0;
        let Ok(blocks) = blocks(wire.content, &mut broken) else {
            self.skipped.messages += 1;
            return true;
        };
        self.skipped.parts += broken;
        let at = known.unwrap_or_else(|| {
            self.messages.push(Message {
                id: Some(MessageId::new(name.clone())),
                role: Role::Assistant,
                finished: true,
                compaction: None,
                parts: Vec::new(),
            });
            self.messages.len() - 1
        });
        self.answers.insert(name, at);
        for block in blocks {
            match block {
                Block::Text(text) => self.messages[at].parts.push(Part::Text(text)),
                Block::Call(call) => self.push_call(at, call),
                Block::Result { .. } | Block::NotInherited => {}
            }
        }
        true
    }

    fn push_call(&mut self, message: usize, call: ToolCall<'a>) {
        let parts = &mut self.messages[message].parts;
        if let Some(id) = &call.id {
            let id = Cow::Owned(id.as_str().to_owned());
            self.calls.insert(id, (message, parts.len()));
        }
        parts.push(Part::Tool(call));
    }

    fn take_attachment(&mut self, record: &Record<'a>, attachment: &'a RawValue) {
        let Ok(attachment) = serde_json::from_str::<WireAttachment>(attachment.get()) else {
            return;
        };
        let said = match (&*attachment.kind.0, attachment.prompt, attachment.content) {
            ("queued_command", Some(prompt), _) => text(prompt).ok(),
            ("hook_additional_context", _, Some(content)) => text(content).ok(),
            ("hook_blocking_error", ..) => {
                let error = attachment.blocking_error.0;
                error.map(|error| error.blocking_error.0)
            }
            _ => None,
        };
        if let Some(text) = said.filter(|text| !text.is_blank()) {
            self.push_said(record, vec![Part::Text(text)]);
        }
    }

    fn push_said(&mut self, record: &Record<'a>, parts: Vec<Part<'a>>) {
        self.messages.push(Message {
            id: Some(MessageId::new(record.uuid.clone())),
            role: Role::User,
            finished: true,
            compaction: None,
            parts,
        });
    }

    /// A compaction as two messages, and before them what it keeps, which is read after them.
    fn take_compaction(&mut self, chain: &Chain<'a>, compacted: &Compacted) {
        // Of an answer a part may be kept, which is a message of its own then.
        self.answers.clear();
        let first = self.messages.len();
        for at in &compacted.kept {
            let record = &chain.records[*at];
            match &record.kind {
                Kind::User {
                    message, is_meta, ..
                } => {
                    self.take_user(record, message, *is_meta, true);
                }
                Kind::Assistant { message } => {
                    self.take_answer(record, message, true);
                }
                Kind::Attachment { attachment } => self.take_attachment(record, attachment),
                Kind::Boundary { .. } | Kind::Other => {}
            }
        }
        self.answers.clear();
        let tail_start = self.messages.get(first).and_then(|kept| kept.id.clone());
        let request = MessageId::new(format!(
            "compaction {}",
            chain.records[compacted.boundary].uuid
        ));
        let summary = &chain.records[compacted.summary];
        let said = match &summary.kind {
            Kind::User { message, .. } => summary_text(message),
            _ => None,
        };
        self.messages.push(Message {
            id: Some(request.clone()),
            role: Role::User,
            finished: true,
            compaction: Some(Compaction::Request { tail_start }),
            parts: Vec::new(),
        });
        self.messages.push(Message {
            id: Some(MessageId::new(summary.uuid.clone())),
            role: Role::Assistant,
            finished: true,
            compaction: Some(Compaction::Summary {
                request: Some(request),
                complete: true,
            }),
            parts: said.into_iter().map(Part::Text).collect(),
        });
    }

    /// Adds what was written of the asking answer after the call, and forgets what its calls came
    /// to.
    fn cut_to(&mut self, chain: &Chain<'a>, asking: usize) {
        let Kind::Assistant { message } = &chain.records[asking].kind else {
            return;
        };
        let asking_name = name_of(message);
        for record in chain.records.iter().skip(asking + 1) {
            match &record.kind {
                Kind::Assistant { message } if asking_name.is_some() => {
                    if name_of(message) != asking_name {
                        break;
                    }
                    self.take_answer(record, message, false);
                }
                Kind::User {
                    is_summary: true, ..
                } => break,
                _ => {}
            }
        }
        let key = asking_name.unwrap_or(&chain.records[asking].uuid);
        let Some(message) = self
            .answers
            .get(key)
            .and_then(|at| self.messages.get_mut(*at))
        else {
            return;
        };
        message.finished = false;
        for part in &mut message.parts {
            if let Part::Tool(call) = part {
                call.outcome = Outcome::Pending;
            }
        }
    }

    fn into_end(mut self, reached: Reached) -> End<'a> {
        let is_answer =
            |message: &Message| message.role == Role::Assistant && message.compaction.is_none();
        // A call that waits is still running, unless its user has gone on without it.
        if let Some(newest) = self.messages.iter().rposition(is_answer)
            && self.prompt < Some(newest)
        {
            let parts = &self.messages[newest].parts;
            let waits = |part: &Part| matches!(part, Part::Tool(call) if !call.has_result());
            self.messages[newest].finished = !parts.iter().any(waits);
        }
        let begins_with_answer = self.messages.first().is_some_and(is_answer);
        if reached == Reached::Middle && begins_with_answer {
            self.messages.remove(0);
        }
        End {
            transcript: Transcript::new(self.messages, self.skipped),
            reached,
        }
    }
}

/// The name of an answer, which all its pieces have.
fn name_of<'m, 'a>(message: &'m Said<'a>) -> Option<&'m Cow<'a, str>> {
    let id = message.as_ref().ok()?.id.as_ref();
    id.map(|id| &id.0)
}

/// Whether a model is to read what a user's record says.
fn is_for_model(text: &Text, is_meta: bool) -> bool {
    let is_of_host = HOST_COMMANDS.into_iter().any(|with| text.starts_with(with))
        || is_meta && text.starts_with(REMINDER);
    !is_of_host && !text.is_blank()
}

fn blocks<'a>(
    content: &'a RawValue,
    broken: &mut usize,
) -> Result<Vec<Block<'a>>, serde_json::Error> {
    let json = content.get();
    if json.starts_with('"') {
        return Ok(vec![Block::Text(JsonText::of(content)?.0)]);
    }
    let strict: Result<Vec<WireBlock>, _> = serde_json::from_str(json);
    if let Ok(strict) = strict
        && let Ok(blocks) = strict.into_iter().map(WireBlock::block).collect()
    {
        return Ok(blocks);
    }
    let blocks = serde_json::from_str(json)?;
    let (blocks, count) = readable(blocks, |block| WireBlock::leniently(block)?.block())?;
    *broken += count;
    Ok(blocks)
}

impl<'a> WireBlock<'a> {
    /// Looks only at the fields that its kind has.
    fn leniently(block: &'a RawValue) -> Result<Self, serde_json::Error> {
        let block: Fields = serde_json::from_str(block.get())?;
        let kind: LossyStr = block.required("type")?;
        let is = |name: &str| kind.0 == name;
        Ok(Self {
            text: is("text").then(|| block.required("text")).transpose()?,
            id: block.lenient("id").0,
            name: is("tool_use").then(|| block.required("name")).transpose()?,
            input: block.lenient("input").0,
            tool_use_id: block.lenient("tool_use_id").0,
            content: block.lenient("content").0,
            is_error: block.lenient("is_error").0,
            kind,
        })
    }

    fn block(self) -> Result<Block<'a>, serde_json::Error> {
        Ok(match &*self.kind.0 {
            "text" => Block::Text(self.text.ok_or_else(|| missing("text"))?.0),
            "tool_use" => Block::Call(ToolCall {
                id: self.id.map(|id| CallId::new(id.0)),
                name: Text::new(self.name.ok_or_else(|| missing("name"))?.0),
                input: Text::new(self.input.map_or(Cow::Borrowed("{}"), compact)),
                outcome: Outcome::Pending,
            }),
            "tool_result" => {
                let text = self.content.map_or_else(|| Ok(Text::new("")), text)?;
                Block::Result {
                    call: self.tool_use_id.ok_or_else(|| missing("tool_use_id"))?.0,
                    outcome: if self.is_error.unwrap_or_default() {
                        Outcome::Failed(text)
                    } else {
                        completed(text)
                    },
                }
            }
            _ => Block::NotInherited,
        })
    }
}
