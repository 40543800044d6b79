//! OpenCode's message list, as `GET /session/:id/message` answers and `opencode export` wraps it.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{self, IgnoredAny},
};
use serde_json::value::RawValue;

use super::{ReadError, lossy::LossyStr};
use crate::transcript::{
    CallId, Compaction, Message, MessageId, Outcome, Part, Role, Skipped, Text, ToolCall,
    Transcript,
};

/// What OpenCode shows the model in place of a result it has cleared.
const CLEARED: &str = "[Old tool result content cleared]";

pub(super) fn read(input: &str) -> Result<Transcript<'_>, ReadError> {
    let input = input.trim_start_matches('\u{feff}');
    if input.trim().is_empty() {
        return Err(ReadError::Empty);
    }
    let mut found = Found::default();
    let mut json = serde_json::Deserializer::from_str(input);
    let parsed = json
        .deserialize_any(SessionVisitor(&mut found))
        .and_then(|()| json.end());
    match parsed {
        Ok(()) => found.into_transcript(),
        Err(error) => Err(found.judge(error)),
    }
}

/// What has been read so far; it outlives a parse error, to say how far that came.
#[derive(Default)]
struct Found<'a> {
    messages: Vec<Message<'a>>,
    skipped: Skipped,
    not_a_list: Option<&'static str>,
    first_reason: Option<serde_json::Error>,
}

impl<'a> Found<'a> {
    fn entries(&self) -> usize {
        self.messages.len() + self.skipped.messages
    }

    fn take(&mut self, entry: &'a RawValue) {
        match read_message(entry, &mut self.skipped.parts) {
            Ok(message) => self.messages.push(message),
            Err(reason) => {
                self.skipped.messages += 1;
                self.first_reason.get_or_insert(reason);
            }
        }
    }

    fn into_transcript(self) -> Result<Transcript<'a>, ReadError> {
        match self.first_reason {
            Some(reason) if self.messages.is_empty() => Err(ReadError::NoMessages {
                entries: self.skipped.messages,
                reason,
            }),
            _ => Ok(Transcript::new(self.messages, self.skipped)),
        }
    }

    fn judge(&self, error: serde_json::Error) -> ReadError {
        if let Some(found) = self.not_a_list {
            return ReadError::NotAList { found };
        }
        if error.is_eof() {
            return ReadError::Truncated {
                message: self.entries() + 1,
                line: error.line(),
                column: error.column(),
            };
        }
        ReadError::Syntax { source: error }
    }
}

/// The list itself, or an object that holds it as `messages`.
struct SessionVisitor<'f, 'a>(&'f mut Found<'a>);

impl<'de> SessionVisitor<'_, 'de> {
    fn refuse<E: de::Error>(self, found: &'static str) -> Result<(), E> {
        self.0.not_a_list = Some(found);
        Err(E::custom("not a list of messages"))
    }
}

impl<'de> de::Visitor<'de> for SessionVisitor<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a list of messages")
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(entry) = list.next_element::<&'de RawValue>()? {
            self.0.take(entry);
        }
        Ok(())
    }

    fn visit_map<A: de::MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        let mut listed = false;
        while let Some(key) = object.next_key::<LossyStr>()? {
            if key.0 == "messages" && !listed {
                object.next_value_seed(MessagesSeed(&mut *self.0))?;
                listed = true;
            } else {
                object.next_value::<IgnoredAny>()?;
            }
        }
        if listed {
            Ok(())
        } else {
            self.refuse("an object without `messages`")
        }
    }

    fn visit_str<E: de::Error>(self, _: &str) -> Result<(), E> {
        self.refuse("a string")
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<(), E> {
        self.refuse("a number")
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<(), E> {
        self.refuse("a number")
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<(), E> {
        self.refuse("a number")
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<(), E> {
        self.refuse("true or false")
    }

    fn visit_unit<E: de::Error>(self) -> Result<(), E> {
        self.refuse("null")
    }
}

struct MessagesSeed<'f, 'a>(&'f mut Found<'a>);

impl<'de> de::DeserializeSeed<'de> for MessagesSeed<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(SessionVisitor(self.0))
    }
}

/// A message as OpenCode writes it; `P` is how its parts are read.
#[derive(Deserialize)]
struct WireMessage<'a, P> {
    #[serde(borrow)]
    info: WireInfo<'a>,
    #[serde(bound(deserialize = "P: Deserialize<'de>"))]
    parts: Vec<P>,
}

#[derive(Deserialize)]
struct WireInfo<'a> {
    role: WireRole,
    #[serde(borrow)]
    id: Option<LossyStr<'a>>,
    #[serde(borrow, rename = "parentID")]
    parent_id: Option<LossyStr<'a>>,
    /// `true` marks an agent's compaction summary; a user's is an object about diffs.
    #[serde(borrow)]
    summary: Option<&'a RawValue>,
    #[serde(borrow)]
    finish: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    time: Option<WireTime<'a>>,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum WireRole {
    User,
    Assistant,
}

#[derive(Deserialize)]
struct WireTime<'a> {
    #[serde(borrow)]
    completed: Option<&'a RawValue>,
    /// When OpenCode cleared a tool's result.
    #[serde(borrow)]
    compacted: Option<&'a RawValue>,
}

/// Every kind of part in one struct: a tagged enum would copy each part first.
#[derive(Deserialize)]
struct WirePart<'a> {
    #[serde(borrow, rename = "type")]
    kind: LossyStr<'a>,
    #[serde(borrow)]
    text: Option<LossyStr<'a>>,
    #[serde(borrow)]
    ignored: Option<&'a RawValue>,
    #[serde(borrow)]
    tool: Option<LossyStr<'a>>,
    #[serde(borrow, rename = "callID")]
    call_id: Option<LossyStr<'a>>,
    #[serde(borrow)]
    state: Option<WireState<'a>>,
    #[serde(borrow)]
    tail_start_id: Option<LossyStr<'a>>,
}

#[derive(Deserialize)]
struct WireState<'a> {
    #[serde(borrow)]
    status: LossyStr<'a>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    output: Option<LossyStr<'a>>,
    #[serde(borrow)]
    error: Option<LossyStr<'a>>,
    #[serde(borrow)]
    time: Option<WireTime<'a>>,
}

#[derive(Deserialize)]
struct WireKind<'a> {
    #[serde(borrow, rename = "type")]
    kind: LossyStr<'a>,
}

/// What a part means to a fork.
enum Meaning<'a> {
    Inherited(Part<'a>),
    CompactionRequest { tail_start: Option<MessageId<'a>> },
    Nothing,
}

/// Reads one entry, at once if all its parts are in order, else part by part.
fn read_message<'a>(
    entry: &'a RawValue,
    broken_parts: &mut usize,
) -> Result<Message<'a>, serde_json::Error> {
    if let Ok(wire) = serde_json::from_str::<WireMessage<WirePart>>(entry.get())
        && let Ok(meanings) = wire.parts.into_iter().map(WirePart::meaning).collect()
    {
        return Ok(message(wire.info, meanings));
    }
    let wire = serde_json::from_str::<WireMessage<&RawValue>>(entry.get())?;
    let mut meanings = Vec::with_capacity(wire.parts.len());
    let mut broken = Vec::new();
    for part in wire.parts {
        match read_part(part) {
            Ok(meaning) => meanings.push(meaning),
            Err(reason) => broken.push(reason),
        }
    }
    match broken.pop() {
        // A message of which nothing can be read is no message.
        Some(reason) if meanings.is_empty() => Err(reason),
        last => {
            *broken_parts += broken.len() + usize::from(last.is_some());
            Ok(message(wire.info, meanings))
        }
    }
}

fn read_part(part: &RawValue) -> Result<Meaning<'_>, serde_json::Error> {
    let WireKind { kind } = serde_json::from_str(part.get())?;
    match &*kind.0 {
        "text" | "tool" | "compaction" => {
            serde_json::from_str::<WirePart>(part.get()).and_then(WirePart::meaning)
        }
        _ => Ok(Meaning::Nothing),
    }
}

fn message<'a>(info: WireInfo<'a>, meanings: Vec<Meaning<'a>>) -> Message<'a> {
    let mut parts = Vec::with_capacity(meanings.len());
    let mut request = None;
    for meaning in meanings {
        match meaning {
            Meaning::Inherited(part) => parts.push(part),
            Meaning::CompactionRequest { tail_start } => {
                request = Some(Compaction::Request { tail_start });
            }
            Meaning::Nothing => {}
        }
    }
    let (role, compaction) = match info.role {
        WireRole::User => (Role::User, request),
        WireRole::Assistant if info.summary.is_some_and(is_true) => {
            let summary = Compaction::Summary {
                request: info.parent_id.map(|id| MessageId::new(id.0)),
                complete: info.finish.is_some() && info.error.is_none(),
            };
            (Role::Assistant, Some(summary))
        }
        WireRole::Assistant => (Role::Assistant, None),
    };
    Message {
        id: info.id.map(|id| MessageId::new(id.0)),
        role,
        finished: info.error.is_some() || info.time.is_some_and(|time| time.completed.is_some()),
        compaction,
        parts,
    }
}

impl<'a> WirePart<'a> {
    fn meaning(self) -> Result<Meaning<'a>, serde_json::Error> {
        let missing = <serde_json::Error as de::Error>::missing_field;
        Ok(match &*self.kind.0 {
            "text" if self.ignored.is_some_and(is_true) => Meaning::Nothing,
            "text" => {
                let text = self.text.ok_or_else(|| missing("text"))?;
                Meaning::Inherited(Part::Text(Text::new(text.0)))
            }
            "tool" => {
                let state = self.state.ok_or_else(|| missing("state"))?;
                Meaning::Inherited(Part::Tool(ToolCall {
                    id: self.call_id.map(|id| CallId::new(id.0)),
                    name: Text::new(self.tool.ok_or_else(|| missing("tool"))?.0),
                    input: Text::new(state.input.map_or(Cow::Borrowed("{}"), compact)),
                    outcome: state.outcome(),
                }))
            }
            "compaction" => Meaning::CompactionRequest {
                tail_start: self.tail_start_id.map(|id| MessageId::new(id.0)),
            },
            _ => Meaning::Nothing,
        })
    }
}

impl<'a> WireState<'a> {
    fn outcome(self) -> Outcome<'a> {
        let cleared = self.time.is_some_and(|time| time.compacted.is_some());
        let text = |found: Option<LossyStr<'a>>| Text::new(found.unwrap_or_default().0);
        match (&*self.status.0, self.output, self.error) {
            ("pending" | "running", ..) => Outcome::Pending,
            ("error", _, error) => Outcome::Failed(text(error)),
            ("completed", ..) if cleared => Outcome::Cleared,
            ("completed", Some(output), _) if output.0 == CLEARED => Outcome::Cleared,
            ("completed", output, _) => Outcome::Completed(text(output)),
            // A state of a later OpenCode: what it holds says what it is.
            (_, Some(output), _) => Outcome::Completed(text(Some(output))),
            (_, None, Some(error)) => Outcome::Failed(text(Some(error))),
            (_, None, None) => Outcome::Pending,
        }
    }
}

fn is_true(value: &RawValue) -> bool {
    value.get() == "true"
}

/// Drops the white space between tokens. Nothing is parsed into a tree, so that
/// depth costs nothing and the order of keys stays.
fn compact(json: &RawValue) -> Cow<'_, str> {
    let json = json.get();
    let mut in_string = false;
    let mut escaped = false;
    let mut keep = |c: char| {
        if in_string {
            in_string = escaped || c != '"';
            escaped = !escaped && c == '\\';
            return true;
        }
        in_string = c == '"';
        !c.is_ascii_whitespace()
    };
    match json.find(|c| !keep(c)) {
        None => Cow::Borrowed(json),
        Some(at) => {
            let (tight, rest) = json.split_at(at);
            let mut compacted = String::with_capacity(json.len());
            compacted.push_str(tight);
            // The closure has already judged the character at `at`: white space.
            compacted.extend(rest.chars().skip(1).filter(|c| keep(*c)));
            Cow::Owned(compacted)
        }
    }
}
