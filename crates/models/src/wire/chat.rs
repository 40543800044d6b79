//! OpenAI Chat Completions, as OpenAI and its many imitators speak it.

use std::borrow::Cow;

use asyncagents_core::{
    agent::{Block, Call, Stop, ToolSpec, Usage},
    budget::Cost,
};
use serde::{Deserialize, Serialize, de::IgnoredAny};
use serde_json::{Map, Value, value::RawValue};

use crate::{
    answer_limits::{AnswerLimits, Exceeded, Size, field},
    provider_error::ProviderError,
    request::{AnswerEvent, OnEvent},
    wire::{
        CacheControl, CacheTokens, Fold, Folded, Lenient, Parameters, Question, Schema, Side,
        Spelling, Step, StreamError, arguments_in, cache_key, plain, raw, schema, sides, verbatim,
    },
};

/// The request: what never changes first, what grows last.
#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_cache_key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    messages: Vec<Message<'a>>,
    // Only now and then: everything before it stays as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
#[serde(tag = "type", content = "function", rename_all = "snake_case")]
enum Tool<'a> {
    Function {
        name: &'a str,
        description: &'a str,
        parameters: Schema<'a>,
    },
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
enum Message<'a> {
    System {
        content: &'a str,
    },
    User {
        content: String,
    },
    Assistant {
        content: Option<String>,
        #[serde(flatten)]
        thoughts: Thoughts<'a>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<ToolCall<'a>>,
    },
    Tool {
        tool_call_id: Cow<'a, str>,
        content: &'a str,
    },
}

/// The fields of a message that carry thoughts, each under the name its provider gave it.
#[derive(Serialize, Deserialize, Default)]
struct Thoughts<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<&'a RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    reasoning: Option<&'a RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    reasoning_details: Option<&'a RawValue>,
}

#[derive(Serialize)]
struct ToolCall<'a> {
    id: Cow<'a, str>,
    #[serde(rename = "type")]
    kind: &'static str,
    function: Function<'a>,
    #[serde(flatten)]
    more: Map<String, Value>,
}

/// The fields of a call that are not known here, such as the signature of a thought. They are
/// kept as a block of its own before the call, which cannot carry them, and go back in it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Mark {
    tool_call: Map<String, Value>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: Cow<'a, str>,
    arguments: Cow<'a, str>,
}

pub(crate) fn body(question: &Question<'_>) -> Result<String, serde_json::Error> {
    let request = question.request;
    // Other servers refuse fields they do not know.
    let is_openai = question.provider == "openai";
    // The router hands it on to the only maker whose cache must be asked for.
    let asks_for_cache = question.provider == "openrouter" && question.model.contains("claude");
    let unwanted = question.unwanted;
    let most = question.max_output();
    let tools = request.tools.iter().map(|tool| Tool::Function {
        name: &tool.name,
        description: &tool.description,
        parameters: schema(&tool.schema),
    });
    let system = question.system();
    let system = system.map(|content| Message::System { content });
    let conversation = sides(request.turns, question.origin);
    let in_turn = takes_turns(question.model);
    let conversation = conversation
        .into_iter()
        .flat_map(|side| messages(side, request.tools, in_turn));
    serde_json::to_string(&Body {
        model: question.model,
        stream: true,
        stream_options: (!unwanted.stream_options).then_some(StreamOptions {
            include_usage: true,
        }),
        prompt_cache_key: cache_key(request.cache_key).filter(|_| is_openai),
        cache_control: (asks_for_cache && !unwanted.cache_control)
            .then_some(CacheControl::Ephemeral),
        max_tokens: most.filter(|_| !is_openai),
        max_completion_tokens: most.filter(|_| is_openai),
        reasoning_effort: request
            .effort
            .filter(|_| !unwanted.reasoning_effort)
            .map(|effort| effort.word()),
        tools: tools.collect(),
        messages: system.into_iter().chain(conversation).collect(),
        tool_choice: question.forbids_tools().then_some("none"),
    })
}

/// Mistral's models refuse a user message right after a tool's: an assistant's must be between.
fn takes_turns(model: &str) -> bool {
    const MISTRAL: [&str; 5] = ["mistral", "devstral", "magistral", "codestral", "ministral"];
    let model = model.to_lowercase();
    MISTRAL.iter().any(|name| model.contains(name))
}

fn messages<'a>(side: Side<'a>, tools: &[ToolSpec], in_turn: bool) -> Vec<Message<'a>> {
    match side {
        Side::User {
            results,
            texts,
            spelling,
        } => {
            let interrupts = in_turn && !results.is_empty() && !texts.is_empty();
            let between = interrupts.then(|| Message::Assistant {
                content: Some("Understood.".to_owned()),
                thoughts: Thoughts::default(),
                tool_calls: Vec::new(),
            });
            let results = results.into_iter().map(|(call, outcome)| Message::Tool {
                tool_call_id: spelling.write(&call.id),
                content: outcome.text(),
            });
            // Many templates insist that the sides take turns, so this is one message.
            let user = (!texts.is_empty()).then(|| Message::User {
                content: texts.join("\n\n"),
            });
            results.chain(between).chain(user).collect()
        }
        Side::Model { blocks, spelling } => vec![answered(&blocks, tools, spelling)],
    }
}

fn answered<'a>(blocks: &[&'a Block], tools: &[ToolSpec], spelling: Spelling) -> Message<'a> {
    let mut texts: Vec<&str> = Vec::new();
    let mut thoughts = Thoughts::default();
    let mut tool_calls = Vec::new();
    let mut more = Map::new();
    for block in blocks {
        match block {
            Block::Text(text) => texts.push(text),
            Block::Reasoning { raw, .. } => {
                let json = raw.as_ref().and_then(verbatim).map(RawValue::get);
                if let Some(raw) = json.and_then(|json| serde_json::from_str(json).ok()) {
                    thoughts = raw;
                }
            }
            Block::Call(call) => tool_calls.push(ToolCall {
                id: spelling.write(&call.id),
                kind: "function",
                function: Function {
                    name: name(call, tools),
                    arguments: arguments(call),
                },
                more: std::mem::take(&mut more),
            }),
            // This protocol has no blocks, so there are none that we do not know.
            Block::Other(raw) => {
                if let Ok(mark) = serde_json::from_str::<Mark>(&raw.json) {
                    more = mark.tool_call;
                }
            }
        }
    }
    Message::Assistant {
        content: (!texts.is_empty()).then(|| texts.join("\n\n")),
        thoughts,
        tool_calls,
    }
}

/// A name that was declared is good as it is. One that the model has invented might be refused.
fn name<'a>(call: &'a Call, tools: &[ToolSpec]) -> Cow<'a, str> {
    if tools.iter().any(|tool| tool.name == call.name) {
        Cow::Borrowed(&call.name)
    } else {
        plain(&call.name)
    }
}

/// The model's own bytes, unless they are no JSON: some servers parse them and fail.
fn arguments(call: &Call) -> Cow<'_, str> {
    match Parameters::of(call) {
        Parameters::Verbatim(_) => Cow::Borrowed(&call.input),
        mistaken => serde_json::to_string(&mistaken).map_or(Cow::Borrowed("{}"), Cow::Owned),
    }
}

/// An answer in the making.
pub(crate) struct Answering {
    origin: String,
    /// How long the request was, for servers that do not count tokens.
    asked: usize,
    text: String,
    reasoning: String,
    /// Under which name the provider sends it.
    reasoning_field: Option<&'static str>,
    details: Vec<Map<String, Value>>,
    calls: Vec<OpenCall>,
    size: Size,
    stop: Option<Stop>,
    usage: Option<Tokens>,
    ended: bool,
}

#[derive(Default)]
struct OpenCall {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    /// What is not known here.
    more: Map<String, Value>,
}

#[derive(Deserialize)]
struct Chunk {
    choices: Option<Vec<Choice>>,
    #[serde(default)]
    usage: Lenient<Tokens>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice {
    delta: Option<Delta>,
    // Some servers send a whole message in one chunk.
    message: Option<Delta>,
    #[serde(default)]
    finish_reason: Lenient<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Delta {
    content: Option<Value>,
    refusal: Lenient<String>,
    reasoning_content: Lenient<String>,
    reasoning: Lenient<String>,
    reasoning_details: Lenient<Vec<Value>>,
    tool_calls: Option<Vec<CallDelta>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct CallDelta {
    index: Lenient<u64>,
    id: Lenient<String>,
    #[serde(rename = "type")]
    _kind: IgnoredAny,
    function: Option<FunctionDelta>,
    #[serde(flatten)]
    more: Map<String, Value>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct FunctionDelta {
    name: Lenient<String>,
    arguments: Option<Box<RawValue>>,
}

#[derive(Deserialize, Default, Clone)]
#[serde(default)]
struct Tokens {
    prompt_tokens: Lenient<u64>,
    completion_tokens: Lenient<u64>,
    prompt_tokens_details: Lenient<CacheTokens>,
    prompt_cache_hit_tokens: Lenient<u64>,
    /// Dollars.
    cost: Lenient<f64>,
    is_byok: Lenient<bool>,
}

impl Answering {
    pub(crate) fn new(origin: String, asked: usize, limits: AnswerLimits) -> Self {
        Self {
            origin,
            asked,
            text: String::new(),
            reasoning: String::new(),
            reasoning_field: None,
            details: Vec::new(),
            calls: Vec::new(),
            size: Size::within(limits),
            stop: None,
            usage: None,
            ended: false,
        }
    }

    fn say(&mut self, text: &str, on_event: OnEvent<'_>) -> Result<(), Exceeded> {
        if !text.is_empty() {
            self.size.grow(text.len())?;
            on_event(AnswerEvent::Text(text));
            self.text.push_str(text);
        }
        Ok(())
    }

    fn think(
        &mut self,
        field: &'static str,
        text: &str,
        on_event: OnEvent<'_>,
    ) -> Result<(), Exceeded> {
        if !text.is_empty() {
            self.size.grow(text.len())?;
            on_event(AnswerEvent::Reasoning(text));
            self.reasoning.push_str(text);
            self.reasoning_field = Some(field);
        }
        Ok(())
    }

    fn grow(&mut self, delta: Delta, on_event: OnEvent<'_>) -> Result<(), Exceeded> {
        match (delta.reasoning_content.0, delta.reasoning.0) {
            (Some(text), _) => self.think("reasoning_content", &text, on_event)?,
            (None, Some(text)) => self.think("reasoning", &text, on_event)?,
            (None, None) => {}
        }
        for detail in delta.reasoning_details.0.unwrap_or_default() {
            if let Value::Object(detail) = detail {
                join_detail(&mut self.details, detail, &mut self.size)?;
            }
        }
        match delta.content {
            Some(Value::String(text)) => self.say(&text, on_event)?,
            // Some servers send parts.
            Some(Value::Array(parts)) => {
                for part in parts {
                    let text = part.get("text").and_then(Value::as_str);
                    self.say(text.unwrap_or_default(), on_event)?;
                }
            }
            _ => {}
        }
        if let Some(refusal) = delta.refusal.0.filter(|text| !text.is_empty()) {
            self.say(&refusal, on_event)?;
            self.stop = Some(Stop::Refused);
        }
        for call in delta.tool_calls.unwrap_or_default() {
            self.call(call, on_event)?;
        }
        Ok(())
    }

    fn call(&mut self, delta: CallDelta, on_event: OnEvent<'_>) -> Result<(), Exceeded> {
        let function = delta.function.unwrap_or_default();
        let name = function.name.0.unwrap_or_default();
        let id = delta.id.0.unwrap_or_default();
        let at = match self.place(delta.index.0, &id, &name) {
            Some(at) => at,
            None => {
                self.size.grow_block(0)?;
                self.calls.push(OpenCall {
                    index: delta.index.0,
                    ..OpenCall::default()
                });
                self.calls.len() - 1
            }
        };
        let Some(call) = self.calls.get_mut(at) else {
            return Ok(());
        };
        if call.name.is_empty() && !name.is_empty() {
            self.size.grow(name.len())?;
            on_event(AnswerEvent::Call(&name));
            call.name = name;
        } else {
            on_event(AnswerEvent::KeepAlive);
        }
        if call.id.is_empty() {
            self.size.grow(id.len())?;
            call.id = id;
        }
        if let Some(arguments) = function.arguments {
            let more = arguments_in(arguments.get());
            self.size.grow_arguments(call.arguments.len(), more.len())?;
            call.arguments.push_str(&more);
        }
        for (name, value) in delta.more {
            if !value.is_null() {
                put(&mut call.more, name, value, &mut self.size)?;
            }
        }
        Ok(())
    }

    /// Which call a piece belongs to; none means a new one. Servers differ: some give each
    /// call an index, some give all the same one, some give none.
    fn place(&self, index: Option<u64>, id: &str, name: &str) -> Option<usize> {
        let fits = |call: &OpenCall| id.is_empty() || call.id.is_empty() || call.id == id;
        let mut calls = self.calls.iter().enumerate().rev();
        match index {
            Some(_) => calls.find(|(_, call)| call.index == index && fits(call)),
            None if !id.is_empty() => calls.find(|(_, call)| call.id == id),
            None if !name.is_empty() => None,
            None => calls.next(),
        }
        .map(|(at, _)| at)
    }

    /// The fields that carry the thoughts, as the provider wants them back.
    fn thoughts(&self) -> Option<String> {
        let mut fields: Vec<(&str, String)> = Vec::new();
        if let Some(field) = self.reasoning_field {
            // With the details, the bare text would say the same twice.
            if field == "reasoning_content" || self.details.is_empty() {
                fields.push((field, serde_json::to_string(&self.reasoning).ok()?));
            }
        }
        if !self.details.is_empty() {
            fields.push((
                "reasoning_details",
                serde_json::to_string(&self.details).ok()?,
            ));
        }
        let fields = fields
            .iter()
            .map(|(name, json)| format!("\"{name}\":{json}"));
        let fields: Vec<String> = fields.collect();
        (!fields.is_empty()).then(|| format!("{{{}}}", fields.join(",")))
    }

    fn counted(&self) -> Usage {
        let tokens = self.usage.clone().unwrap_or_default();
        let mut cached = tokens.prompt_tokens_details.0.unwrap_or_default();
        cached.cached_tokens = cached.cached_tokens.or(tokens.prompt_cache_hit_tokens.0);
        let calls = self
            .calls
            .iter()
            .map(|call| call.name.len() + call.arguments.len());
        let written = self.text.len() + self.reasoning.len() + calls.sum::<usize>();
        let (read, wrote) = (tokens.prompt_tokens.0, tokens.completion_tokens.0);
        cached.usage(
            read.unwrap_or_else(|| guessed(self.asked)),
            wrote.unwrap_or_else(|| guessed(written)),
        )
    }

    /// The cost that a router reports, unless another provider sends the bill.
    fn billed(&self) -> Option<Cost> {
        let tokens = self.usage.as_ref()?;
        let dollars = tokens.cost.0;
        let dollars = dollars.filter(|cost| cost.is_finite() && *cost >= 0.0)?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a price that is not negative becomes the nearest whole number"
        )]
        let cost = Cost((dollars * 1_000_000.0).round() as u64);
        (tokens.is_byok.0 != Some(true)).then_some(cost)
    }
}

impl Fold for Answering {
    fn event(&mut self, data: &str, on_event: OnEvent<'_>) -> Result<Step, StreamError> {
        if data.trim() == "[DONE]" {
            self.ended = true;
            return Ok(Step::Done);
        }
        let chunk: Chunk = serde_json::from_str(data)?;
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            let json = serde_json::json!({ "error": error });
            return Err(StreamError::Provider(ProviderError::in_stream(&json)));
        }
        if let Some(usage) = chunk.usage.0 {
            self.usage = Some(usage);
        }
        let mut is_news = false;
        let mut noted = |what: AnswerEvent<'_>| {
            is_news = true;
            on_event(what);
        };
        if let Some(choice) = chunk.choices.unwrap_or_default().into_iter().next() {
            if let Some(delta) = choice.delta.or(choice.message) {
                self.grow(delta, &mut noted)?;
            }
            match choice.finish_reason.0.as_deref() {
                None | Some("") => {}
                Some("error") => {
                    return Err(StreamError::Malformed("it ends with an error".to_owned()));
                }
                Some(reason) => self.stop = self.stop.or(Some(stop(reason))),
            }
        }
        if !is_news {
            on_event(AnswerEvent::KeepAlive);
        }
        Ok(Step::More)
    }

    fn size(&self) -> usize {
        self.size.bytes()
    }

    fn is_whole(&self) -> bool {
        self.ended || self.stop.is_some()
    }

    fn folded(self: Box<Self>) -> Folded {
        let usage = self.counted();
        let cost = self.billed();
        let raw = self.thoughts().map(|json| raw(&self.origin, json));
        let mut blocks = Vec::new();
        if raw.is_some() || !self.reasoning.is_empty() {
            blocks.push(Block::Reasoning {
                text: self.reasoning,
                raw,
            });
        }
        if !self.text.is_empty() {
            blocks.push(Block::Text(self.text));
        }
        for call in self.calls {
            blocks.extend(mark(call.more, &self.origin));
            blocks.push(Block::Call(Call {
                id: call.id,
                name: call.name,
                input: call.arguments,
            }));
        }
        let folded = Folded::new(blocks, self.stop.unwrap_or(Stop::Finished), usage);
        Folded { cost, ..folded }
    }
}

fn stop(reason: &str) -> Stop {
    match reason {
        "tool_calls" | "function_call" => Stop::Tools,
        "length" => Stop::Length,
        "content_filter" => Stop::Refused,
        _ => Stop::Finished,
    }
}

/// Four characters are about one token.
fn guessed(characters: usize) -> u64 {
    u64::try_from(characters.div_ceil(4)).unwrap_or(u64::MAX)
}

/// What is not known of a call, as a block.
fn mark(tool_call: Map<String, Value>, origin: &str) -> Option<Block> {
    if tool_call.is_empty() {
        return None;
    }
    let json = serde_json::to_string(&Mark { tool_call }).ok()?;
    Some(Block::Other(raw(origin, json)))
}

/// Puts a piece of a thought to the piece before it, if they belong together.
fn join_detail(
    details: &mut Vec<Map<String, Value>>,
    piece: Map<String, Value>,
    size: &mut Size,
) -> Result<(), Exceeded> {
    let same = |detail: &Map<String, Value>| {
        let alike = ["type", "index"]
            .iter()
            .all(|name| detail.get(*name) == piece.get(*name));
        // What is encrypted comes whole.
        alike && !piece.contains_key("data")
    };
    match details.last_mut() {
        Some(last) if same(last) => {
            for (name, value) in piece {
                let grows = matches!(name.as_str(), "text" | "summary");
                match (last.get_mut(&name), value) {
                    (_, Value::Null) => {}
                    (Some(Value::String(text)), Value::String(more)) if grows => {
                        size.grow(more.len())?;
                        text.push_str(&more);
                    }
                    (_, value) => put(last, name, value, size)?,
                }
            }
        }
        _ => {
            let fields = piece.iter().map(|(name, value)| field(name, value));
            size.grow_block(fields.sum())?;
            details.push(piece);
        }
    }
    Ok(())
}

/// Puts a field in. Providers repeat fields with each piece, so only what is more than before
/// counts.
fn put(
    fields: &mut Map<String, Value>,
    name: String,
    value: Value,
    size: &mut Size,
) -> Result<(), Exceeded> {
    let before = fields.get(&name).map_or(0, |before| field(&name, before));
    size.grow(field(&name, &value).saturating_sub(before))?;
    fields.insert(name, value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use asyncagents_core::agent::{ToolOutcome, Turn};
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::wire::{
        Wire::Chat,
        testing::{answered, call, folded, play, question, raw, request, sent},
    };

    fn delta(delta: Value) -> Value {
        json!({"choices": [{"delta": delta}]})
    }

    fn done() -> Value {
        json!("[DONE]")
    }

    #[rstest]
    #[case::as_openai(&[
        json!([{"index": 0, "id": "a", "function": {"name": "run", "arguments": ""}}]),
        json!([{"index": 0, "function": {"arguments": "{\"x\":"}}]),
        json!([{"index": 1, "id": "b", "function": {"name": "see", "arguments": "{}"}}]),
        json!([{"index": 0, "function": {"arguments": "1}"}}]),
    ], &[("a", "run", "{\"x\":1}"), ("b", "see", "{}")])]
    #[case::whole_without_index(&[
        json!([{"id": "a", "function": {"name": "run", "arguments": "{}"}}, {"id": "b", "function": {"name": "run", "arguments": "{}"}}]),
    ], &[("a", "run", "{}"), ("b", "run", "{}")])]
    #[case::without_ids(&[
        json!([{"function": {"name": "run", "arguments": "{"}}]),
        json!([{"function": {"arguments": "}"}}]),
        json!([{"function": {"name": "see", "arguments": "{}"}}]),
    ], &[("call_0_1", "run", "{}"), ("call_0_2", "see", "{}")])]
    #[case::all_the_same_index(&[
        json!([{"index": 0, "id": "a", "function": {"name": "run", "arguments": "{}"}}]),
        json!([{"index": 0, "id": "b", "function": {"name": "see", "arguments": "{}"}}]),
    ], &[("a", "run", "{}"), ("b", "see", "{}")])]
    #[case::arguments_as_an_object(&[
        json!([{"index": 0, "id": "a", "function": {"name": "run", "arguments": {"x": 1}}}]),
    ], &[("a", "run", "{\"x\":1}")])]
    #[case::one_id_twice(&[
        json!([{"index": 0, "id": "a", "function": {"name": "run", "arguments": "{}"}}]),
        json!([{"index": 1, "id": "a", "function": {"name": "run", "arguments": null}}]),
    ], &[("a", "run", "{}"), ("call_0_2", "run", "")])]
    fn calls_in_many_dialects(#[case] pieces: &[Value], #[case] calls: &[(&str, &str, &str)]) {
        let pieces = pieces
            .iter()
            .map(|calls| delta(json!({"tool_calls": calls})));
        let answer = folded(Chat, &pieces.chain([done()]).collect::<Vec<_>>());
        let calls = calls
            .iter()
            .map(|(id, name, input)| Block::Call(call(id, name, input)));
        assert_eq!(answer.blocks, calls.collect::<Vec<_>>());
        assert_eq!(answer.stop, Stop::Tools);
    }

    #[rstest]
    #[case::deepseek(
        &[json!({"reasoning_content": "h"}), json!({"reasoning_content": "m"})],
        r#"{"reasoning_content":"hm"}"#
    )]
    #[case::ollama(&[json!({"reasoning": "h"}), json!({"reasoning": "m"})], r#"{"reasoning":"hm"}"#)]
    #[case::openrouter(
        &[
            json!({"reasoning": "h", "reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "h"}]}),
            json!({"reasoning": "m", "reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "m", "signature": "s"}]}),
            json!({"reasoning_details": [{"type": "reasoning.encrypted", "index": 1, "data": "e"}]}),
        ],
        r#"{"reasoning_details":[{"index":0,"signature":"s","text":"hm","type":"reasoning.text"},{"data":"e","index":1,"type":"reasoning.encrypted"}]}"#
    )]
    fn thoughts_go_back_under_the_name_they_came_with(
        #[case] pieces: &[Value],
        #[case] json: &str,
    ) {
        let mut events: Vec<Value> = pieces.iter().cloned().map(delta).collect();
        events.extend([delta(json!({"content": "hi"})), done()]);
        let answer = folded(Chat, &events);
        let thought = Block::Reasoning {
            text: "hm".to_owned(),
            raw: Some(raw("here@house/m", json)),
        };
        assert_eq!(answer.blocks, [thought, Block::Text("hi".to_owned())]);
        let sent = sent(
            Chat,
            &[Turn::Said("go".to_owned()), answered(answer.blocks)],
        );
        let mut expected: Value = serde_json::from_str(json).unwrap_or_default();
        expected["role"] = json!("assistant");
        expected["content"] = json!("hi");
        assert_eq!(sent[1], expected);
    }

    #[test]
    fn tokens_are_counted_or_guessed() {
        let text = delta(json!({"content": "x".repeat(41)}));
        let guessed = folded(Chat, &[text.clone(), done()]).usage;
        assert_eq!((guessed.input, guessed.output), (100, 11));
        let usage = json!({"choices": [], "usage": {
            "prompt_tokens": 50, "completion_tokens": 5, "cost": 0.0123456,
            "prompt_tokens_details": {"cached_tokens": 40},
        }});
        let counted = folded(Chat, &[text, usage, done()]);
        assert_eq!((counted.usage.input, counted.usage.cache_read), (10, 40));
        assert_eq!(counted.cost, Some(Cost(12_346)));
    }

    #[test]
    fn a_finish_reason_is_an_end_too() {
        let finish = json!({"choices": [{"delta": {"content": [{"type": "text", "text": "hi"}]}, "finish_reason": "length"}]});
        let answer = folded(Chat, &[finish]);
        assert_eq!(
            (answer.stop, answer.blocks),
            (Stop::Length, vec![Block::Text("hi".to_owned())])
        );
        let cut = play(Chat, &[delta(json!({"content": "hi"}))]).ok();
        assert_eq!(cut.map(|fold| fold.is_whole()), Some(false));
    }

    #[test]
    fn an_error_inside_the_stream_is_a_complaint() {
        let error = json!({"error": {"code": 502, "message": "upstream"}, "choices": []});
        let expected = ProviderError {
            status: Some(502),
            message: "upstream".to_owned(),
            ..ProviderError::default()
        };
        assert_eq!(
            play(Chat, &[error]).err(),
            Some(StreamError::Provider(expected))
        );
    }

    #[rstest]
    #[case::both(json!({"choices": [{"delta": {"content": "hi"}, "message": {"content": "hi"}}]}))]
    #[case::message(json!({"choices": [{"message": {"content": "hi"}}]}))]
    #[case::cost(json!({"choices": [{"delta": {"content": "hi"}}], "usage": {"prompt_tokens": 100, "cost": {"total": 1}}}))]
    #[case::usage(json!({"choices": [{"delta": {"content": "hi"}}], "usage": "much"}))]
    #[case::details(delta(json!({"content": "hi", "reasoning_details": ["hm"]})))]
    #[case::no_details(delta(json!({"content": "hi", "reasoning_details": {"a": 1}})))]
    #[case::refusal(delta(json!({"content": "hi", "refusal": false})))]
    #[case::thoughts(delta(json!({"content": "hi", "reasoning": {"a": 1}})))]
    fn an_odd_field_is_as_good_as_none(#[case] chunk: Value) {
        let answer = folded(Chat, &[chunk, done()]);
        assert_eq!(answer.blocks, [Block::Text("hi".to_owned())]);
        let counted = (answer.stop, answer.usage.input, answer.cost);
        assert_eq!(counted, (Stop::Finished, 100, None));
    }

    /// An answer with this call, and its result.
    fn called(model: &str, blocks: Vec<Block>) -> Vec<Turn> {
        let mut turn = answered(blocks);
        if let Turn::Answered(answer) = &mut turn {
            answer.model = model.into();
        }
        let Turn::Answered(answer) = &turn else {
            return Vec::new();
        };
        let call = answer.calls().next().cloned().expect("a call");
        let outcome = ToolOutcome::Done("ok".to_owned());
        vec![turn, Turn::Result { call, outcome }]
    }

    #[rstest]
    #[case::its_own("house/m", "functions.run:0")]
    #[case::of_another_model("house/n", "functions_run_0")]
    fn an_id_goes_back_to_where_it_was_made(#[case] model: &str, #[case] id: &str) {
        let run = call("functions.run:0", "run it", "{}");
        let sent = sent(Chat, &called(model, vec![Block::Call(run)]));
        assert_eq!(sent[0]["tool_calls"][0]["id"], json!(id));
        assert_eq!(sent[1]["tool_call_id"], json!(id));
        // Nobody has declared it, so nobody knows whether it would be accepted.
        assert_eq!(
            sent[0]["tool_calls"][0]["function"]["name"],
            json!("run_it")
        );
    }

    #[test]
    fn a_name_that_was_declared_is_good() {
        let tools = [ToolSpec {
            name: "files.read".to_owned(),
            description: String::new(),
            schema: "{}".to_owned(),
        }];
        assert_eq!(name(&call("a", "files.read", "{}"), &tools), "files.read");
    }

    #[test]
    fn what_is_not_known_of_a_call_goes_back_with_it() {
        let signed = json!([
            {"index": 0, "id": "a", "type": "function", "function": {"name": "run", "arguments": "{}"},
             "extra_content": {"google": {"thought_signature": "s1"}}, "odd": null},
            {"index": 1, "id": "b", "type": "function", "function": {"name": "run", "arguments": "{}"}},
        ]);
        let answer = folded(Chat, &[delta(json!({"tool_calls": signed})), done()]);
        assert_eq!(answer.blocks.len(), 3, "{answer:?}");
        let function = json!({"name": "run", "arguments": "{}"});
        let plain = |id: &str| json!({"id": id, "type": "function", "function": function});
        let mut first = plain("a");
        first["extra_content"] = json!({"google": {"thought_signature": "s1"}});
        let back = sent(Chat, &[answered(answer.blocks.clone())]);
        assert_eq!(back[0]["tool_calls"], json!([first, plain("b")]));
        let elsewhere = answer.blocks.into_iter().map(|block| match block {
            Block::Other(mark) => Block::Other(raw("elsewhere@house/m", &mark.json)),
            other => other,
        });
        let there = sent(Chat, &[answered(elsewhere.collect())]);
        assert_eq!(there[0]["tool_calls"], json!([plain("a"), plain("b")]));
    }

    #[rstest]
    #[case("Devstral-small", &["assistant", "tool", "assistant", "user"])]
    #[case("mistralai/mixtral", &["assistant", "tool", "assistant", "user"])]
    #[case("m", &["assistant", "tool", "user"])]
    fn some_want_a_word_of_the_model_between_a_tool_and_the_user(
        #[case] model: &str,
        #[case] roles: &[&str],
    ) {
        let mut turns = called("house/m", vec![Block::Call(call("a", "run", "{}"))]);
        let body = |turns: &[Turn]| {
            let request = request(turns);
            let question = Question {
                model,
                ..question(&request)
            };
            body(&question).expect("a body")
        };
        let before = body(&turns);
        turns.push(Turn::Said("hurry".to_owned()));
        let after = body(&turns);
        assert!(
            after.starts_with(before.trim_end_matches(['}', ']'])),
            "{after}"
        );
        let json: Value = serde_json::from_str(&after).expect("JSON");
        let messages = json["messages"].as_array().expect("messages");
        let sent: Vec<_> = messages.iter().map(|message| &message["role"]).collect();
        assert_eq!(sent, roles);
        if roles.len() == 4 {
            assert_eq!(messages[2]["content"], json!("Understood."));
        }
    }

    #[test]
    fn the_sides_take_turns() {
        let run = call("a", "run", "{oops");
        let turns = [
            Turn::Said("one".to_owned()),
            Turn::Said("two".to_owned()),
            answered(vec![Block::Call(run.clone())]),
            Turn::Result {
                call: run,
                outcome: ToolOutcome::Done("ok".to_owned()),
            },
            Turn::Said("three".to_owned()),
        ];
        assert_eq!(
            sent(Chat, &turns),
            json!([
                {"role": "user", "content": "one\n\ntwo"},
                {"role": "assistant", "content": null, "tool_calls": [{
                    "id": "a", "type": "function",
                    "function": {"name": "run", "arguments": "{\"invalid\":\"{oops\"}"},
                }]},
                {"role": "tool", "tool_call_id": "a", "content": "ok"},
                {"role": "user", "content": "three"},
            ])
        );
    }
}
