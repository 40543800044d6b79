//! OpenCode 2's messages: a page of `GET /api/session/:id/message`, its `context`, or an export.
//!
//! They are flat, one object each, and the kind of a message says what it has. What OpenCode shows
//! its model of each kind is what is read.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    ReadError,
    compact_json::compact,
    lossy::{Fields, Lenient, LossyStr, missing, readable, strict},
    message_list::{self, Shape},
};
use crate::transcript::{
    CallId, Compaction, Message, MessageId, Outcome, Part, Role, Text, ToolCall, Transcript,
};

const SHAPE: Shape = Shape {
    list: "[{\"type\": \"user\", \"text\": …}, …]",
    message: "a `type`",
    wrappers: &["data", "messages"],
};
/// Stands between a summary and what OpenCode keeps beside it, which is text too.
const RECENT: &str = "What was said and done last before this summary, as a record:";

pub(super) fn read(input: &str) -> Result<Transcript<'_>, ReadError> {
    let mut order = Order::default();
    let mut listed = message_list::read(input, &SHAPE, |entry, broken_parts| {
        let read = read_message(entry, broken_parts)?;
        Ok(read.map(|(message, created)| {
            order.take(created);
            message
        }))
    })?;
    if listed.is_page && order.is_newest_first() {
        listed.messages.reverse();
    }
    Ok(Transcript::new(listed.messages, listed.skipped))
}

/// In which order a page is. It does not say so, but nearly every message is younger than the one
/// before it; if their times do not tell, it is the order that OpenCode prefers.
#[derive(Default)]
struct Order {
    last: Option<f64>,
    rising: usize,
    falling: usize,
}

impl Order {
    fn take(&mut self, created: Option<f64>) {
        let Some(created) = created else { return };
        if let Some(last) = self.last.replace(created) {
            self.rising += usize::from(last < created);
            self.falling += usize::from(last > created);
        }
    }

    fn is_newest_first(&self) -> bool {
        self.falling >= self.rising
    }
}

/// Every kind of message in one struct: a tagged enum would copy each message first.
#[derive(Deserialize)]
struct WireMessage<'a> {
    #[serde(borrow, rename = "type")]
    kind: LossyStr<'a>,
    #[serde(borrow, default)]
    id: Lenient<LossyStr<'a>>,
    #[serde(borrow, default)]
    time: Lenient<WireTime<'a>>,
    /// What a user, the host or a skill says.
    #[serde(borrow)]
    text: Option<LossyStr<'a>>,
    /// Skills that a user has attached.
    #[serde(borrow)]
    skills: Option<Vec<WireText<'a>>>,
    /// What an agent says and does.
    #[serde(borrow)]
    content: Option<Vec<WirePart<'a>>>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    /// Of a compaction.
    #[serde(borrow)]
    status: Option<LossyStr<'a>>,
    #[serde(borrow)]
    summary: Option<LossyStr<'a>>,
    #[serde(borrow)]
    recent: Option<LossyStr<'a>>,
    /// Of a command that the user has run.
    #[serde(borrow)]
    command: Option<LossyStr<'a>>,
    #[serde(borrow, default, rename = "shellID")]
    shell_id: Lenient<LossyStr<'a>>,
    #[serde(borrow, default)]
    output: Lenient<WireOutput<'a>>,
    /// Where the session has moved to.
    #[serde(borrow, default)]
    location: Lenient<WireLocation<'a>>,
}

#[derive(Deserialize)]
struct WireTime<'a> {
    #[serde(default)]
    created: Lenient<f64>,
    #[serde(borrow)]
    completed: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct WireText<'a> {
    #[serde(borrow)]
    text: Option<LossyStr<'a>>,
}

#[derive(Deserialize)]
struct WireOutput<'a> {
    #[serde(borrow)]
    output: LossyStr<'a>,
}

#[derive(Deserialize)]
struct WireLocation<'a> {
    #[serde(borrow)]
    directory: LossyStr<'a>,
}

/// A piece of what an agent says and does.
#[derive(Deserialize)]
struct WirePart<'a> {
    #[serde(borrow, rename = "type")]
    kind: LossyStr<'a>,
    #[serde(borrow)]
    text: Option<LossyStr<'a>>,
    #[serde(borrow, default)]
    id: Lenient<LossyStr<'a>>,
    #[serde(borrow)]
    name: Option<LossyStr<'a>>,
    /// Of a call; of a text, whatever its provider wants to see again.
    #[serde(borrow)]
    state: Option<WireState<'a>>,
}

#[derive(Deserialize)]
struct WireState<'a> {
    #[serde(borrow)]
    status: Option<LossyStr<'a>>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Option<Vec<WireText<'a>>>,
    #[serde(borrow)]
    error: Option<WireError<'a>>,
}

#[derive(Deserialize)]
struct WireError<'a> {
    #[serde(borrow)]
    message: Option<LossyStr<'a>>,
}

/// A message, and when it was made.
type Read<'a> = (Message<'a>, Option<f64>);

/// Reads one entry: at once if all of it is in order, else field by field. Nothing for a kind that
/// is not shown to a model, or not known.
fn read_message<'a>(
    entry: &'a RawValue,
    broken_parts: &mut usize,
) -> Result<Option<Read<'a>>, serde_json::Error> {
    if let Some(wire) = strict::<WireMessage>(entry)
        && let Ok(read) = wire.read()
    {
        return Ok(read);
    }
    let entry: Fields = serde_json::from_str(entry.get())?;
    let (wire, broken) = WireMessage::leniently(&entry)?;
    let read = wire.read()?;
    *broken_parts += broken;
    Ok(read)
}

impl<'a> WireMessage<'a> {
    /// Looks only at the fields that its kind has, and counts the parts that are broken.
    fn leniently(entry: &Fields<'a>) -> Result<(Self, usize), serde_json::Error> {
        let kind: LossyStr = entry.required("type")?;
        let (content, broken) = match &*kind.0 {
            "assistant" => readable(entry.required("content")?, WirePart::leniently)?,
            _ => (Vec::new(), 0),
        };
        let is = |kinds: &[&str]| kinds.contains(&&*kind.0);
        let says = is(&["user", "synthetic", "skill"]);
        let message = Self {
            id: entry.lenient("id"),
            time: entry.lenient("time"),
            text: says.then(|| entry.required("text")).transpose()?,
            skills: entry.lenient("skills").0.filter(|_| says),
            content: Some(content),
            error: entry.lenient("error").0,
            status: entry.lenient("status").0,
            summary: entry.lenient("summary").0,
            recent: entry.lenient("recent").0,
            command: entry.lenient("command").0,
            shell_id: entry.lenient("shellID"),
            output: entry.lenient("output"),
            location: entry.lenient("location"),
            kind,
        };
        Ok((message, broken))
    }

    fn read(self) -> Result<Option<Read<'a>>, serde_json::Error> {
        let created = self.time.0.as_ref().and_then(|time| time.created.0);
        Ok(self.message()?.map(|message| (message, created)))
    }

    fn message(mut self) -> Result<Option<Message<'a>>, serde_json::Error> {
        let parts = match &*self.kind.0 {
            "user" | "synthetic" | "skill" => {
                let text = self.text.take().ok_or_else(|| missing("text"))?;
                let skills = self.skills.take().unwrap_or_default().into_iter();
                let texts = skills.filter_map(|skill| skill.text).chain([text]);
                texts.map(said).collect()
            }
            "shell" => vec![self.shell_call().ok_or_else(|| missing("command"))?],
            "location-switched" => match self.location.0.take() {
                Some(to) => vec![said(moved_to(&to))],
                None => return Err(missing("location")),
            },
            "assistant" => {
                let content = self.content.take().ok_or_else(|| missing("content"))?;
                return Ok(Some(self.of_agent(content)?));
            }
            "compaction" => return Ok(Some(self.checkpoint()?)),
            _ => return Ok(None),
        };
        Ok(Some(Message {
            id: self.id.0.map(|id| MessageId::new(id.0)),
            role: Role::User,
            finished: true,
            compaction: None,
            parts,
        }))
    }

    fn of_agent(self, content: Vec<WirePart<'a>>) -> Result<Message<'a>, serde_json::Error> {
        let parts = content
            .into_iter()
            .filter_map(|part| part.part().transpose());
        Ok(Message {
            id: self.id.0.map(|id| MessageId::new(id.0)),
            role: Role::Assistant,
            finished: self.error.is_some()
                || self.time.0.is_some_and(|time| time.completed.is_some()),
            compaction: None,
            parts: parts.collect::<Result<_, _>>()?,
        })
    }

    /// The summary of what came before and, as a text, the tail of it that OpenCode keeps.
    fn checkpoint(self) -> Result<Message<'a>, serde_json::Error> {
        let complete = self.status.is_some_and(|status| status.0 == "completed");
        // Everything before would be lost with a summary that cannot be read.
        if complete && self.summary.is_none() {
            return Err(missing("summary"));
        }
        let mut parts = Vec::new();
        parts.extend(self.summary.map(said));
        if let Some(recent) = self.recent.filter(|recent| !recent.0.trim().is_empty()) {
            parts.push(said(LossyStr(Cow::Borrowed(RECENT))));
            parts.push(said(recent));
        }
        Ok(Message {
            id: self.id.0.map(|id| MessageId::new(id.0)),
            role: Role::Assistant,
            finished: true,
            compaction: Some(Compaction::Checkpoint { complete }),
            parts,
        })
    }

    /// A command that the user has run, as the call that it is: its output is cut like any other.
    fn shell_call(&mut self) -> Option<Part<'a>> {
        let command = self.command.take()?;
        let input = serde_json::json!({ "command": command.0 }).to_string();
        let has_ended = self
            .time
            .0
            .as_ref()
            .is_some_and(|time| time.completed.is_some());
        Some(Part::Tool(ToolCall {
            id: self.shell_id.0.take().map(|id| CallId::new(id.0)),
            name: Text::new("shell"),
            input: Text::new(input),
            outcome: match self.output.0.take() {
                Some(output) => Outcome::Completed(Text::new(output.output.0)),
                None if has_ended => Outcome::Completed(Text::new("")),
                None => Outcome::Pending,
            },
        }))
    }
}

fn said(text: LossyStr<'_>) -> Part<'_> {
    Part::Text(Text::new(text.0))
}

fn moved_to(location: &WireLocation) -> LossyStr<'static> {
    let to = &location.directory.0;
    LossyStr(Cow::Owned(format!(
        "The working directory has been changed to {to}."
    )))
}

impl<'a> WirePart<'a> {
    /// Looks only at the fields that its kind has.
    fn leniently(part: &'a RawValue) -> Result<Self, serde_json::Error> {
        let part: Fields = serde_json::from_str(part.get())?;
        let kind: LossyStr = part.required("type")?;
        let (is_text, is_tool) = (kind.0 == "text", kind.0 == "tool");
        Ok(Self {
            text: is_text.then(|| part.required("text")).transpose()?,
            name: is_tool.then(|| part.required("name")).transpose()?,
            state: is_tool.then(|| WireState::leniently(&part)).transpose()?,
            id: part.lenient("id"),
            kind,
        })
    }

    /// What a child inherits of it, if anything.
    fn part(self) -> Result<Option<Part<'a>>, serde_json::Error> {
        Ok(match &*self.kind.0 {
            "text" => Some(said(self.text.ok_or_else(|| missing("text"))?)),
            "tool" => {
                let state = self.state.ok_or_else(|| missing("state"))?;
                Some(Part::Tool(ToolCall {
                    id: self.id.0.map(|id| CallId::new(id.0)),
                    name: Text::new(self.name.ok_or_else(|| missing("name"))?.0),
                    input: Text::new(state.input.map_or(Cow::Borrowed("{}"), compact)),
                    outcome: state.outcome()?,
                }))
            }
            _ => None,
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
            content: if failed {
                state.lenient("content").0
            } else {
                state.optional("content")?
            },
            error: if completed {
                None
            } else {
                state.optional("error")?
            },
            status: Some(status),
        })
    }

    fn outcome(self) -> Result<Outcome<'a>, serde_json::Error> {
        let status = self.status.ok_or_else(|| missing("status"))?;
        let error = self.error.map(|error| error.message.unwrap_or_default());
        Ok(match (&*status.0, self.content, error) {
            ("streaming" | "running", ..) => Outcome::Pending,
            // What a call had printed when it failed comes after the reason.
            ("error", content, error) => Outcome::Failed(joined(error, content)),
            ("completed", content, _) => match joined(None, content) {
                text if text.as_str() == Outcome::CLEARED => Outcome::Cleared,
                text => Outcome::Completed(text),
            },
            // A state of a later OpenCode: what it holds says what it is.
            (_, Some(content), _) => Outcome::Completed(joined(None, Some(content))),
            (_, None, Some(error)) => Outcome::Failed(joined(Some(error), None)),
            (_, None, None) => Outcome::Pending,
        })
    }
}

/// The texts of a result, one below the other. A single one, the usual case, is not copied.
fn joined<'a>(first: Option<LossyStr<'a>>, content: Option<Vec<WireText<'a>>>) -> Text<'a> {
    let content = content.into_iter().flatten().filter_map(|item| item.text);
    let mut texts = first.into_iter().chain(content);
    let mut text = texts.next().unwrap_or_default().0;
    for more in texts {
        let text = text.to_mut();
        text.push('\n');
        text.push_str(&more.0);
    }
    Text::new(text)
}
