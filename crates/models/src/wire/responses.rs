//! OpenAI Responses, without anything stored at the provider.

use std::{borrow::Cow, collections::BTreeMap};

use asyncagents_core::agent::{Block, Call, Stop, Usage};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{
    answer_limits::{AnswerLimits, Size},
    request::{AnswerEvent, OnEvent},
    wire::{
        CacheTokens, Fold, Folded, Lenient, Question, Schema, Side, Step, StreamError,
        arguments_in, cache_key, plain, raw, schema, sides, verbatim,
    },
};

/// The request: what never changes first, what grows last.
#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    stream: bool,
    // The conversation is kept here, so thoughts must come along, encrypted.
    store: bool,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    include: &'static [&'static str],
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_cache_key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Reasoning>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "str::is_empty")]
    instructions: &'a str,
    input: Vec<Item<'a>>,
    // Only now and then: everything before it stays as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
}

#[derive(Serialize)]
struct Reasoning {
    effort: &'static str,
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "function")]
struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    parameters: Schema<'a>,
    strict: bool,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Item<'a> {
    Message {
        role: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        phase: Option<String>,
        content: [Text<'a>; 1],
    },
    FunctionCall {
        call_id: Cow<'a, str>,
        name: Cow<'a, str>,
        arguments: &'a str,
    },
    FunctionCallOutput {
        call_id: Cow<'a, str>,
        output: &'a str,
    },
    #[serde(untagged)]
    Verbatim(&'a RawValue),
}

#[derive(Serialize)]
struct Text<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    text: &'a str,
}

pub(crate) fn body(question: &Question<'_>) -> Result<String, serde_json::Error> {
    let request = question.request;
    let tools = request.tools.iter().map(|tool| Tool {
        name: &tool.name,
        description: &tool.description,
        parameters: schema(&tool.schema),
        strict: false,
    });
    // A model that does not think is refused when it is asked for its thoughts.
    let include: &[&str] = if question.figures.thinks() {
        &["reasoning.encrypted_content"]
    } else {
        &[]
    };
    serde_json::to_string(&Body {
        model: question.model,
        stream: true,
        store: false,
        include,
        prompt_cache_key: cache_key(request.cache_key),
        max_output_tokens: question.max_output(),
        reasoning: request.effort.map(|effort| Reasoning {
            effort: effort.word(),
        }),
        tools: tools.collect(),
        instructions: request.system,
        input: sides(request.turns, question.origin)
            .into_iter()
            .flat_map(items)
            .collect(),
        tool_choice: question.forbids_tools().then_some("none"),
    })
}

fn items(side: Side<'_>) -> Vec<Item<'_>> {
    match side {
        Side::User { results, texts, .. } => {
            let results = results.into_iter();
            let results = results.map(|(call, outcome)| Item::FunctionCallOutput {
                call_id: plain(&call.id),
                output: outcome.text(),
            });
            let texts = texts.into_iter();
            let texts = texts.map(|text| message("user", "input_text", text));
            results.chain(texts).collect()
        }
        Side::Model { blocks, .. } => {
            let mut phase = None;
            let mut items = Vec::new();
            for block in blocks {
                match phase_of(block) {
                    Some(mark) => phase = Some(mark),
                    None => items.extend(item(block, &mut phase)),
                }
            }
            items
        }
    }
}

fn item<'a>(block: &'a Block, phase: &mut Option<String>) -> Option<Item<'a>> {
    match block {
        Block::Text(text) => {
            let mut item = message("assistant", "output_text", text);
            if let Item::Message { phase: its, .. } = &mut item {
                *its = phase.take();
            }
            Some(item)
        }
        Block::Reasoning { raw, .. } => raw.as_ref().and_then(verbatim).map(Item::Verbatim),
        Block::Other(raw) => verbatim(raw).map(Item::Verbatim),
        Block::Call(call) => Some(Item::FunctionCall {
            call_id: plain(&call.id),
            name: plain(&call.name),
            arguments: match call.input.as_str() {
                "" => "{}",
                arguments => arguments,
            },
        }),
    }
}

fn message<'a>(role: &'static str, kind: &'static str, text: &'a str) -> Item<'a> {
    Item::Message {
        role,
        phase: None,
        content: [Text { kind, text }],
    }
}

/// Models tell remarks on the way from the last word, and want to be reminded which was which.
/// The phase is kept as a block of its own before the text, which cannot carry it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Mark {
    phase: String,
}

fn phase_of(block: &Block) -> Option<String> {
    let Block::Other(raw) = block else {
        return None;
    };
    let mark: Mark = serde_json::from_str(&raw.json).ok()?;
    Some(mark.phase)
}

/// An answer in the making.
pub(crate) struct Answering {
    origin: String,
    /// Complete items with their places.
    items: Vec<(u64, String)>,
    kept: Size,
    /// What has come in pieces. It comes again in the complete items, so it is not kept, but an
    /// item that never becomes complete must end too.
    streamed: Size,
    /// How many arguments have come in pieces, for the call at each place.
    arguments: BTreeMap<u64, usize>,
    stop: Stop,
    usage: Usage,
    ended: bool,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type", default, borrow)]
    kind: Cow<'a, str>,
    #[serde(default)]
    output_index: u64,
    #[serde(borrow)]
    delta: Option<&'a RawValue>,
    #[serde(borrow)]
    item: Option<&'a RawValue>,
    #[serde(borrow)]
    response: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
struct Response {
    output: Option<Vec<Box<RawValue>>>,
    usage: Option<Tokens>,
    incomplete_details: Option<Incomplete>,
}

#[derive(Deserialize)]
struct Incomplete {
    reason: Option<String>,
}

#[derive(Deserialize)]
struct Tokens {
    #[serde(default)]
    input_tokens: u64,
    #[serde(default)]
    output_tokens: u64,
    input_tokens_details: Option<CacheTokens>,
}

/// An item of the output. What is not read here goes back as it came.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Output {
    #[serde(rename = "type")]
    kind: String,
    content: Lenient<Vec<Content>>,
    summary: Lenient<Vec<Content>>,
    encrypted_content: Lenient<String>,
    call_id: Lenient<String>,
    id: Lenient<String>,
    name: Lenient<String>,
    arguments: Option<Box<RawValue>>,
    phase: Lenient<String>,
}

#[derive(Deserialize)]
struct Content {
    #[serde(rename = "type", default)]
    kind: String,
    text: Option<String>,
    refusal: Option<String>,
}

impl Answering {
    pub(crate) fn new(origin: String, limits: AnswerLimits) -> Self {
        Self {
            origin,
            items: Vec::new(),
            kept: Size::within(limits),
            streamed: Size::within(limits),
            arguments: BTreeMap::new(),
            stop: Stop::Finished,
            usage: Usage::default(),
            ended: false,
        }
    }

    fn end(&mut self, response: Option<&RawValue>) -> Result<Step, StreamError> {
        let response: Response = match response {
            Some(response) => serde_json::from_str(response.get())?,
            None => Response::default(),
        };
        if let Some(tokens) = response.usage {
            let cached = tokens.input_tokens_details.unwrap_or_default();
            self.usage = cached.usage(tokens.input_tokens, tokens.output_tokens);
        }
        match response
            .incomplete_details
            .and_then(|details| details.reason)
        {
            Some(reason) if reason == "content_filter" => self.stop = Stop::Refused,
            Some(_) => self.stop = Stop::Length,
            None => {}
        }
        // Some servers say nothing of single items and everything at the end.
        if let (true, Some(output)) = (self.items.is_empty(), response.output) {
            for (place, item) in (0..).zip(&output) {
                self.keep(place, item)?;
            }
        }
        self.ended = true;
        Ok(Step::Done)
    }

    fn keep(&mut self, place: u64, item: &RawValue) -> Result<(), StreamError> {
        let json = item.get();
        self.kept.grow_block(json.len())?;
        // The arguments are within the item, so most need not be looked at.
        if self.kept.check_arguments(json.len()).is_err() {
            let arguments = read(json).arguments;
            let arguments = arguments.map(|arguments| arguments_in(arguments.get()).len());
            self.kept.check_arguments(arguments.unwrap_or(0))?;
        }
        self.items.push((place, json.to_owned()));
        Ok(())
    }

    fn count_arguments(&mut self, place: u64, more: usize) -> Result<(), StreamError> {
        let before = self.arguments.get(&place).copied();
        if before.is_none() {
            self.streamed.grow_block(0)?;
        }
        let before = before.unwrap_or(0);
        self.streamed.grow_arguments(before, more)?;
        self.arguments.insert(place, before + more);
        Ok(())
    }
}

impl Fold for Answering {
    fn event(&mut self, data: &str, on_event: OnEvent<'_>) -> Result<Step, StreamError> {
        // Some servers end the stream as Chat does; it has ended before.
        if data == "[DONE]" {
            return Ok(Step::More);
        }
        let event: Event<'_> = serde_json::from_str(data)?;
        let delta = || {
            let delta = event.delta.map(RawValue::get).unwrap_or_default();
            serde_json::from_str::<String>(delta).unwrap_or_default()
        };
        match &*event.kind {
            "response.output_text.delta" | "response.refusal.delta" => {
                let delta = delta();
                self.streamed.grow(delta.len())?;
                on_event(AnswerEvent::Text(&delta));
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                let delta = delta();
                self.streamed.grow(delta.len())?;
                on_event(AnswerEvent::Reasoning(&delta));
            }
            "response.function_call_arguments.delta" => {
                self.count_arguments(event.output_index, delta().len())?;
                on_event(AnswerEvent::KeepAlive);
            }
            "response.output_item.added" => {
                self.streamed.grow_block(0)?;
                let output = event.item.map(|item| read(item.get())).unwrap_or_default();
                match (output.kind.as_str(), output.name.0) {
                    ("function_call", Some(name)) => on_event(AnswerEvent::Call(&name)),
                    _ => on_event(AnswerEvent::KeepAlive),
                }
            }
            "response.output_item.done" => {
                if let Some(item) = event.item {
                    self.keep(event.output_index, item)?;
                }
            }
            "response.completed" | "response.incomplete" => return self.end(event.response),
            "response.failed" => {
                let response = event.response.map_or("{}", RawValue::get);
                return Err(StreamError::provider_error_in(response)?);
            }
            "error" => return Err(StreamError::provider_error_in(data)?),
            // Pieces of other things count as well: something is happening.
            _ => {
                self.streamed.grow(delta().len())?;
                on_event(AnswerEvent::KeepAlive);
            }
        }
        Ok(Step::More)
    }

    fn size(&self) -> usize {
        self.streamed.bytes().saturating_add(self.kept.bytes())
    }

    fn is_whole(&self) -> bool {
        self.ended
    }

    fn folded(mut self: Box<Self>) -> Folded {
        self.items.sort_by_key(|(place, _)| *place);
        let mut blocks = Vec::new();
        let mut stop = self.stop;
        for (_, json) in self.items {
            if !push_blocks(&mut blocks, json, &self.origin) {
                stop = Stop::Refused;
            }
        }
        Folded::new(blocks, stop, self.usage)
    }
}

fn read(item: &str) -> Output {
    serde_json::from_str(item).unwrap_or_default()
}

/// Whether the item is anything but a refusal.
fn push_blocks(blocks: &mut Vec<Block>, json: String, origin: &str) -> bool {
    let output = read(&json);
    let raw = |json| raw(origin, json);
    match output.kind.as_str() {
        "message" => {
            let mark = output.phase.0.map(|phase| Mark { phase });
            let mark = mark.and_then(|mark| serde_json::to_string(&mark).ok());
            blocks.extend(mark.map(|json| Block::Other(raw(json))));
            let contents = output.content.0.unwrap_or_default();
            let refuses = contents.iter().any(|content| content.kind == "refusal");
            let texts = contents
                .into_iter()
                .filter_map(|content| content.text.or(content.refusal));
            blocks.extend(texts.map(Block::Text));
            return !refuses;
        }
        "reasoning" => {
            let thoughts =
                [output.summary, output.content].map(|parts| parts.0.unwrap_or_default());
            let text = thoughts
                .iter()
                .flatten()
                .filter_map(|part| part.text.as_deref());
            // Without its content it is of no use to the provider, which stores nothing.
            let has_content = output.encrypted_content.0.is_some() || !thoughts[1].is_empty();
            blocks.push(Block::Reasoning {
                text: text.collect::<Vec<_>>().join("\n\n"),
                raw: has_content.then(|| raw(json)),
            });
        }
        "function_call" => blocks.push(Block::Call(Call {
            id: output.call_id.0.or(output.id.0).unwrap_or_default(),
            name: output.name.0.unwrap_or_default(),
            input: output
                .arguments
                .map(|arguments| arguments_in(arguments.get()))
                .unwrap_or_default(),
        })),
        _ => blocks.push(Block::Other(raw(json))),
    }
    true
}

#[cfg(test)]
mod tests {
    use asyncagents_core::agent::Turn;
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;
    use crate::wire::{
        Wire::Responses,
        testing::{answered, call, folded, play, raw, sent},
    };

    fn done(place: u64, item: Value) -> Value {
        json!({"type": "response.output_item.done", "output_index": place, "item": item})
    }

    fn completed() -> Value {
        json!({"type": "response.completed", "response": {"usage": {
            "input_tokens": 100, "output_tokens": 9,
            "input_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 30},
        }}})
    }

    #[test]
    fn items_are_kept_in_order_and_unknown_ones_as_they_came() {
        let events = [
            json!({"type": "response.a_new_thing", "delta": {"x": 1}}),
            done(
                2,
                json!({"type": "function_call", "call_id": "c1", "name": "run", "arguments": "{}"}),
            ),
            done(
                0,
                json!({"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "e"}),
            ),
            done(1, json!({"type": "hologram", "beam": 1})),
            completed(),
        ];
        let answer = folded(Responses, &events);
        let here = "here@house/m";
        assert_eq!(
            answer.blocks,
            [
                Block::Reasoning {
                    text: "hm".to_owned(),
                    raw: Some(raw(
                        here,
                        r#"{"encrypted_content":"e","id":"r","summary":[{"text":"hm","type":"summary_text"}],"type":"reasoning"}"#
                    )),
                },
                Block::Other(raw(here, r#"{"beam":1,"type":"hologram"}"#)),
                Block::Call(call("c1", "run", "{}")),
            ]
        );
        let usage = Usage {
            input: 10,
            cache_read: 60,
            cache_write: 30,
            output: 9,
        };
        assert_eq!((answer.stop, answer.usage), (Stop::Tools, usage));
    }

    #[test]
    fn a_thought_that_is_stored_nowhere_and_one_that_leads_nowhere_stay_here() {
        let bare = json!({"type": "reasoning", "id": "r", "summary": []});
        let answer = folded(Responses, &[done(0, bare), completed()]);
        let nothing = Block::Reasoning {
            text: String::new(),
            raw: None,
        };
        assert_eq!(answer.blocks, [nothing]);
        let thought = Block::Reasoning {
            text: String::new(),
            raw: Some(raw("here@house/m", r#"{"type":"reasoning"}"#)),
        };
        let turns = [Turn::Said("go".to_owned()), answered(vec![thought])];
        let go = json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]});
        assert_eq!(sent(Responses, &turns), json!([go]));
    }

    #[test]
    fn a_remark_on_the_way_stays_one() {
        let said = |text: &str| json!([{"type": "output_text", "text": text}]);
        let remark = json!({"type": "message", "phase": "commentary", "content": said("I look.")});
        let run =
            json!({"type": "function_call", "call_id": "c", "name": "run", "arguments": "{}"});
        let events = [done(0, remark), done(1, run.clone()), completed()];
        let answer = folded(Responses, &events);
        assert_eq!(answer.blocks.len(), 3);
        let sent = sent(Responses, &[answered(answer.blocks)]);
        let remark = json!({"type": "message", "role": "assistant", "phase": "commentary", "content": said("I look.")});
        assert_eq!(sent, json!([remark, run]));
    }

    #[rstest]
    #[case::an_object(json!({"arguments": {"x": 1}}), "{\"x\":1}")]
    #[case::nothing(json!({"arguments": null}), "")]
    #[case::an_odd_neighbour(json!({"arguments": "{}", "id": 7, "summary": "hm"}), "{}")]
    fn a_call_is_not_lost(#[case] mut item: Value, #[case] input: &str) {
        item["type"] = json!("function_call");
        item["call_id"] = json!("c");
        item["name"] = json!("run");
        let answer = folded(Responses, &[done(0, item), completed()]);
        assert_eq!(answer.blocks, [Block::Call(call("c", "run", input))]);
    }

    #[rstest]
    #[case("response.incomplete", json!({"incomplete_details": {"reason": "max_output_tokens"}}), Stop::Length)]
    #[case("response.incomplete", json!({"incomplete_details": {"reason": "content_filter"}}), Stop::Refused)]
    #[case("response.completed", json!({"output": [{"type": "message", "content": [{"type": "refusal", "refusal": "no"}]}]}), Stop::Refused)]
    #[case("response.completed", json!({"output": [{"type": "message", "content": [{"type": "output_text", "text": "yes"}]}]}), Stop::Finished)]
    fn reasons_to_stop(#[case] kind: &str, #[case] response: Value, #[case] stop: Stop) {
        let answer = folded(Responses, &[json!({"type": kind, "response": response})]);
        assert_eq!(answer.stop, stop);
    }

    #[test]
    fn a_failed_response_is_a_complaint() {
        let error = json!({"code": "rate_limit_exceeded", "message": "slow down"});
        let failed = json!({"type": "response.failed", "response": {"error": error}});
        let trouble = play(Responses, &[failed]).err();
        let error = crate::provider_error::ProviderError {
            status: Some(429),
            code: "rate_limit_exceeded".to_owned(),
            message: "slow down".to_owned(),
            retry_delay: None,
        };
        assert_eq!(trouble, Some(StreamError::Provider(error)));
    }
}
