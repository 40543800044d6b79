//! Folds the events of a stream into an answer.

use std::{borrow::Cow, collections::BTreeMap};

use asyncagents_core::agent::{Block, Call, Stop, Usage};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, value::RawValue};

use crate::{
    answer_limits::{AnswerLimits, Size},
    request::{AnswerEvent, OnEvent},
    wire::{Fold, Folded, Lenient, Step, StreamError, raw},
};

/// An answer in the making.
pub(crate) struct Answering {
    origin: String,
    open: Vec<(u64, Open)>,
    size: Size,
    stop: Option<Stop>,
    usage: Usage,
    ended: bool,
}

/// A block in the making.
enum Open {
    Text(String),
    Thinking {
        text: String,
        signature: String,
        /// What the API may add to such blocks one day.
        more: Map<String, Value>,
    },
    Call {
        id: String,
        name: String,
        input: String,
        /// What it began with, for servers that send it whole.
        at_first: String,
    },
    Other {
        at_first: String,
        kind: String,
        /// What was added to which field.
        added: BTreeMap<String, String>,
    },
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type", default, borrow)]
    kind: Cow<'a, str>,
    #[serde(default)]
    index: u64,
    #[serde(borrow)]
    content_block: Option<&'a RawValue>,
    #[serde(borrow)]
    delta: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Opening<'a> {
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Closing {
    stop_reason: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Start {
    #[serde(rename = "type")]
    kind: String,
    text: Lenient<String>,
    id: Lenient<String>,
    name: Lenient<String>,
    input: Option<Box<RawValue>>,
}

#[derive(Deserialize, Default)]
struct Tokens {
    input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    output_tokens: Option<u64>,
}

impl Answering {
    pub(crate) fn new(origin: String, limits: AnswerLimits) -> Self {
        Self {
            origin,
            open: Vec::new(),
            size: Size::within(limits),
            stop: None,
            usage: Usage::default(),
            ended: false,
        }
    }

    fn begin(
        &mut self,
        index: u64,
        block: &RawValue,
        on_event: OnEvent<'_>,
    ) -> Result<(), StreamError> {
        self.size.grow_block(block.get().len())?;
        let start: Start = read(block).unwrap_or_default();
        let open = match start.kind.as_str() {
            "text" => {
                let text = start.text.0.unwrap_or_default();
                if !text.is_empty() {
                    on_event(AnswerEvent::Text(&text));
                }
                Open::Text(text)
            }
            "thinking" => {
                let mut more: Map<String, Value> = serde_json::from_str(block.get())?;
                more.remove("type");
                let mut take = |name| match more.remove(name) {
                    Some(Value::String(text)) => text,
                    _ => String::new(),
                };
                let (text, signature) = (take("thinking"), take("signature"));
                Open::Thinking {
                    text,
                    signature,
                    more,
                }
            }
            "tool_use" => {
                let name = start.name.0.unwrap_or_default();
                on_event(AnswerEvent::Call(&name));
                let input = start.input.map(|input| input.get().to_owned());
                self.size
                    .check_arguments(input.as_ref().map_or(0, String::len))?;
                Open::Call {
                    id: start.id.0.unwrap_or_default(),
                    name,
                    input: String::new(),
                    at_first: input.unwrap_or_default(),
                }
            }
            _ => Open::Other {
                at_first: block.get().to_owned(),
                kind: start.kind,
                added: BTreeMap::new(),
            },
        };
        self.open.push((index, open));
        Ok(())
    }

    fn grow(
        &mut self,
        index: u64,
        delta: &RawValue,
        on_event: OnEvent<'_>,
    ) -> Result<(), StreamError> {
        let delta: Map<String, Value> = serde_json::from_str(delta.get())?;
        let text = |name: &str| delta.get(name).and_then(Value::as_str);
        let open = self.open.iter_mut().rev().find(|(at, _)| *at == index);
        let Some((_, open)) = open else {
            return Err(StreamError::Malformed(
                "a piece of a block that never began".to_owned(),
            ));
        };
        match open {
            Open::Text(whole) => {
                if let Some(more) = text("text") {
                    self.size.grow(more.len())?;
                    on_event(AnswerEvent::Text(more));
                    whole.push_str(more);
                }
            }
            Open::Thinking {
                text: thought,
                signature,
                ..
            } => {
                if let Some(more) = text("thinking") {
                    self.size.grow(more.len())?;
                    on_event(AnswerEvent::Reasoning(more));
                    thought.push_str(more);
                }
                let more = text("signature").unwrap_or_default();
                self.size.grow(more.len())?;
                signature.push_str(more);
            }
            Open::Call { input, .. } => {
                on_event(AnswerEvent::KeepAlive);
                let more = text("partial_json").unwrap_or_default();
                self.size.grow_arguments(input.len(), more.len())?;
                input.push_str(more);
            }
            Open::Other { added, .. } => {
                on_event(AnswerEvent::KeepAlive);
                for (name, more) in &delta {
                    if let (true, Some(more)) = (name != "type", more.as_str()) {
                        if !added.contains_key(name) {
                            self.size.grow_block(name.len())?;
                        }
                        self.size.grow(more.len())?;
                        added.entry(name.clone()).or_default().push_str(more);
                    }
                }
            }
        }
        Ok(())
    }

    fn count(&mut self, tokens: Option<&RawValue>) {
        let tokens: Tokens = tokens.and_then(read).unwrap_or_default();
        // Each event repeats what is known by then, so the greatest figure is the last.
        let most = |known: u64, reported: Option<u64>| known.max(reported.unwrap_or(0));
        self.usage = Usage {
            input: most(self.usage.input, tokens.input_tokens),
            cache_read: most(self.usage.cache_read, tokens.cache_read_input_tokens),
            cache_write: most(self.usage.cache_write, tokens.cache_creation_input_tokens),
            output: most(self.usage.output, tokens.output_tokens),
        };
    }
}

impl Fold for Answering {
    fn event(&mut self, data: &str, on_event: OnEvent<'_>) -> Result<Step, StreamError> {
        let event: Event<'_> = serde_json::from_str(data)?;
        match &*event.kind {
            "message_start" => {
                let message: Option<Opening<'_>> = event.message.and_then(read);
                self.count(message.and_then(|message| message.usage));
                on_event(AnswerEvent::KeepAlive);
            }
            "content_block_start" => {
                if let Some(block) = event.content_block {
                    self.begin(event.index, block, on_event)?;
                }
            }
            "content_block_delta" => {
                if let Some(delta) = event.delta {
                    self.grow(event.index, delta, on_event)?;
                }
            }
            "message_delta" => {
                let delta: Option<Closing> = event.delta.and_then(read);
                if let Some(reason) = delta.and_then(|delta| delta.stop_reason) {
                    self.stop = Some(stop(&reason));
                }
                self.count(event.usage);
            }
            "message_stop" => {
                self.ended = true;
                return Ok(Step::Done);
            }
            "error" => return Err(StreamError::provider_error_in(data)?),
            // Pings, ends of blocks, and what may come one day.
            _ => on_event(AnswerEvent::KeepAlive),
        }
        Ok(Step::More)
    }

    fn size(&self) -> usize {
        self.size.bytes()
    }

    fn is_whole(&self) -> bool {
        self.ended
    }

    fn folded(self: Box<Self>) -> Folded {
        let origin = self.origin;
        let blocks = self.open.into_iter().map(|(_, open)| closed(open, &origin));
        let stop = self.stop.unwrap_or(Stop::Finished);
        Folded::new(blocks.collect(), stop, self.usage)
    }
}

/// Nothing, if it is not what was expected.
fn read<'a, T: Deserialize<'a>>(json: &'a RawValue) -> Option<T> {
    serde_json::from_str(json.get()).ok()
}

fn stop(reason: &str) -> Stop {
    match reason {
        "tool_use" => Stop::Tools,
        "max_tokens" | "model_context_window_exceeded" => Stop::Length,
        "refusal" => Stop::Refused,
        _ => Stop::Finished,
    }
}

fn closed(open: Open, origin: &str) -> Block {
    let raw = |json| raw(origin, json);
    match open {
        Open::Text(text) => Block::Text(text),
        Open::Thinking {
            text,
            signature,
            more,
        } => {
            let raw = thinking_block(&text, &signature, &more).ok().map(raw);
            Block::Reasoning { text, raw }
        }
        Open::Call {
            id,
            name,
            input,
            at_first,
        } => Block::Call(Call {
            id,
            name,
            input: if input.is_empty() { at_first } else { input },
        }),
        Open::Other {
            at_first,
            kind,
            added,
        } => {
            let json = raw(with_added(at_first, added));
            match kind.as_str() {
                "redacted_thinking" => Block::Reasoning {
                    text: String::new(),
                    raw: Some(json),
                },
                _ => Block::Other(json),
            }
        }
    }
}

/// The block as the API wants it back: its signature holds for exactly this text.
fn thinking_block(
    thinking: &str,
    signature: &str,
    more: &Map<String, Value>,
) -> Result<String, serde_json::Error> {
    #[derive(Serialize)]
    struct ThinkingBlock<'a> {
        #[serde(rename = "type")]
        kind: &'static str,
        thinking: &'a str,
        #[serde(skip_serializing_if = "str::is_empty")]
        signature: &'a str,
        #[serde(flatten)]
        more: &'a Map<String, Value>,
    }
    serde_json::to_string(&ThinkingBlock {
        kind: "thinking",
        thinking,
        signature,
        more,
    })
}

/// An unknown block as it came, with the pieces that came after it put into their fields.
fn with_added(at_first: String, added: BTreeMap<String, String>) -> String {
    if added.is_empty() {
        return at_first;
    }
    let Ok(mut block) = serde_json::from_str::<Map<String, Value>>(&at_first) else {
        return at_first;
    };
    for (name, more) in added {
        if name == "partial_json" {
            let input = serde_json::from_str(&more).unwrap_or(Value::Object(Map::new()));
            block.insert("input".to_owned(), input);
            continue;
        }
        let before = block.get(&name).and_then(Value::as_str).unwrap_or_default();
        let whole = format!("{before}{more}");
        block.insert(name, Value::String(whole));
    }
    serde_json::to_string(&block).unwrap_or(at_first)
}
