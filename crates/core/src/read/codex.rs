//! Codex's rollouts: a record on each line, in the order in which things happened.
//!
//! The conversation is the items that the model was sent and has answered. An answer is several
//! items: it ends where a result comes back, or somebody else speaks.

use std::{borrow::Cow, collections::HashMap};

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    compact_json::compact,
    content::{self, completed},
    lines::{End, Found, Go, Reached, Reading},
    lossy::{Fields, JsonText, Lenient, LossyStr, missing},
};
use crate::transcript::{
    CallId, Compaction, Message, MessageId, Outcome, Part, Role, Skipped, Text, ToolCall,
    Transcript,
};

/// How texts begin that the host writes in the user's name: instructions, and where it is.
const PREAMBLES: [&str; 6] = [
    "<environment_context>",
    "<user_instructions>",
    "<permissions instructions>",
    "<skills_instructions>",
    "<collaboration_mode>",
    "# AGENTS.md instructions",
];
/// What a developer's message is marked with if a hook has written it.
const OF_A_HOOK: &str = "hooks.additional_context";

pub(super) fn read<'a>(lines: &'a [u8], reading: &Reading) -> (End<'a>, Found) {
    let mut found = Found::default();
    let mut rollout = Rollout::default();
    found.each(lines, |found, line| {
        let line = WireLine::read(line)?;
        found.known += usize::from(line.payload.is_some());
        rollout.take(&line, reading)
    });
    (rollout.into_end(found.skipped, reading), found)
}

/// A conversation, put together item by item.
#[derive(Default)]
struct Rollout<'a> {
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

#[derive(Deserialize)]
struct WireLine<'a> {
    #[serde(borrow, rename = "type")]
    kind: LossyStr<'a>,
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
}

/// Every kind of item in one struct: a tagged enum would copy each item first.
#[derive(Deserialize)]
struct WireItem<'a> {
    #[serde(borrow, rename = "type")]
    kind: LossyStr<'a>,
    #[serde(borrow)]
    id: Option<LossyStr<'a>>,
    /// Of a message.
    #[serde(borrow)]
    role: Option<LossyStr<'a>>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "internal_chat_message_metadata_passthrough")]
    metadata: Lenient<WireMetadata<'a>>,
    /// Of a call, or its result.
    #[serde(borrow)]
    call_id: Option<LossyStr<'a>>,
    #[serde(borrow)]
    namespace: Option<LossyStr<'a>>,
    #[serde(borrow)]
    name: Option<LossyStr<'a>>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    input: Option<LossyStr<'a>>,
    #[serde(borrow)]
    action: Option<&'a RawValue>,
    #[serde(borrow)]
    output: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct WireMetadata<'a> {
    #[serde(borrow)]
    content_item_kinds: Option<Vec<LossyStr<'a>>>,
}

#[derive(Deserialize)]
struct WireCompacted<'a> {
    #[serde(borrow)]
    message: Option<JsonText<'a>>,
    #[serde(borrow)]
    replacement_history: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
struct WireEvent<'a> {
    #[serde(borrow, rename = "type")]
    kind: LossyStr<'a>,
    num_turns: Option<u64>,
}

#[derive(Deserialize)]
struct WireOutput<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    content_items: Option<&'a RawValue>,
    success: Option<bool>,
}

/// What a shell has printed, as JSON within the text of a result.
#[derive(Deserialize)]
struct WirePrinted<'a> {
    #[serde(borrow)]
    output: LossyStr<'a>,
}

/// What an item means to a fork.
enum Meaning<'a> {
    /// The user's words, or the host's in the user's name.
    Said {
        parts: Vec<Part<'a>>,
        is_prompt: bool,
    },
    /// A piece of an answer.
    Answer(Vec<Part<'a>>),
    Result {
        call: Cow<'a, str>,
        outcome: Outcome<'a>,
    },
    Nothing,
}

impl<'a> Rollout<'a> {
    fn take(&mut self, line: &WireLine<'a>, reading: &Reading) -> Result<Go, serde_json::Error> {
        let Some(payload) = line.payload else {
            return Ok(Go::On);
        };
        match &*line.kind.0 {
            "response_item" => return self.take_item(payload, reading.asked_in),
            "compacted" => {
                self.open = None;
                if self.asking.is_none() {
                    self.compact(payload)?;
                }
            }
            "event_msg" => self.take_event(payload, reading.has_more)?,
            // One for each answer.
            "token_usage_record" => self.open = None,
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
        item: &'a RawValue,
        asked_in: Option<&str>,
    ) -> Result<Go, serde_json::Error> {
        let mut item = WireItem::read(item)?;
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

    fn take_event(&mut self, event: &'a RawValue, has_more: bool) -> Result<(), serde_json::Error> {
        let event: WireEvent = serde_json::from_str(event.get())?;
        match &*event.kind.0 {
            "task_started" | "turn_started" => self.open = None,
            "thread_rolled_back" if self.asking.is_none() => {
                self.open = None;
                let turns = usize::try_from(event.num_turns.unwrap_or(1)).unwrap_or(usize::MAX);
                self.go_back(turns, has_more);
            }
            _ => {}
        }
        Ok(())
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

    fn into_end(mut self, skipped: Skipped, reading: &Reading) -> End<'a> {
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

impl<'a> WireLine<'a> {
    /// Reads a line: at once if all of it is in order, else field by field.
    fn read(line: &'a str) -> Result<Self, serde_json::Error> {
        // A derived reader would take a list for a struct's fields.
        let is_object = line.trim_ascii_start().starts_with('{');
        if is_object && let Ok(wire) = serde_json::from_str(line) {
            return Ok(wire);
        }
        let line: Fields = serde_json::from_str(line)?;
        Ok(Self {
            kind: line.required("type")?,
            payload: line.lenient("payload").0,
        })
    }
}

impl<'a> WireItem<'a> {
    fn read(item: &'a RawValue) -> Result<Self, serde_json::Error> {
        if item.get().starts_with('{')
            && let Ok(wire) = serde_json::from_str(item.get())
        {
            return Ok(wire);
        }
        let item: Fields = serde_json::from_str(item.get())?;
        Ok(Self {
            kind: item.required("type")?,
            id: item.lenient("id").0,
            role: item.lenient("role").0,
            content: item.lenient("content").0,
            metadata: item.lenient("internal_chat_message_metadata_passthrough"),
            call_id: item.lenient("call_id").0,
            namespace: item.lenient("namespace").0,
            name: item.lenient("name").0,
            arguments: item.lenient("arguments").0,
            input: item.lenient("input").0,
            action: item.lenient("action").0,
            output: item.lenient("output").0,
        })
    }

    fn meaning(self) -> Result<Meaning<'a>, serde_json::Error> {
        Ok(match &*self.kind.0 {
            "message" => self.message()?,
            "function_call" => {
                let input = self
                    .arguments
                    .map_or_else(|| Ok(Text::new("{}")), arguments)?;
                self.call_with(input)?
            }
            "custom_tool_call" => {
                let input = self.input.as_ref().map_or("", |input| &input.0);
                let input = serde_json::json!({ "input": input }).to_string();
                self.call_with(Text::new(input))?
            }
            "local_shell_call" => {
                let input = Text::new(self.action.map_or(Cow::Borrowed("{}"), compact));
                let name = self.name.or(Some(LossyStr(Cow::Borrowed("local_shell"))));
                Self { name, ..self }.call_with(input)?
            }
            "function_call_output" | "custom_tool_call_output" => Meaning::Result {
                outcome: self
                    .output
                    .map_or_else(|| Ok(completed(Text::new(""))), outcome)?,
                call: self.call_id.ok_or_else(|| missing("call_id"))?.0,
            },
            _ => Meaning::Nothing,
        })
    }

    fn message(self) -> Result<Meaning<'a>, serde_json::Error> {
        let role = self.role.ok_or_else(|| missing("role"))?;
        let texts = content::texts(self.content.ok_or_else(|| missing("content"))?)?;
        let kinds = self
            .metadata
            .0
            .and_then(|metadata| metadata.content_item_kinds);
        let kinds = kinds.unwrap_or_default();
        Ok(match &*role.0 {
            "assistant" => Meaning::Answer(texts.into_iter().map(Part::Text).collect()),
            "user" => {
                let texts = texts.into_iter().filter(is_said);
                let parts: Vec<Part> = texts.map(unwrapped).map(Part::Text).collect();
                Meaning::Said {
                    is_prompt: !parts.is_empty(),
                    parts,
                }
            }
            // What hooks add is said to the model; all else is how it is to work.
            "developer" if kinds.iter().any(|kind| kind.0 == OF_A_HOOK) => Meaning::Said {
                parts: texts.into_iter().map(Part::Text).collect(),
                is_prompt: false,
            },
            _ => Meaning::Nothing,
        })
    }

    fn call_with(self, input: Text<'a>) -> Result<Meaning<'a>, serde_json::Error> {
        let name = self.name.ok_or_else(|| missing("name"))?.0;
        let name = match self.namespace.filter(|space| !space.0.is_empty()) {
            None => name,
            Some(space) => {
                let space = space.0.trim_end_matches('_');
                Cow::Owned(format!("{space}__{name}"))
            }
        };
        Ok(Meaning::Answer(vec![Part::Tool(ToolCall {
            id: self.call_id.or(self.id).map(|id| CallId::new(id.0)),
            name: Text::new(name),
            input,
            outcome: Outcome::Pending,
        })]))
    }
}

/// The parameters of a call, which are JSON in a string.
fn arguments(arguments: &RawValue) -> Result<Text<'_>, serde_json::Error> {
    if !arguments.get().starts_with('"') {
        return Ok(Text::new(compact(arguments)));
    }
    let text: LossyStr = serde_json::from_str(arguments.get())?;
    let compacted =
        serde_json::from_str::<&RawValue>(&text.0).map(|json| compact(json).into_owned());
    Ok(Text::new(compacted.unwrap_or(text.0.into_owned())))
}

/// What came of a call: a text, a list of texts, or an object with either.
fn outcome(output: &RawValue) -> Result<Outcome<'_>, serde_json::Error> {
    if !output.get().starts_with('{') {
        return Ok(completed(printed(content::text(output)?)));
    }
    let output: WireOutput = serde_json::from_str(output.get())?;
    let texts = output.content_items.or(output.content);
    let text = printed(texts.map_or_else(|| Ok(Text::new("")), content::text)?);
    Ok(if output.success == Some(false) {
        Outcome::Failed(text)
    } else {
        completed(text)
    })
}

/// Of a text that is JSON with what a shell has printed, that.
fn printed(text: Text<'_>) -> Text<'_> {
    if !text.starts_with("{\"output\":") {
        return text;
    }
    let printed = serde_json::from_str::<WirePrinted>(text.as_str());
    let printed = printed.map(|printed| Text::new(printed.output.0.into_owned()));
    printed.unwrap_or(text)
}

/// Whether a text is what the user, or somebody in the user's name, has to say.
fn is_said(text: &Text) -> bool {
    !text.is_blank() && !PREAMBLES.into_iter().any(|begins| text.starts_with(begins))
}

/// What a hook says when it lets no turn end is in a tag.
fn unwrapped(text: Text<'_>) -> Text<'_> {
    if !text.starts_with("<hook_prompt") {
        return text;
    }
    let inside = text.as_str().trim_end().strip_suffix("</hook_prompt>");
    let inside = inside.and_then(|inside| inside.split_once('>'));
    match inside {
        Some((_, inside)) => Text::new(inside.to_owned()),
        None => text,
    }
}
