//! Answers in the Responses protocol.

use serde_json::{Value, json};

use super::Event;
use crate::answer::{Answer, Ending, ToolCall};

pub(super) fn events(answer: &Answer) -> Vec<Event> {
    let mut stream = Stream::begin(answer);
    if let Some(reasoning) = &answer.reasoning {
        stream.reasoning(reasoning);
    }
    if let Some(text) = &answer.text {
        stream.message(text);
    }
    for (index, call) in answer.calls.iter().enumerate() {
        stream.call(index, call);
    }
    let (name, response) = ended(answer);
    stream.push(name, json!({"response": response}));
    stream.events
}

pub(super) fn failing_events(answer: &Answer, message: &str) -> Vec<Event> {
    let mut stream = Stream::begin(answer);
    let error = json!({"code": "server_error", "message": message, "param": null});
    stream.push("error", error);
    let mut response = response(answer, "failed");
    response["error"] = json!({"code": "server_error", "message": message});
    stream.push("response.failed", json!({"response": response}));
    stream.events
}

pub(super) fn whole(answer: &Answer) -> Value {
    ended(answer).1
}

/// A stream; every event has the next number.
struct Stream<'a> {
    answer: &'a Answer,
    events: Vec<Event>,
    /// How many items are complete.
    items: usize,
}

impl<'a> Stream<'a> {
    fn begin(answer: &'a Answer) -> Self {
        let mut stream = Self {
            answer,
            events: Vec::new(),
            items: 0,
        };
        let response = response(answer, "in_progress");
        stream.push("response.created", json!({"response": response}));
        stream.push("response.in_progress", json!({"response": response}));
        stream
    }

    fn push(&mut self, name: &'static str, mut data: Value) {
        data["sequence_number"] = self.events.len().into();
        self.events.push(Event::named(name, data));
    }

    /// An event about the item in the making.
    fn push_of_item(&mut self, name: &'static str, id: &str, mut data: Value) {
        data["item_id"] = id.into();
        data["output_index"] = self.items.into();
        self.push(name, data);
    }

    fn open(&mut self, item: Value) {
        let added = json!({"output_index": self.items, "item": item});
        self.push("response.output_item.added", added);
    }

    fn close(&mut self, item: Value) {
        let done = json!({"output_index": self.items, "item": item});
        self.push("response.output_item.done", done);
        self.items += 1;
    }

    fn reasoning(&mut self, text: &str) {
        let id = reasoning_id(self.answer);
        let part = |text: &str| json!({"type": "summary_text", "text": text});
        let mut empty = reasoning_item(self.answer, text);
        empty["summary"] = json!([]);
        self.open(empty);
        let added = json!({"summary_index": 0, "part": part("")});
        self.push_of_item("response.reasoning_summary_part.added", &id, added);
        for piece in self.answer.pieces(text) {
            let delta = json!({"summary_index": 0, "delta": piece});
            self.push_of_item("response.reasoning_summary_text.delta", &id, delta);
        }
        let done = json!({"summary_index": 0, "text": text});
        self.push_of_item("response.reasoning_summary_text.done", &id, done);
        let done = json!({"summary_index": 0, "part": part(text)});
        self.push_of_item("response.reasoning_summary_part.done", &id, done);
        self.close(reasoning_item(self.answer, text));
    }

    fn message(&mut self, text: &str) {
        let answer = self.answer;
        let id = message_id(answer);
        self.open(json!({
            "id": id,
            "type": "message",
            "status": "in_progress",
            "role": "assistant",
            "content": [],
        }));
        let added = json!({"content_index": 0, "part": text_part(answer, "")});
        self.push_of_item("response.content_part.added", &id, added);
        let refused = answer.ending == Ending::Refusal;
        for piece in answer.pieces(text) {
            if refused {
                let delta = json!({"content_index": 0, "delta": piece});
                self.push_of_item("response.refusal.delta", &id, delta);
            } else {
                let delta = json!({"content_index": 0, "delta": piece, "logprobs": []});
                self.push_of_item("response.output_text.delta", &id, delta);
            }
        }
        if refused {
            let done = json!({"content_index": 0, "refusal": text});
            self.push_of_item("response.refusal.done", &id, done);
        } else {
            let done = json!({"content_index": 0, "text": text, "logprobs": []});
            self.push_of_item("response.output_text.done", &id, done);
        }
        let done = json!({"content_index": 0, "part": text_part(answer, text)});
        self.push_of_item("response.content_part.done", &id, done);
        self.close(message_item(answer, text));
    }

    fn call(&mut self, index: usize, call: &ToolCall) {
        let id = call_item_id(self.answer, index);
        let mut empty = call_item(self.answer, index, call);
        empty["status"] = "in_progress".into();
        empty["arguments"] = "".into();
        self.open(empty);
        for piece in self.answer.argument_pieces(&call.arguments) {
            let delta = json!({"delta": piece});
            self.push_of_item("response.function_call_arguments.delta", &id, delta);
        }
        let (_, name) = namespace_and_name(&call.name);
        let done = json!({"arguments": call.arguments, "name": name});
        self.push_of_item("response.function_call_arguments.done", &id, done);
        self.close(call_item(self.answer, index, call));
    }
}

/// The last event's name and the complete response.
fn ended(answer: &Answer) -> (&'static str, Value) {
    let (name, status) = match incomplete_reason(answer) {
        None => ("response.completed", "completed"),
        Some(_) => ("response.incomplete", "incomplete"),
    };
    let mut response = response(answer, status);
    if let Some(reason) = incomplete_reason(answer) {
        response["incomplete_details"] = json!({"reason": reason});
    }
    response["output"] = output(answer);
    response["usage"] = usage(answer);
    (name, response)
}

fn response(answer: &Answer, status: &str) -> Value {
    json!({
        "id": format!("resp_{:08}", answer.number),
        "object": "response",
        "created_at": answer.created,
        "status": status,
        "background": false,
        "error": null,
        "incomplete_details": null,
        "instructions": null,
        "max_output_tokens": null,
        "metadata": {},
        "model": answer.model,
        "output": [],
        "parallel_tool_calls": true,
        "previous_response_id": null,
        "reasoning": {"effort": null, "summary": null},
        "store": false,
        "temperature": 1.0,
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": null,
        "user": null,
    })
}

fn output(answer: &Answer) -> Value {
    let mut items = Vec::new();
    items.extend(
        answer
            .reasoning
            .iter()
            .map(|text| reasoning_item(answer, text)),
    );
    items.extend(answer.text.iter().map(|text| message_item(answer, text)));
    let calls = answer.calls.iter().enumerate();
    items.extend(calls.map(|(index, call)| call_item(answer, index, call)));
    items.into()
}

fn reasoning_item(answer: &Answer, text: &str) -> Value {
    let mut item = json!({
        "id": reasoning_id(answer),
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": text}],
    });
    if answer.wants.encrypted_reasoning {
        item["encrypted_content"] = format!("scripted-reasoning-{:08}", answer.number).into();
    }
    item
}

fn message_item(answer: &Answer, text: &str) -> Value {
    let whole = incomplete_reason(answer).is_none() || !answer.calls.is_empty();
    json!({
        "id": message_id(answer),
        "type": "message",
        "status": if whole { "completed" } else { "incomplete" },
        "role": "assistant",
        "content": [text_part(answer, text)],
    })
}

fn call_item(answer: &Answer, index: usize, call: &ToolCall) -> Value {
    let whole = incomplete_reason(answer).is_none() || index + 1 < answer.calls.len();
    let (namespace, name) = namespace_and_name(&call.name);
    let mut item = json!({
        "id": call_item_id(answer, index),
        "type": "function_call",
        "status": if whole { "completed" } else { "incomplete" },
        "call_id": call.id,
        "name": name,
        "arguments": call.arguments,
    });
    if let Some(namespace) = namespace {
        item["namespace"] = namespace.into();
    }
    item
}

/// Tools of an MCP server are in a namespace in this protocol: `mcp__files/read` in a script.
fn namespace_and_name(name: &str) -> (Option<&str>, &str) {
    match name.split_once('/') {
        Some((namespace, name)) => (Some(namespace), name),
        None => (None, name),
    }
}

fn text_part(answer: &Answer, text: &str) -> Value {
    match answer.ending {
        Ending::Refusal => json!({"type": "refusal", "refusal": text}),
        Ending::Done | Ending::Calls | Ending::MaxTokens | Ending::Other(_) => {
            json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
        }
    }
}

fn usage(answer: &Answer) -> Value {
    let usage = answer.usage;
    json!({
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cached},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.input + usage.output,
    })
}

fn incomplete_reason(answer: &Answer) -> Option<&str> {
    match &answer.ending {
        Ending::Done | Ending::Calls | Ending::Refusal => None,
        Ending::MaxTokens => Some("max_output_tokens"),
        Ending::Other(reason) => Some(reason),
    }
}

fn reasoning_id(answer: &Answer) -> String {
    format!("rs_{:08}", answer.number)
}

fn message_id(answer: &Answer) -> String {
    format!("msg_{:08}", answer.number)
}

fn call_item_id(answer: &Answer, index: usize) -> String {
    format!("fc_{:08}_{index}", answer.number)
}
