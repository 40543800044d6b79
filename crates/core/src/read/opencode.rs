//! OpenCode's message list, as `GET /session/:id/message` answers and `opencode export` wraps it.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    ReadError,
    compact_json::compact,
    lossy::{Fields, JsonText, Lenient, LossyStr, missing, readable, strict},
    message_list::{self, Shape},
};
use crate::transcript::{
    CallId, Compaction, Message, MessageId, Outcome, Part, Role, Text, ToolCall, Transcript,
};

const SHAPE: Shape = Shape {
    list: "[{\"info\": …, \"parts\": […]}, …]",
    message: "`info.role` and `parts`",
    wrappers: &["messages"],
};

pub(super) fn read(input: &str) -> Result<Transcript<'_>, ReadError> {
    let listed = message_list::read(input, &SHAPE, |entry, broken_parts| {
        read_message(entry, broken_parts).map(Some)
    })?;
    Ok(Transcript::new(listed.messages, listed.skipped))
}

/// A message as OpenCode writes it.
#[derive(Deserialize)]
struct WireMessage<'a> {
    #[serde(borrow)]
    info: WireInfo<'a>,
    #[serde(borrow)]
    parts: Vec<WirePart<'a>>,
}

#[derive(Deserialize)]
struct WireInfo<'a> {
    role: WireRole,
    #[serde(borrow, default)]
    id: Lenient<LossyStr<'a>>,
    #[serde(borrow, default, rename = "parentID")]
    parent_id: Lenient<LossyStr<'a>>,
    /// `true` marks an agent's compaction summary; a user's is an object about diffs.
    #[serde(borrow)]
    summary: Option<&'a RawValue>,
    #[serde(borrow)]
    finish: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    time: Lenient<WireTime<'a>>,
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
    text: Option<JsonText<'a>>,
    #[serde(borrow)]
    ignored: Option<&'a RawValue>,
    #[serde(borrow)]
    tool: Option<LossyStr<'a>>,
    #[serde(borrow, default, rename = "callID")]
    call_id: Lenient<LossyStr<'a>>,
    #[serde(borrow)]
    state: Option<WireState<'a>>,
    #[serde(borrow, default)]
    tail_start_id: Lenient<LossyStr<'a>>,
}

#[derive(Deserialize)]
struct WireState<'a> {
    #[serde(borrow)]
    status: LossyStr<'a>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    output: Option<JsonText<'a>>,
    #[serde(borrow)]
    error: Option<JsonText<'a>>,
    #[serde(borrow, default)]
    time: Lenient<WireTime<'a>>,
}

/// What a part means to a fork.
enum Meaning<'a> {
    Inherited(Part<'a>),
    CompactionRequest { tail_start: Option<MessageId<'a>> },
    Nothing,
}

/// Reads one entry: at once if all of it is in order, else field by field.
fn read_message<'a>(
    entry: &'a RawValue,
    broken_parts: &mut usize,
) -> Result<Message<'a>, serde_json::Error> {
    if let Some(wire) = strict::<WireMessage>(entry)
        && let Ok(meanings) = wire.parts.into_iter().map(WirePart::meaning).collect()
    {
        return Ok(message(wire.info, meanings));
    }
    let entry: Fields = serde_json::from_str(entry.get())?;
    let info = WireInfo::leniently(&entry.required("info")?)?;
    let (meanings, broken) = readable(entry.required("parts")?, |part| {
        WirePart::leniently(part).and_then(WirePart::meaning)
    })?;
    *broken_parts += broken;
    Ok(message(info, meanings))
}

impl<'a> WireInfo<'a> {
    fn leniently(info: &Fields<'a>) -> Result<Self, serde_json::Error> {
        Ok(Self {
            role: info.required("role")?,
            id: info.lenient("id"),
            parent_id: info.lenient("parentID"),
            summary: info.lenient("summary").0,
            finish: info.lenient("finish").0,
            error: info.lenient("error").0,
            time: info.lenient("time"),
        })
    }
}

impl<'a> WirePart<'a> {
    /// Looks only at the fields that its kind has.
    fn leniently(part: &'a RawValue) -> Result<Self, serde_json::Error> {
        let part: Fields = serde_json::from_str(part.get())?;
        let kind: LossyStr = part.required("type")?;
        let (is_text, is_tool) = (kind.0 == "text", kind.0 == "tool");
        Ok(Self {
            text: is_text
                .then(|| part.required::<LossyStr>("text"))
                .transpose()?
                .map(Into::into),
            tool: is_tool.then(|| part.required("tool")).transpose()?,
            state: is_tool.then(|| WireState::leniently(&part)).transpose()?,
            ignored: part.lenient("ignored").0,
            call_id: part.lenient("callID"),
            tail_start_id: part.lenient("tail_start_id"),
            kind,
        })
    }
}

impl<'a> WireState<'a> {
    fn leniently(part: &Fields<'a>) -> Result<Self, serde_json::Error> {
        let state: Fields = part.required("state")?;
        let status: LossyStr = state.required("status")?;
        let (completed, failed) = (status.0 == "completed", status.0 == "error");
        Ok(Self {
            input: state.lenient("input").0,
            output: if failed {
                None
            } else {
                state.optional::<LossyStr>("output")?.map(Into::into)
            },
            error: if completed {
                None
            } else {
                state.optional::<LossyStr>("error")?.map(Into::into)
            },
            time: state.lenient("time"),
            status,
        })
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
                request: info.parent_id.0.map(|id| MessageId::new(id.0)),
                complete: info.finish.is_some() && info.error.is_none(),
            };
            (Role::Assistant, Some(summary))
        }
        WireRole::Assistant => (Role::Assistant, None),
    };
    Message {
        id: info.id.0.map(|id| MessageId::new(id.0)),
        role,
        finished: info.error.is_some() || info.time.0.is_some_and(|time| time.completed.is_some()),
        compaction,
        parts,
    }
}

impl<'a> WirePart<'a> {
    fn meaning(self) -> Result<Meaning<'a>, serde_json::Error> {
        Ok(match &*self.kind.0 {
            "text" if self.ignored.is_some_and(is_true) => Meaning::Nothing,
            "text" => {
                let text = self.text.ok_or_else(|| missing("text"))?;
                Meaning::Inherited(Part::Text(text.0))
            }
            "tool" => {
                let state = self.state.ok_or_else(|| missing("state"))?;
                Meaning::Inherited(Part::Tool(ToolCall {
                    id: self.call_id.0.map(|id| CallId::new(id.0)),
                    name: Text::new(self.tool.ok_or_else(|| missing("tool"))?.0),
                    input: Text::new(state.input.map_or(Cow::Borrowed("{}"), compact)),
                    outcome: state.outcome(),
                }))
            }
            "compaction" => Meaning::CompactionRequest {
                tail_start: self.tail_start_id.0.map(|id| MessageId::new(id.0)),
            },
            _ => Meaning::Nothing,
        })
    }
}

impl<'a> WireState<'a> {
    fn outcome(self) -> Outcome<'a> {
        let cleared = self.time.0.is_some_and(|time| time.compacted.is_some());
        let text = |found: Option<JsonText<'a>>| found.map_or_else(|| Text::new(""), |text| text.0);
        match (&*self.status.0, self.output, self.error) {
            ("pending" | "running", ..) => Outcome::Pending,
            ("error", _, error) => Outcome::Failed(text(error)),
            ("completed", ..) if cleared => Outcome::Cleared,
            ("completed", Some(output), _) if output.0.is(Outcome::CLEARED) => Outcome::Cleared,
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
