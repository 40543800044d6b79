//! Answers in Gemini's protocol.

use serde_json::{Value, json};

use super::{Event, Failure};
use crate::answer::{Answer, Ending, ToolCall};

pub(super) fn events(answer: &Answer) -> Vec<Event> {
    let mut events = Vec::new();
    let mut push = |part| events.push(Event::plain(chunk(answer, &[part], None)));
    if let Some(reasoning) = &answer.reasoning {
        for piece in answer.pieces(reasoning) {
            push(json!({"text": piece, "thought": true}));
        }
    }
    if let Some(text) = &answer.text {
        for piece in answer.pieces(text) {
            push(json!({"text": piece}));
        }
    }
    // A call comes in one piece here.
    for call in &answer.calls {
        push(call_part(call));
    }
    let finish = Some(finish_reason(answer));
    events.push(Event::plain(chunk(answer, &[json!({"text": ""})], finish)));
    events
}

pub(super) fn failing_events(answer: &Answer, message: &str) -> Vec<Event> {
    let opening = chunk(answer, &[json!({"text": ""})], None);
    let error = failure(&Failure {
        status: 503,
        code: None,
        message: message.to_owned(),
    });
    vec![Event::plain(opening), Event::plain(error)]
}

pub(super) fn whole(answer: &Answer) -> Value {
    let reasoning = answer.reasoning.iter();
    let mut parts: Vec<Value> = reasoning
        .map(|text| json!({"text": text, "thought": true}))
        .collect();
    parts.extend(answer.text.iter().map(|text| json!({"text": text})));
    parts.extend(answer.calls.iter().map(call_part));
    chunk(answer, &parts, Some(finish_reason(answer)))
}

pub(super) fn failure(failure: &Failure) -> Value {
    let usual = match failure.status {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        503 => "UNAVAILABLE",
        504 => "DEADLINE_EXCEEDED",
        500.. => "INTERNAL",
        _ => "INVALID_ARGUMENT",
    };
    let status = failure.code.as_deref().unwrap_or(usual);
    json!({"error": {"code": failure.status, "message": failure.message, "status": status}})
}

/// Every piece of a stream has the form of a whole answer, and says what was used so far.
fn chunk(answer: &Answer, parts: &[Value], finish: Option<&str>) -> Value {
    let mut candidate = json!({"content": {"role": "model", "parts": parts}, "index": 0});
    if let Some(reason) = finish {
        candidate["finishReason"] = reason.into();
    }
    json!({
        "candidates": [candidate],
        "usageMetadata": usage(answer, finish.is_some()),
        "modelVersion": answer.model,
        "responseId": format!("resp_{:08}", answer.number),
    })
}

/// What was thought is counted beside what was said.
fn usage(answer: &Answer, is_over: bool) -> Value {
    let usage = answer.usage;
    let mut counted = json!({"promptTokenCount": usage.input, "totalTokenCount": usage.input});
    if usage.cached > 0 {
        counted["cachedContentTokenCount"] = usage.cached.into();
    }
    if is_over {
        counted["candidatesTokenCount"] = (usage.output - usage.reasoning).into();
        counted["thoughtsTokenCount"] = usage.reasoning.into();
        counted["totalTokenCount"] = (usage.input + usage.output).into();
    }
    counted
}

/// Arguments that are no JSON cannot be said; they become an empty object.
fn call_part(call: &ToolCall) -> Value {
    let arguments = serde_json::from_str(&call.arguments).unwrap_or_else(|_| json!({}));
    json!({
        "functionCall": {"id": call.id, "name": call.name, "args": arguments},
        "thoughtSignature": "c2NyaXB0ZWQ=",
    })
}

fn finish_reason(answer: &Answer) -> &str {
    match &answer.ending {
        Ending::Done | Ending::Calls => "STOP",
        Ending::MaxTokens => "MAX_TOKENS",
        Ending::Refusal => "SAFETY",
        Ending::Other(reason) => reason,
    }
}
