//! The items of a conversation, and what each means to a fork.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    read::{
        compact_json::compact,
        content::{self, completed},
        lossy::{Fields, LossyStr, missing, strict},
    },
    transcript::{CallId, Outcome, Part, Text, ToolCall},
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

/// Every kind of item in one struct, and events too: a tagged enum would copy each item first.
#[derive(Deserialize)]
pub(super) struct WireItem<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Option<LossyStr<'a>>,
    #[serde(borrow)]
    pub(super) id: Option<LossyStr<'a>>,
    /// Of a message.
    #[serde(borrow)]
    role: Option<LossyStr<'a>>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow, rename = "internal_chat_message_metadata_passthrough")]
    metadata: Option<&'a RawValue>,
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
    /// Of an event.
    pub(super) num_turns: Option<u64>,
}

#[derive(Deserialize)]
struct WireMetadata<'a> {
    #[serde(borrow)]
    content_item_kinds: Option<Vec<LossyStr<'a>>>,
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
pub(super) enum Meaning<'a> {
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

impl<'a> WireItem<'a> {
    pub(super) fn read(item: &'a RawValue) -> Result<Self, serde_json::Error> {
        if let Some(wire) = strict(item) {
            return Ok(wire);
        }
        let item: Fields = serde_json::from_str(item.get())?;
        Ok(Self {
            kind: Some(item.required("type")?),
            id: item.lenient("id").0,
            role: item.lenient("role").0,
            content: item.lenient("content").0,
            metadata: item.lenient("internal_chat_message_metadata_passthrough").0,
            call_id: item.lenient("call_id").0,
            namespace: item.lenient("namespace").0,
            name: item.lenient("name").0,
            arguments: item.lenient("arguments").0,
            input: item.lenient("input").0,
            action: item.lenient("action").0,
            output: item.lenient("output").0,
            num_turns: None,
        })
    }

    pub(super) fn meaning(self) -> Result<Meaning<'a>, serde_json::Error> {
        let kind = self.kind.as_ref().ok_or_else(|| missing("type"))?;
        Ok(match &*kind.0 {
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
            "developer" if self.metadata.is_some_and(is_of_a_hook) => Meaning::Said {
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

fn is_of_a_hook(metadata: &RawValue) -> bool {
    let metadata = serde_json::from_str::<WireMetadata>(metadata.get()).ok();
    let mut kinds = metadata
        .and_then(|metadata| metadata.content_item_kinds)
        .into_iter()
        .flatten();
    kinds.any(|kind| kind.0 == OF_A_HOOK)
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
