//! What Claude Code, Codex and Gemini CLI want of a server beside answers.

use asyncagents_scripted_model::{ModelServer, Reply, Script, When, Wire};
use reqwest::Response;
use rstest::rstest;
use serde_json::{Value, json};

use crate::client::{body, client, document, events, post, serving, start};

async fn get(server: &ModelServer, path: &str) -> Response {
    let sent = client(server).get(format!("{}{path}", server.url()));
    sent.send().await.expect("a response")
}

async fn count(server: &ModelServer, body: &Value) -> (u16, Value) {
    let url = format!("{}/v1/messages/count_tokens?beta=true", server.url());
    let sent = client(server).post(url).body(body.to_string()).send().await;
    document(sent.expect("a response")).await
}

#[tokio::test]
async fn tokens_are_counted_as_the_answer_counts_them() {
    let server = serving(Reply::text("ok")).await;
    let mut question = body(Wire::Anthropic, &"many words ".repeat(500), false);
    let (_, answer) = document(post(&server, Wire::Anthropic, &question).await).await;
    // Nothing is to be said, so nothing limits it.
    question["max_tokens"] = Value::Null;
    let (status, counted) = count(&server, &question).await;
    assert_eq!(status, 200);
    assert_eq!(counted["input_tokens"], answer["usage"]["input_tokens"]);
    assert_eq!(server.counts().requests, 1, "a count is no question");
}

#[tokio::test]
async fn gemini_has_its_tokens_counted() {
    let server = serving(Reply::text("ok")).await;
    let url = format!("{}/v1beta/models/m:countTokens", server.url());
    let question = body(Wire::Gemini, &"many words ".repeat(500), false);
    let (_, answer) = document(post(&server, Wire::Gemini, &question).await).await;
    // By itself, or as the question that it would be.
    for asked in [&question, &json!({"generateContentRequest": question})] {
        let sent = client(&server).post(&url).body(asked.to_string()).send();
        let (status, counted) = document(sent.await.expect("a response")).await;
        assert_eq!(status, 200);
        let counted = &counted["totalTokens"];
        assert_eq!(counted, &answer["usageMetadata"]["promptTokenCount"]);
    }
    assert_eq!(server.counts().requests, 1, "a count is no question");
}

#[tokio::test]
async fn a_count_of_more_than_two_megabytes_is_made() {
    let server = serving(Reply::text("ok")).await;
    let long = body(Wire::Anthropic, &"a".repeat(4_000_000), false);
    let (_, counted) = count(&server, &long).await;
    assert_eq!(counted["input_tokens"], 1_000_001);
}

#[tokio::test]
async fn a_count_of_nothing_is_refused() {
    let server = serving(Reply::text("ok")).await;
    let (status, error) = count(&server, &json!({"model": "m"})).await;
    assert_eq!(status, 400);
    assert_eq!(error["error"]["message"], "messages: Field required");
}

#[rstest]
#[case::is_there("/", 200)]
#[case::web_socket("/v1/responses", 426)]
#[tokio::test]
async fn what_a_client_tries_first_is_answered(#[case] path: &str, #[case] status: u16) {
    let server = serving(Reply::text("ok")).await;
    assert_eq!(get(&server, path).await.status(), status);
    assert_eq!(server.counts().requests, 0);
}

#[tokio::test]
async fn codex_finds_a_list_of_models_that_leaves_it_its_own() {
    let server = serving(Reply::text("ok")).await;
    let (_, list) = document(get(&server, "/v1/models").await).await;
    assert_eq!(list["models"], json!([]));
}

#[tokio::test]
async fn instructions_in_the_middle_of_a_conversation_are_no_users_words() {
    let script = Script::new().rule(When::always().first("hello"), Reply::text("ok"));
    let server = start(script).await;
    let mut question = body(Wire::Anthropic, "hello", false);
    let system = json!({"role": "system", "content": [{"type": "text", "text": "Be brief."}]});
    let messages = question["messages"].as_array_mut().expect("messages");
    messages.insert(0, system.clone());
    messages.push(system);
    let (status, _) = document(post(&server, Wire::Anthropic, &question).await).await;
    assert_eq!(status, 200);
    let request = &server.requests()[0];
    assert_eq!(request.system(), "Be brief.\nBe brief.");
    assert_eq!(request.last(), "hello");
}

#[tokio::test]
async fn a_tool_of_an_mcp_server_is_called_in_its_namespace() {
    let server = serving(Reply::call("mcp__files/read", json!({"path": "a"}))).await;
    let mut question = body(Wire::Responses, "hello", true);
    let response = post(&server, Wire::Responses, &question).await;
    let events = events(&response.text().await.expect("a whole stream"));
    let last = events.last().expect("events").json();
    let call = &last["response"]["output"][0];
    assert_eq!(
        (&call["namespace"], &call["name"]),
        (&json!("mcp__files"), &json!("read"))
    );
    question["input"] = json!([{"role": "user", "content": "hello"}, call]);
    post(&server, Wire::Responses, &question).await;
    let text = server.requests()[1].text();
    assert_eq!(text, "hello\nmcp__files/read {\"path\":\"a\"}");
}
