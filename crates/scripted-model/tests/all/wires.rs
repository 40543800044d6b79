//! What an answer looks like in each protocol.

use asyncagents_scripted_model::{Reply, Wire};
use rstest::rstest;
use serde_json::{Value, json};

use crate::client::{Event, ask, body, client, events, joined, post, serving, stream};

/// Thinking, words and two calls.
fn full() -> Reply {
    Reply::call("bash", json!({"command": "ls"}))
        .and_call("read", json!({"path": "a.rs"}))
        .and_text("Let me look at the files first.")
        .reasoning("The files should tell.")
        .chunk(8)
}

fn names(events: &[Event]) -> Vec<&str> {
    let mut names: Vec<&str> = events.iter().filter_map(|e| e.name.as_deref()).collect();
    names.dedup();
    names
}

#[tokio::test]
async fn anthropic_streams_blocks_one_after_the_other() {
    let server = serving(full()).await;
    let events = stream(&server, Wire::Anthropic).await;
    let block = [
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
    ];
    let mut expected = vec!["message_start", "content_block_start", "ping"];
    expected.extend(&block[1..]);
    expected.extend(block.repeat(3));
    expected.extend(["message_delta", "message_stop"]);
    assert_eq!(names(&events), expected);
    for event in &events {
        assert_eq!(event.json()["type"], event.name.clone().unwrap_or_default());
    }
    let thinking = joined(&events, "/delta/thinking");
    assert_eq!(thinking, "The files should tell.");
    assert!(!joined(&events, "/delta/signature").is_empty());
    let text = joined(&events, "/delta/text");
    assert_eq!(text, "Let me look at the files first.");
    let calls = joined(&events, "/delta/partial_json");
    assert_eq!(calls, r#"{"command":"ls"}{"path":"a.rs"}"#);
    assert_eq!(joined(&events, "/delta/stop_reason"), "tool_use");
}

#[tokio::test]
async fn anthropic_answers_in_one_message() {
    let server = serving(full()).await;
    let (status, message) = ask(&server, Wire::Anthropic).await;
    assert_eq!(status, 200);
    let types: Vec<&Value> = (0..4).map(|i| &message["content"][i]["type"]).collect();
    assert_eq!(types, ["thinking", "text", "tool_use", "tool_use"]);
    assert_eq!(message["content"][2]["input"], json!({"command": "ls"}));
    assert_ne!(message["content"][2]["id"], message["content"][3]["id"]);
    assert_eq!(message["stop_reason"], "tool_use");
}

#[tokio::test]
async fn responses_streams_items_one_after_the_other() {
    let server = serving(full()).await;
    let mut body = body(Wire::Responses, "hello", true);
    body["include"] = json!(["reasoning.encrypted_content"]);
    let response = post(&server, Wire::Responses, &body).await;
    let events = events(&response.text().await.expect("a whole stream"));
    let call = [
        "response.output_item.added",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "response.output_item.done",
    ];
    let mut expected = vec![
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.reasoning_summary_part.added",
        "response.reasoning_summary_text.delta",
        "response.reasoning_summary_text.done",
        "response.reasoning_summary_part.done",
        "response.output_item.done",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
    ];
    expected.extend(call.repeat(2));
    expected.push("response.completed");
    assert_eq!(names(&events), expected);
    for (number, event) in events.iter().enumerate() {
        assert_eq!(event.json()["sequence_number"], number);
        assert_eq!(event.json()["type"], event.name.clone().unwrap_or_default());
    }
    let last = events.last().expect("events").json();
    let output = &last["response"]["output"];
    assert!(output[0]["encrypted_content"].is_string());
    assert_eq!(
        output[1]["content"][0]["text"],
        "Let me look at the files first."
    );
    assert_eq!(output[2]["arguments"], r#"{"command":"ls"}"#);
    assert_ne!(output[2]["call_id"], output[3]["call_id"]);
}

#[tokio::test]
async fn responses_answers_in_one_document_and_keeps_reasoning_to_itself_unless_asked() {
    let server = serving(full()).await;
    let (status, response) = ask(&server, Wire::Responses).await;
    assert_eq!(status, 200);
    assert_eq!(response["status"], "completed");
    let types: Vec<&Value> = (0..4).map(|i| &response["output"][i]["type"]).collect();
    let expected = ["reasoning", "message", "function_call", "function_call"];
    assert_eq!(types, expected);
    assert!(response["output"][0].get("encrypted_content").is_none());
}

#[rstest]
#[case::with_usage(true)]
#[case::without(false)]
#[tokio::test]
async fn chat_streams_chunks_and_ends_with_done(#[case] usage: bool) {
    let server = serving(full()).await;
    let mut body = body(Wire::Chat, "hello", true);
    body["stream_options"] = json!({"include_usage": usage});
    let response = post(&server, Wire::Chat, &body).await;
    let events = events(&response.text().await.expect("a whole stream"));
    let say = |pointer| joined(&events, pointer);
    assert_eq!(say("/choices/0/delta/role"), "assistant");
    let reasoning = say("/choices/0/delta/reasoning_content");
    assert_eq!(reasoning, "The files should tell.");
    let text = say("/choices/0/delta/content");
    assert_eq!(text, "Let me look at the files first.");
    let called = say("/choices/0/delta/tool_calls/0/function/name");
    assert_eq!(called, "bashread");
    let arguments = say("/choices/0/delta/tool_calls/0/function/arguments");
    assert_eq!(arguments, r#"{"command":"ls"}{"path":"a.rs"}"#);
    assert_eq!(say("/choices/0/finish_reason"), "tool_calls");
    let [.., before, done] = events.as_slice() else {
        panic!("too few events")
    };
    assert_eq!(done.data, "[DONE]");
    assert_eq!(before.json()["usage"].is_object(), usage);
    assert_eq!(before.json()["choices"] == json!([]), usage);
}

#[tokio::test]
async fn chat_answers_in_one_document() {
    let server = serving(full()).await;
    let (status, completion) = ask(&server, Wire::Chat).await;
    assert_eq!(status, 200);
    let message = &completion["choices"][0]["message"];
    assert_eq!(message["content"], "Let me look at the files first.");
    assert_eq!(message["reasoning_content"], "The files should tell.");
    let calls = &message["tool_calls"];
    assert_eq!(calls[1]["function"]["arguments"], r#"{"path":"a.rs"}"#);
}

#[tokio::test]
async fn gemini_streams_answers_of_one_piece_each() {
    let server = serving(full()).await;
    let events = stream(&server, Wire::Gemini).await;
    let parts: Vec<Value> = (events.iter())
        .map(|event| event.json()["candidates"][0]["content"]["parts"][0].clone())
        .collect();
    let said = |thought: bool| -> String {
        let texts = parts
            .iter()
            .filter(|part| (part["thought"] == true) == thought);
        texts.filter_map(|part| part["text"].as_str()).collect()
    };
    assert_eq!(said(true), "The files should tell.");
    assert_eq!(said(false), "Let me look at the files first.");
    assert!(parts.iter().filter(|part| part["text"].is_string()).count() > 6);
    let calls = parts.iter().map(|part| &part["functionCall"]);
    let calls: Vec<&Value> = calls.filter(|call| call.is_object()).collect();
    assert_eq!(calls[0]["name"], "bash");
    assert_eq!(calls[0]["args"], json!({"command": "ls"}));
    assert_eq!(calls[1]["args"], json!({"path": "a.rs"}));
    assert_ne!(calls[0]["id"], calls[1]["id"]);
    // Only the last one says that it is over, and what it took.
    let (last, before) = events.split_last().expect("events");
    let reason = "/candidates/0/finishReason";
    assert_eq!(last.json().pointer(reason), Some(&json!("STOP")));
    assert_eq!(joined(before, reason), "");
    let usage = &last.json()["usageMetadata"];
    assert!(usage["thoughtsTokenCount"].as_u64() > Some(0), "{usage}");
}

#[tokio::test]
async fn gemini_answers_in_one_document() {
    let server = serving(full()).await;
    let (status, answer) = ask(&server, Wire::Gemini).await;
    assert_eq!(status, 200);
    let parts = &answer["candidates"][0]["content"]["parts"];
    assert_eq!(parts[0]["thought"], true);
    assert_eq!(parts[1]["text"], "Let me look at the files first.");
    assert_eq!(parts[3]["functionCall"]["args"], json!({"path": "a.rs"}));
    assert_eq!(answer["modelVersion"], "m");
}

#[rstest]
#[case::anthropic_length(Wire::Anthropic, "max_tokens", "/stop_reason", "max_tokens")]
#[case::anthropic_refusal(Wire::Anthropic, "refusal", "/stop_reason", "refusal")]
#[case::anthropic_own(Wire::Anthropic, "pause_turn", "/stop_reason", "pause_turn")]
#[case::responses_length(
    Wire::Responses,
    "max_tokens",
    "/incomplete_details/reason",
    "max_output_tokens"
)]
#[case::responses_refusal(Wire::Responses, "refusal", "/output/0/content/0/refusal", "No more.")]
#[case::chat_length(Wire::Chat, "max_tokens", "/choices/0/finish_reason", "length")]
#[case::chat_refusal(Wire::Chat, "refusal", "/choices/0/message/refusal", "No more.")]
#[case::gemini_length(Wire::Gemini, "max_tokens", "/candidates/0/finishReason", "MAX_TOKENS")]
#[case::gemini_refusal(Wire::Gemini, "refusal", "/candidates/0/finishReason", "SAFETY")]
#[tokio::test]
async fn each_protocol_has_its_own_word_for_an_early_end(
    #[case] wire: Wire,
    #[case] stop: &str,
    #[case] pointer: &str,
    #[case] word: &str,
) {
    let server = serving(Reply::text("No more.").stop(stop)).await;
    let (_, answer) = ask(&server, wire).await;
    assert_eq!(answer.pointer(pointer), Some(&json!(word)), "{answer}");
}

#[tokio::test]
async fn a_response_cut_short_ends_with_the_event_for_it() {
    let server = serving(Reply::text("And so").stop("max_tokens")).await;
    let events = stream(&server, Wire::Responses).await;
    let last = events.last().expect("events");
    assert_eq!(last.name.as_deref(), Some("response.incomplete"));
    assert_eq!(last.json()["response"]["status"], "incomplete");
}

#[rstest]
#[case::anthropic(Wire::Anthropic, "/delta/partial_json")]
#[case::responses(Wire::Responses, "/delta")]
#[case::chat(Wire::Chat, "/choices/0/delta/tool_calls/0/function/arguments")]
#[tokio::test]
async fn broken_arguments_are_streamed_as_they_are(#[case] wire: Wire, #[case] pointer: &str) {
    let raw = r#"{"command": "ls"#;
    let server = serving(Reply::text("").raw_call("bash", raw)).await;
    assert_eq!(joined(&stream(&server, wire).await, pointer), raw);
}

#[tokio::test]
async fn the_list_of_models_has_one() {
    let server = serving(full()).await;
    let list = client(&server).get(format!("{}/v1/models", server.url()));
    let list = list.send().await;
    let text = list.expect("a response").text().await.expect("a body");
    let list: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(list["data"].as_array().map(Vec::len), Some(1));
}
