//! What goes wrong on purpose, in each protocol.

use asyncagents_scripted_model::{Fault, Reply, Wire};
use reqwest::Response;
use rstest::rstest;
use serde_json::json;

use crate::client::{ask, body, events, joined, post, request, serving, stream};

/// What was received before the connection broke; an error if it ended properly.
async fn received_before_break(mut response: Response) -> Result<String, String> {
    let mut received = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(bytes)) => received.extend_from_slice(&bytes),
            Ok(None) => return Err("it ended properly".to_owned()),
            Err(_) => return Ok(String::from_utf8_lossy(&received).into_owned()),
        }
    }
}

#[rstest]
#[tokio::test]
async fn a_cut_stream_breaks_in_the_middle(
    #[values(Wire::Anthropic, Wire::Responses, Wire::Chat, Wire::Gemini)] wire: Wire,
) {
    let healthy = serving(Reply::text("one two three four five six").chunk(3)).await;
    let whole = stream(&healthy, wire).await.len();
    let reply = Reply::fault(Fault::Cut).and_text("one two three four five six");
    let server = serving(reply.chunk(3)).await;
    let response = post(&server, wire, &body(wire, "hello", true)).await;
    assert_eq!(response.status(), 200);
    let received = received_before_break(response).await.expect("a break");
    assert_eq!(events(&received).len(), whole / 2);
}

#[rstest]
#[tokio::test]
async fn a_cut_document_breaks_in_the_middle(
    #[values(Wire::Anthropic, Wire::Responses, Wire::Chat, Wire::Gemini)] wire: Wire,
) {
    let server = serving(Reply::fault(Fault::Cut)).await;
    let response = post(&server, wire, &body(wire, "hello", false)).await;
    let received = received_before_break(response).await.expect("a break");
    assert!(received.starts_with('{'));
}

#[rstest]
#[tokio::test]
async fn a_malformed_stream_has_one_broken_event_and_ends_properly(
    #[values(Wire::Anthropic, Wire::Responses, Wire::Chat, Wire::Gemini)] wire: Wire,
) {
    let server = serving(Reply::fault(Fault::Malformed)).await;
    let events = stream(&server, wire).await;
    let broken = events
        .iter()
        .filter(|event| event.json().is_null() && event.data != "[DONE]");
    assert_eq!(broken.count(), 1);
    assert!(events.len() > 4);
}

#[rstest]
#[tokio::test]
async fn a_hanging_stream_says_one_thing_and_then_nothing_until_the_server_stops(
    #[values(Wire::Anthropic, Wire::Responses, Wire::Chat, Wire::Gemini)] wire: Wire,
) {
    let server = serving(Reply::fault(Fault::Hang)).await;
    let mut response = post(&server, wire, &body(wire, "hello", true)).await;
    let first = response.chunk().await.expect("a chunk").expect("an event");
    assert_eq!(events(&String::from_utf8_lossy(&first)).len(), 1);
    server.stop().await;
    let rest = received_before_break(response).await;
    assert_eq!(rest.as_deref(), Ok(""));
}

#[rstest]
#[case::anthropic(Wire::Anthropic, "/content", "/stop_reason", "end_turn")]
#[case::responses(Wire::Responses, "/output", "/status", "completed")]
#[case::chat(
    Wire::Chat,
    "/choices/0/message/content",
    "/choices/0/finish_reason",
    "stop"
)]
#[case::gemini(
    Wire::Gemini,
    "/candidates/0/content/parts",
    "/candidates/0/finishReason",
    "STOP"
)]
#[tokio::test]
async fn an_empty_answer_is_proper(
    #[case] wire: Wire,
    #[case] content: &str,
    #[case] end: &str,
    #[case] word: &str,
) {
    let server = serving(Reply::fault(Fault::Empty)).await;
    let (status, answer) = ask(&server, wire).await;
    assert_eq!(status, 200);
    let content = answer.pointer(content).expect("a place for content");
    assert!(content.is_null() || content == &json!([]));
    assert_eq!(answer.pointer(end), Some(&json!(word)));
    let streamed = stream(&server, wire).await;
    for place in [
        "/delta",
        "/delta/text",
        "/choices/0/delta/content",
        "/candidates/0/content/parts/0/text",
    ] {
        assert_eq!(joined(&streamed, place), "");
    }
    let last = streamed.last().expect("events");
    let ends = ["message_stop", "response.completed", "[DONE]", "STOP"];
    assert!(ends.iter().any(|end| last.data.contains(end)));
}

#[rstest]
#[case::anthropic(Wire::Anthropic, 529, "/error/message")]
#[case::responses(Wire::Responses, 503, "/response/error/message")]
#[case::chat(Wire::Chat, 503, "/error/message")]
#[case::gemini(Wire::Gemini, 503, "/error/message")]
#[tokio::test]
async fn an_error_event_ends_a_stream_that_began_well(
    #[case] wire: Wire,
    #[case] status: u16,
    #[case] message: &str,
) {
    let server = serving(Reply::fault(Fault::ErrorEvent).message("too busy")).await;
    let events = stream(&server, wire).await;
    let last = events.last().expect("events").json();
    assert_eq!(last.pointer(message), Some(&json!("too busy")), "{last}");
    assert!(events.len() > 1);
    let (refused, body) = ask(&server, wire).await;
    assert_eq!(refused, status);
    assert_eq!(body["error"]["message"], "too busy");
}

#[rstest]
#[tokio::test]
async fn a_dropped_connection_has_no_response(
    #[values(Wire::Anthropic, Wire::Responses, Wire::Chat, Wire::Gemini)] wire: Wire,
    #[values(true, false)] stream: bool,
) {
    let server = serving(Reply::fault(Fault::Drop)).await;
    let sent = request(&server, wire, &body(wire, "hello", stream)).send();
    let error = sent.await.expect_err("no response");
    assert!(error.is_request(), "{error:?}");
    let requests = server.requests();
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].status, 0);
}

#[rstest]
#[case::anthropic_limit(Wire::Anthropic, 429, "/error/type", "rate_limit_error")]
#[case::anthropic_overloaded(Wire::Anthropic, 529, "/error/type", "overloaded_error")]
#[case::anthropic_invalid(Wire::Anthropic, 400, "/error/type", "invalid_request_error")]
#[case::anthropic_broken(Wire::Anthropic, 500, "/error/type", "api_error")]
#[case::responses_limit(Wire::Responses, 429, "/error/code", "rate_limit_exceeded")]
#[case::responses_broken(Wire::Responses, 500, "/error/type", "server_error")]
#[case::chat_limit(Wire::Chat, 429, "/error/code", "rate_limit_exceeded")]
#[case::chat_key(Wire::Chat, 401, "/error/code", "invalid_api_key")]
#[case::gemini_limit(Wire::Gemini, 429, "/error/status", "RESOURCE_EXHAUSTED")]
#[case::gemini_overloaded(Wire::Gemini, 503, "/error/status", "UNAVAILABLE")]
#[case::gemini_invalid(Wire::Gemini, 400, "/error/status", "INVALID_ARGUMENT")]
#[tokio::test]
async fn an_error_is_said_in_the_protocols_own_words(
    #[case] wire: Wire,
    #[case] status: u16,
    #[case] pointer: &str,
    #[case] word: &str,
) {
    let server = serving(Reply::status(status).retry_after("7").message("no")).await;
    let response = post(&server, wire, &body(wire, "hello", true)).await;
    assert_eq!(response.status(), status);
    assert_eq!(response.headers()["retry-after"], "7");
    let text = response.text().await.expect("a body");
    let error: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(error["error"]["message"], "no");
    assert_eq!(error.pointer(pointer), Some(&json!(word)));
}

#[tokio::test]
async fn a_code_from_the_script_replaces_the_usual_one() {
    let server = serving(Reply::status(400).code("context_length_exceeded")).await;
    let (_, error) = ask(&server, Wire::Chat).await;
    assert_eq!(error["error"]["code"], "context_length_exceeded");
}
