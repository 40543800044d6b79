//! Answers in the Messages protocol.

use serde_json::{Value, json};

use super::{Event, Failure};
use crate::answer::{Answer, Ending, ToolCall};

pub(super) fn events(answer: &Answer) -> Vec<Event> {
    let mut blocks = Blocks::begin(answer);
    if let Some(reasoning) = &answer.reasoning {
        blocks.open(json!({"type": "thinking", "thinking": "", "signature": ""}));
        for piece in answer.pieces(reasoning) {
            blocks.delta(json!({"type": "thinking_delta", "thinking": piece}));
        }
        blocks.delta(json!({"type": "signature_delta", "signature": signature(answer)}));
        blocks.close();
    }
    if let Some(text) = &answer.text {
        blocks.open(json!({"type": "text", "text": ""}));
        for piece in answer.pieces(text) {
            blocks.delta(json!({"type": "text_delta", "text": piece}));
        }
        blocks.close();
    }
    for call in &answer.calls {
        blocks.open(json!({"type": "tool_use", "id": call.id, "name": call.name, "input": {}}));
        blocks.delta(json!({"type": "input_json_delta", "partial_json": ""}));
        for piece in answer.argument_pieces(&call.arguments) {
            blocks.delta(json!({"type": "input_json_delta", "partial_json": piece}));
        }
        blocks.close();
    }
    blocks.end(answer)
}

pub(super) fn failing_events(answer: &Answer, message: &str) -> Vec<Event> {
    let error = json!({"error": {"type": "overloaded_error", "message": message}});
    vec![message_start(answer), Event::named("error", error)]
}

pub(super) fn whole(answer: &Answer) -> Value {
    let mut content = Vec::new();
    if let Some(reasoning) = &answer.reasoning {
        let signature = signature(answer);
        content.push(json!({"type": "thinking", "thinking": reasoning, "signature": signature}));
    }
    if let Some(text) = &answer.text {
        content.push(json!({"type": "text", "text": text}));
    }
    content.extend(answer.calls.iter().map(tool_use));
    let mut message = message(answer, answer.usage.output);
    message["content"] = content.into();
    message["stop_reason"] = stop_reason(answer).into();
    message
}

pub(super) fn failure(failure: &Failure, request_id: &str) -> Value {
    let usual = match failure.status {
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        504 => "timeout_error",
        529 => "overloaded_error",
        500.. => "api_error",
        _ => "invalid_request_error",
    };
    let kind = failure.code.as_deref().unwrap_or(usual);
    json!({
        "type": "error",
        "error": {"type": kind, "message": failure.message},
        "request_id": request_id,
    })
}

/// The content blocks of a stream, one after the other.
struct Blocks {
    events: Vec<Event>,
    index: usize,
}

impl Blocks {
    fn begin(answer: &Answer) -> Self {
        Self {
            events: vec![message_start(answer)],
            index: 0,
        }
    }

    fn open(&mut self, block: Value) {
        let start = json!({"index": self.index, "content_block": block});
        self.events.push(Event::named("content_block_start", start));
        if self.index == 0 {
            self.events.push(Event::named("ping", json!({})));
        }
    }

    fn delta(&mut self, delta: Value) {
        let delta = json!({"index": self.index, "delta": delta});
        self.events.push(Event::named("content_block_delta", delta));
    }

    fn close(&mut self) {
        let stop = json!({"index": self.index});
        self.events.push(Event::named("content_block_stop", stop));
        self.index += 1;
    }

    fn end(mut self, answer: &Answer) -> Vec<Event> {
        let delta = json!({
            "delta": {"stop_reason": stop_reason(answer), "stop_sequence": null},
            "usage": usage(answer, answer.usage.output),
        });
        self.events.push(Event::named("message_delta", delta));
        self.events.push(Event::named("message_stop", json!({})));
        self.events
    }
}

fn message_start(answer: &Answer) -> Event {
    // The real server has made one token when it says this.
    let message = message(answer, answer.usage.output.min(1));
    Event::named("message_start", json!({"message": message}))
}

fn message(answer: &Answer, output: u64) -> Value {
    json!({
        "id": format!("msg_{:08}", answer.number),
        "type": "message",
        "role": "assistant",
        "model": answer.model,
        "content": [],
        "stop_reason": null,
        "stop_sequence": null,
        "usage": usage(answer, output),
    })
}

/// Here the input is only what was neither read from the cache nor written to it.
fn usage(answer: &Answer, output: u64) -> Value {
    let usage = answer.usage;
    json!({
        "input_tokens": usage.input - usage.cached - usage.written,
        "cache_read_input_tokens": usage.cached,
        "cache_creation_input_tokens": usage.written,
        "output_tokens": output,
    })
}

/// Outside a stream, input that is no JSON cannot be said; it becomes an empty object.
fn tool_use(call: &ToolCall) -> Value {
    let input = serde_json::from_str(&call.arguments).unwrap_or_else(|_| json!({}));
    json!({"type": "tool_use", "id": call.id, "name": call.name, "input": input})
}

fn stop_reason(answer: &Answer) -> &str {
    match &answer.ending {
        Ending::Done => "end_turn",
        Ending::Calls => "tool_use",
        Ending::MaxTokens => "max_tokens",
        Ending::Refusal => "refusal",
        Ending::Other(reason) => reason,
    }
}

fn signature(answer: &Answer) -> String {
    format!("scripted-signature-{:08}", answer.number)
}
