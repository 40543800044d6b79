//! Anthropic Messages.

use std::{borrow::Cow, collections::BTreeMap};

use asyncagents_core::agent::{Block, Call, Effort, Stop, Usage};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, value::RawValue};

use crate::{
    answer_limits::{AnswerLimits, Size},
    request::{AnswerEvent, OnEvent},
    wire::{
        CacheControl, Fold, Folded, Lenient, Parameters, Question, Schema, Side, Step, StreamError,
        plain, raw, schema, sides, verbatim,
    },
};

/// The request. What never changes comes first and what grows comes last, so that each
/// request repeats the bytes of the one before it. Markers inside of messages would have to
/// move; the one at the top lets the API move them.
#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    max_tokens: u64,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Thinking>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Part<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
    messages: Vec<Message<'a>>,
    // Only now and then: everything before it stays as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<ToolChoice>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ToolChoice {
    None,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Thinking {
    Adaptive,
    Enabled { budget_tokens: u64 },
}

#[derive(Serialize)]
struct OutputConfig {
    effort: &'static str,
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: Schema<'a>,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: Vec<Part<'a>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    Text {
        text: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: Cow<'a, str>,
        input: Parameters<'a>,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        #[serde(skip_serializing_if = "str::is_empty")]
        content: &'a str,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
    #[serde(untagged)]
    Verbatim(&'a RawValue),
}

pub(crate) fn body(question: &Question<'_>) -> Result<String, serde_json::Error> {
    let request = question.request;
    let max_tokens = question.at_most(question.figures.max_output());
    let (thinking, output_config) = thinking(question, max_tokens);
    let tools = request.tools.iter().map(|tool| Tool {
        name: &tool.name,
        description: &tool.description,
        input_schema: schema(&tool.schema),
    });
    // A breakpoint of its own: a child with the same system prompt and tools starts warm.
    let system = question.system().map(|text| Part::Text {
        text,
        cache_control: Some(CacheControl::Ephemeral),
    });
    serde_json::to_string(&Body {
        model: question.model,
        max_tokens,
        stream: true,
        thinking,
        output_config,
        tools: tools.collect(),
        system: system.into_iter().collect(),
        cache_control: (!question.unwanted.cache_control).then_some(CacheControl::Ephemeral),
        messages: sides(request.turns, question.origin)
            .into_iter()
            .map(message)
            .collect(),
        tool_choice: question.forbids_tools().then_some(ToolChoice::None),
    })
}

/// Newer models choose how long they think, within an effort; older ones get a number.
fn thinking(question: &Question<'_>, most: u64) -> (Option<Thinking>, Option<OutputConfig>) {
    let Some(effort) = question.request.effort else {
        return (None, None);
    };
    if question.figures.is_adaptive() {
        let effort = effort.word();
        return (Some(Thinking::Adaptive), Some(OutputConfig { effort }));
    }
    let wanted = match effort {
        Effort::Low => 4_000,
        Effort::Medium => 10_000,
        Effort::High => 24_000,
    };
    // Something must be left for the answer, and the API takes no less than 1,024.
    let budget_tokens = wanted.min(most.saturating_sub(most / 4));
    let thinking = (budget_tokens >= 1_024).then_some(Thinking::Enabled { budget_tokens });
    (thinking, None)
}

fn message(side: Side<'_>) -> Message<'_> {
    match side {
        Side::User { results, texts, .. } => {
            let results = results.into_iter().map(|(call, outcome)| Part::ToolResult {
                tool_use_id: plain(&call.id),
                content: outcome.text(),
                is_error: outcome.is_error(),
            });
            let texts = texts.into_iter().map(text);
            Message {
                role: "user",
                content: results.chain(texts).collect(),
            }
        }
        Side::Model { blocks, .. } => Message {
            role: "assistant",
            content: blocks.into_iter().filter_map(part).collect(),
        },
    }
}

fn part(block: &Block) -> Option<Part<'_>> {
    match block {
        Block::Text(block) => Some(text(block)),
        Block::Reasoning { raw, .. } => raw.as_ref().and_then(verbatim).map(Part::Verbatim),
        Block::Other(raw) => verbatim(raw).map(Part::Verbatim),
        Block::Call(call) => Some(Part::ToolUse {
            id: plain(&call.id),
            name: plain(&call.name),
            input: Parameters::of(call),
        }),
    }
}

fn text(text: &str) -> Part<'_> {
    Part::Text {
        text,
        cache_control: None,
    }
}

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

#[cfg(test)]
mod tests {
    use asyncagents_core::agent::{ToolOutcome, Turn};
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::{
        price::Prices,
        wire::{
            Wire::Anthropic,
            testing::{answered, call, folded, play, question, raw, request, sent},
        },
    };

    fn begin(index: u64, block: Value) -> Value {
        json!({"type": "content_block_start", "index": index, "content_block": block})
    }

    fn delta(index: u64, delta: Value) -> Value {
        json!({"type": "content_block_delta", "index": index, "delta": delta})
    }

    fn end(reason: &str) -> [Value; 2] {
        [
            json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 7}}),
            json!({"type": "message_stop"}),
        ]
    }

    #[test]
    fn blocks_that_nobody_knows_are_kept_as_they_came() {
        let mut events = vec![
            json!({"type": "message_start", "message": {"usage": {"input_tokens": 3, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 5}}}),
            json!({"type": "a_new_event", "index": 0, "delta": [1]}),
            begin(0, json!({"type": "redacted_thinking", "data": "x1"})),
            begin(1, json!({"type": "hologram", "beam": 2.50})),
            begin(
                2,
                json!({"type": "server_tool_use", "id": "s1", "name": "web", "input": {}}),
            ),
            delta(
                2,
                json!({"type": "input_json_delta", "partial_json": "{\"q\":"}),
            ),
            delta(2, json!({"type": "input_json_delta", "partial_json": "1}"})),
            begin(3, json!({"type": "summary", "content": null})),
            delta(3, json!({"type": "summary_delta", "content": "so "})),
            delta(3, json!({"type": "summary_delta", "content": "far"})),
            begin(4, json!({"type": "text", "text": ""})),
            delta(4, json!({"type": "text_delta", "text": "hi"})),
            delta(4, json!({"type": "citations_delta", "citation": {}})),
        ];
        events.extend(end("end_turn"));
        let here = "here@house/m";
        let answer = folded(Anthropic, &events);
        assert_eq!(
            answer.blocks,
            [
                Block::Reasoning {
                    text: String::new(),
                    raw: Some(raw(here, r#"{"data":"x1","type":"redacted_thinking"}"#)),
                },
                Block::Other(raw(here, r#"{"beam":2.5,"type":"hologram"}"#)),
                Block::Other(raw(
                    here,
                    r#"{"id":"s1","input":{"q":1},"name":"web","type":"server_tool_use"}"#
                )),
                Block::Other(raw(here, r#"{"content":"so far","type":"summary"}"#)),
                Block::Text("hi".to_owned()),
            ]
        );
        let usage = Usage {
            input: 3,
            cache_read: 4,
            cache_write: 5,
            output: 7,
        };
        assert_eq!((answer.stop, answer.usage), (Stop::Finished, usage));
        let turns = [Turn::Said("go".to_owned()), answered(answer.blocks)];
        assert_eq!(
            sent(Anthropic, &turns)[1]["content"][1],
            json!({"type": "hologram", "beam": 2.5})
        );
    }

    #[rstest]
    #[case("end_turn", Stop::Finished)]
    #[case("pause_turn", Stop::Finished)]
    #[case("tool_use", Stop::Finished)]
    #[case("max_tokens", Stop::Length)]
    #[case("model_context_window_exceeded", Stop::Length)]
    #[case("refusal", Stop::Refused)]
    #[case("something_new", Stop::Finished)]
    fn reasons_to_stop(#[case] reason: &str, #[case] stop: Stop) {
        assert_eq!(folded(Anthropic, &end(reason)).stop, stop);
    }

    #[test]
    fn a_stream_without_its_end_is_not_whole() {
        let [delta, _] = end("end_turn");
        let fold = play(Anthropic, &[delta]).ok();
        assert_eq!(fold.map(|fold| fold.is_whole()), Some(false));
    }

    #[test]
    fn a_conversation_is_always_acceptable() {
        let thought = |wire: &str| Block::Reasoning {
            text: "hm".to_owned(),
            raw: Some(raw(
                wire,
                r#"{"type":"thinking","thinking":"hm","signature":"s"}"#,
            )),
        };
        let (one, two) = (
            call("a.b:1", "read file", "{\"x\": 1 }"),
            call("c2", "run", "{oops"),
        );
        let turns = [
            Turn::Said("do".to_owned()),
            Turn::Said("  ".to_owned()),
            // Nothing of this can be sent, so the user's messages meet.
            answered(vec![Block::Text(" ".to_owned()), thought("here@house/m")]),
            Turn::Said("it".to_owned()),
            answered(vec![
                thought("elsewhere@house/m"),
                thought("here@house/m"),
                Block::Call(one.clone()),
                Block::Call(two.clone()),
            ]),
            Turn::Result {
                call: one,
                outcome: ToolOutcome::Done(String::new()),
            },
            Turn::Result {
                call: two,
                outcome: ToolOutcome::Failed("no".to_owned()),
            },
            Turn::Said("hurry".to_owned()),
        ];
        assert_eq!(
            sent(Anthropic, &turns),
            json!([
                {"role": "user", "content": [{"type": "text", "text": "do"}, {"type": "text", "text": "it"}]},
                {"role": "assistant", "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "s"},
                    {"type": "tool_use", "id": "a_b_1", "name": "read_file", "input": {"x": 1}},
                    {"type": "tool_use", "id": "c2", "name": "run", "input": {"invalid": "{oops"}},
                ]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "a_b_1"},
                    {"type": "tool_result", "tool_use_id": "c2", "content": "no", "is_error": true},
                    {"type": "text", "text": "hurry"},
                ]},
            ])
        );
        assert_eq!(
            sent(Anthropic, &[Turn::Said(String::new())]),
            json!([{"role": "user", "content": [{"type": "text", "text": "(no text)"}]}])
        );
    }

    #[rstest]
    #[case("claude-sonnet-4-5", Effort::High, json!({"type": "enabled", "budget_tokens": 24_000}), Value::Null)]
    #[case("claude-sonnet-5-5", Effort::Low, json!({"type": "adaptive"}), json!({"effort": "low"}))]
    #[case("unknown", Effort::High, json!({"type": "enabled", "budget_tokens": 6_144}), Value::Null)]
    fn effort_in_both_dialects(
        #[case] model: &str,
        #[case] effort: Effort,
        #[case] thinking: Value,
        #[case] output: Value,
    ) {
        let request = crate::request::Request {
            effort: Some(effort),
            ..request(&[])
        };
        let prices = Prices::with(None).unwrap_or_default();
        let question = Question {
            figures: prices.figures("anthropic", model, false),
            ..question(&request)
        };
        let body = body(&question).unwrap_or_default();
        let body: Value = serde_json::from_str(&body).unwrap_or_default();
        assert_eq!(
            (&body["thinking"], &body["output_config"]),
            (&thinking, &output)
        );
    }
}
