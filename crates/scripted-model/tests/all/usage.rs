//! Token counts, in each protocol's own shape.

use asyncagents_scripted_model::{ModelServer, Reply, Wire};
use rstest::rstest;
use serde_json::{Value, json};

use crate::client::{body, document, joined, post, serving, stream};

const WORDS: usize = 400;

async fn usage(server: &ModelServer, wire: Wire, body: &Value) -> Value {
    let name = match wire {
        Wire::Anthropic | Wire::Responses | Wire::Chat => "usage",
        Wire::Gemini => "usageMetadata",
    };
    document(post(server, wire, body).await).await.1[name].clone()
}

/// All tokens of the prompt, and those of them from the cache.
fn prompt(wire: Wire, usage: &Value) -> (u64, u64) {
    let at = |pointer: &str| usage.pointer(pointer).and_then(Value::as_u64);
    let number = |pointer: &str| at(pointer).expect("a number");
    match wire {
        Wire::Anthropic => {
            let cached = number("/cache_read_input_tokens");
            let written = number("/cache_creation_input_tokens");
            (number("/input_tokens") + cached + written, cached)
        }
        Wire::Responses => (
            number("/input_tokens"),
            number("/input_tokens_details/cached_tokens"),
        ),
        Wire::Chat => (
            number("/prompt_tokens"),
            number("/prompt_tokens_details/cached_tokens"),
        ),
        Wire::Gemini => (
            number("/promptTokenCount"),
            at("/cachedContentTokenCount").unwrap_or_default(),
        ),
    }
}

#[rstest]
fn the_beginning_seen_before_comes_from_the_cache(
    #[values(Wire::Anthropic, Wire::Responses, Wire::Chat, Wire::Gemini)] wire: Wire,
) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let server = serving(Reply::text("ok")).await;
        let long = "word".repeat(WORDS);
        let ask = async |model: &str, text: &str| {
            let mut body = body(wire, text, false);
            body["model"] = model.into();
            prompt(wire, &usage(&server, wire, &body).await)
        };
        assert_eq!(ask("m", &long).await, (401, 0));
        assert_eq!(ask("m", &format!("{long} and more")).await, (403, 400));
        assert_eq!(ask("m", "something else").await.1, 0);
        assert_eq!(ask("another", &long).await.1, 0);
    });
}

#[tokio::test]
async fn anthropic_tells_what_it_wrote_to_the_cache_when_asked_to() {
    let server = serving(Reply::text("ok")).await;
    let mut body = body(Wire::Anthropic, &"word".repeat(WORDS), false);
    body["system"] =
        json!([{"type": "text", "text": "brief", "cache_control": {"type": "ephemeral"}}]);
    let first = usage(&server, Wire::Anthropic, &body).await;
    assert_eq!(first["cache_creation_input_tokens"], 402);
    assert_eq!(first["cache_read_input_tokens"], 0);
    let second = usage(&server, Wire::Anthropic, &body).await;
    assert_eq!(second["cache_read_input_tokens"], 401);
}

#[tokio::test]
async fn counts_from_the_script_are_said_as_they_are() {
    let server = serving(Reply::text("ok").reasoning("hm").usage(100, 60, 7)).await;
    let message = usage(&server, Wire::Anthropic, &body(Wire::Anthropic, "a", false)).await;
    let expected = json!({
        "input_tokens": 40,
        "cache_read_input_tokens": 60,
        "cache_creation_input_tokens": 0,
        "output_tokens": 7,
    });
    assert_eq!(message, expected);
    let response = usage(&server, Wire::Responses, &body(Wire::Responses, "a", false)).await;
    let expected = json!({
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 60},
        "output_tokens": 7,
        "output_tokens_details": {"reasoning_tokens": 1},
        "total_tokens": 107,
    });
    assert_eq!(response, expected);
    let content = usage(&server, Wire::Gemini, &body(Wire::Gemini, "a", false)).await;
    let expected = json!({
        "promptTokenCount": 100,
        "cachedContentTokenCount": 60,
        "candidatesTokenCount": 6,
        "thoughtsTokenCount": 1,
        "totalTokenCount": 107,
    });
    assert_eq!(content, expected);
}

#[tokio::test]
async fn a_text_of_many_letters_comes_in_many_pieces() {
    let text = "ä".repeat(100);
    let server = serving(Reply::text(&text).chunk(10)).await;
    let events = stream(&server, Wire::Chat).await;
    let content = "/choices/0/delta/content";
    let pieces = events.iter().filter(|event| {
        let json = event.json();
        let piece = json.pointer(content).and_then(Value::as_str);
        piece.is_some_and(|piece| piece.chars().count() == 10)
    });
    assert_eq!(pieces.count(), 10);
    assert_eq!(joined(&events, content), text);
}
