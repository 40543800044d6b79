//! Answers in the Chat Completions protocol.

use serde_json::{Value, json};

use super::{Event, Failure, openai_failure};
use crate::answer::{Answer, Ending};

pub(super) fn events(answer: &Answer) -> Vec<Event> {
    let mut events = vec![opening(answer)];
    let mut push = |delta| events.push(Event::plain(chunk(answer, delta, None)));
    if let Some(reasoning) = &answer.reasoning {
        for piece in answer.pieces(reasoning) {
            push(json!({"reasoning_content": piece}));
        }
    }
    if let Some(text) = &answer.text {
        let key = text_key(answer);
        for piece in answer.pieces(text) {
            push(json!({key: piece}));
        }
    }
    for (index, call) in answer.calls.iter().enumerate() {
        push(json!({"tool_calls": [{
            "index": index,
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": ""},
        }]}));
        for piece in answer.argument_pieces(&call.arguments) {
            push(json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}));
        }
    }
    let finish = chunk(answer, json!({}), Some(finish_reason(answer)));
    events.push(Event::plain(finish));
    if answer.wants.usage_chunk {
        events.push(Event::plain(usage_chunk(answer)));
    }
    events.push(Event::plain("[DONE]"));
    events
}

pub(super) fn failing_events(answer: &Answer, message: &str) -> Vec<Event> {
    let failure = Failure {
        status: 503,
        code: None,
        message: message.to_owned(),
    };
    vec![opening(answer), Event::plain(openai_failure(&failure))]
}

pub(super) fn whole(answer: &Answer) -> Value {
    let mut message = json!({"role": "assistant", "content": null, "refusal": null});
    if let Some(text) = &answer.text {
        message[text_key(answer)] = text.as_str().into();
    }
    if let Some(reasoning) = &answer.reasoning {
        message["reasoning_content"] = reasoning.as_str().into();
    }
    if !answer.calls.is_empty() {
        let call = |call: &crate::answer::ToolCall| {
            json!({
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            })
        };
        message["tool_calls"] = answer.calls.iter().map(call).collect();
    }
    json!({
        "id": id(answer),
        "object": "chat.completion",
        "created": answer.created,
        "model": answer.model,
        "choices": [{
            "index": 0,
            "message": message,
            "logprobs": null,
            "finish_reason": finish_reason(answer),
        }],
        "usage": usage(answer),
    })
}

fn opening(answer: &Answer) -> Event {
    let content = match answer.text {
        Some(_) => json!(""),
        None => Value::Null,
    };
    let delta = json!({"role": "assistant", "content": content});
    Event::plain(chunk(answer, delta, None))
}

fn chunk(answer: &Answer, delta: Value, finish: Option<&str>) -> Value {
    let choice = json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish});
    let mut chunk = frame(answer, vec![choice]);
    if answer.wants.usage_chunk {
        chunk["usage"] = Value::Null;
    }
    chunk
}

fn usage_chunk(answer: &Answer) -> Value {
    let mut chunk = frame(answer, vec![]);
    chunk["usage"] = usage(answer);
    chunk
}

fn frame(answer: &Answer, choices: Vec<Value>) -> Value {
    json!({
        "id": id(answer),
        "object": "chat.completion.chunk",
        "created": answer.created,
        "model": answer.model,
        "choices": choices,
    })
}

fn usage(answer: &Answer) -> Value {
    let usage = answer.usage;
    json!({
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    })
}

fn finish_reason(answer: &Answer) -> &str {
    match &answer.ending {
        Ending::Done | Ending::Refusal => "stop",
        Ending::Calls => "tool_calls",
        Ending::MaxTokens => "length",
        Ending::Other(reason) => reason,
    }
}

/// A refusal has a field of its own.
fn text_key(answer: &Answer) -> &'static str {
    match answer.ending {
        Ending::Refusal => "refusal",
        Ending::Done | Ending::Calls | Ending::MaxTokens | Ending::Other(_) => "content",
    }
}

fn id(answer: &Answer) -> String {
    format!("chatcmpl-{:08}", answer.number)
}
