//! What goes wrong, and what becomes of it.

use std::time::Duration;

use asyncagents_models::{
    Effort, KeySource, ModelError, Models, Provider, Request, Settings, Wire,
};
use asyncagents_scripted_model::{Fault, ModelServer, Reply, Script, When};
use rstest::rstest;
use tokio::net::TcpListener;

use super::{ask, listen, said, scripted, scripted_with, soon};

#[rstest]
#[tokio::test]
async fn a_broken_answer_is_asked_again(
    #[values(Wire::Anthropic, Wire::Responses, Wire::Chat)] wire: Wire,
    #[values(
        Fault::Cut,
        Fault::Malformed,
        Fault::Hang,
        Fault::ErrorEvent,
        Fault::Drop
    )]
    fault: Fault,
) {
    let script = Script::new()
        .rule(
            When::always().times(1),
            Reply::fault(fault)
                .and_text("This will never be heard to its end.")
                .chunk(4),
        )
        .rule(When::always(), Reply::text("whole"));
    let (server, model) = scripted_with(wire, script, |settings| {
        settings.idle_timeout = Duration::from_millis(200);
    })
    .await;
    let (answer, heard) = soon(listen(&model, &[said("hi")])).await;
    assert_eq!(answer.expect("an answer").text(), "whole");
    assert_eq!(server.counts().requests, 2);
    let again = heard
        .iter()
        .filter(|what| what.starts_with("again"))
        .count();
    assert_eq!(again, 1, "{heard:?}");
    assert_eq!(heard.last().map(String::as_str), Some("text whole"));
}

#[rstest]
#[case(Fault::Cut, "the answer of anthropic was broken off: ")]
#[case(
    Fault::Malformed,
    "the answer of anthropic was broken off: an event is not valid JSON: "
)]
#[case(
    Fault::Hang,
    "the answer of anthropic was broken off: nothing came for 0.2 s (asked 2 times)"
)]
#[case(Fault::ErrorEvent, "anthropic is overloaded: 529, ")]
#[case(Fault::Drop, "the answer of anthropic was broken off: ")]
#[tokio::test]
async fn a_model_that_never_answers_is_a_clear_error(#[case] fault: Fault, #[case] text: &str) {
    let script = Script::new().rule(When::always(), Reply::fault(fault));
    let (server, model) = scripted_with(Wire::Anthropic, script, |settings| {
        settings.idle_timeout = Duration::from_millis(200);
        settings.attempts = 2;
    })
    .await;
    let error = soon(ask(&model, &[said("hi")]))
        .await
        .expect_err("an error");
    assert!(error.to_string().starts_with(text), "{error}");
    assert!(error.to_string().ends_with("(asked 2 times)"), "{error}");
    let transient = matches!(
        error,
        ModelError::Overloaded { .. } | ModelError::Broken { .. }
    );
    assert!(transient, "{error:?}");
    assert_eq!(server.counts().requests, 2);
}

#[rstest]
#[case(408, true)]
#[case(409, true)]
#[case(429, true)]
#[case(500, true)]
#[case(503, true)]
#[case(529, true)]
#[case(400, false)]
#[case(401, false)]
#[case(403, false)]
#[case(404, false)]
#[case(413, false)]
#[tokio::test]
async fn some_statuses_pass_and_some_do_not(
    #[values(Wire::Anthropic, Wire::Responses, Wire::Chat)] wire: Wire,
    #[case] status: u16,
    #[case] passes: bool,
) {
    let script = Script::new()
        .rule(When::always().times(1), Reply::status(status))
        .rule(When::always(), Reply::text("ok"));
    let (server, model) = scripted(wire, script).await;
    let answer = soon(ask(&model, &[said("hi")])).await;
    assert_eq!(answer.is_ok(), passes, "{answer:?}");
    assert_eq!(server.counts().requests, if passes { 2 } else { 1 });
}

#[tokio::test]
async fn an_empty_purse_is_not_a_busy_server() {
    let reply = Reply::status(429)
        .code("insufficient_quota")
        .message("You are out of money.");
    let (server, model) = scripted(Wire::Chat, Script::new().rule(When::always(), reply)).await;
    let error = ask(&model, &[said("hi")]).await.expect_err("an error");
    assert_eq!(
        error.to_string(),
        "deepseek refuses (429): You are out of money."
    );
    assert_eq!(server.counts().requests, 1);
}

#[rstest]
#[case(Wire::Anthropic, Reply::status(400).message("prompt is too long: 201537 tokens > 200000 maximum"))]
#[case(Wire::Anthropic, Reply::status(413).message("Request too large"))]
#[case(Wire::Responses, Reply::status(400).code("context_length_exceeded").message("Too much."))]
#[case(Wire::Chat, Reply::status(400).message("This model's maximum context length is 4096 tokens."))]
#[tokio::test]
async fn a_conversation_that_is_too_long_is_called_so(#[case] wire: Wire, #[case] reply: Reply) {
    let (server, model) = scripted(wire, Script::new().rule(When::always(), reply)).await;
    let error = ask(&model, &[said("hi")]).await.expect_err("an error");
    assert!(error.is_too_long(), "{error}");
    assert_eq!(server.counts().requests, 1);
}

#[rstest]
#[case(
    Wire::Chat,
    422,
    "stream_options",
    "stream_options: Extra inputs are not permitted"
)]
#[case(
    Wire::Chat,
    400,
    "reasoning_effort",
    "Unrecognized request argument: reasoning_effort"
)]
#[case(
    Wire::Anthropic,
    400,
    "cache_control",
    "cache_control: Extra inputs are not permitted"
)]
#[tokio::test]
async fn a_field_that_is_refused_is_left_out_from_then_on(
    #[case] wire: Wire,
    #[case] status: u16,
    #[case] field: &str,
    #[case] message: &str,
) {
    let script = Script::new()
        .rule(
            When::always().times(1),
            Reply::status(status).message(message),
        )
        .rule(When::always(), Reply::text("ok"));
    let (server, model) = scripted(wire, script).await;
    let turns = [said("hi")];
    let request = Request {
        system: "",
        tools: &[],
        turns: &turns,
        inherited: 0,
        no_tools: false,
        max_output: None,
        cache_key: "",
        effort: Some(Effort::Low),
    };
    for _ in 0..2 {
        let answer = soon(model.ask(&request, &mut |_| {})).await;
        assert_eq!(answer.expect("an answer").text(), "ok");
    }
    let sent = server.requests().into_iter();
    let sent: Vec<bool> = sent.map(|request| request.body.contains(field)).collect();
    assert_eq!(sent, [true, false, false]);
}

#[tokio::test]
async fn a_refusal_that_nothing_helps_is_final() {
    let reply =
        Reply::status(400).message("stream_options and cache_control are fine, you are not");
    let (server, model) = scripted(Wire::Chat, Script::new().rule(When::always(), reply)).await;
    let error = ask(&model, &[said("hi")]).await.expect_err("an error");
    assert!(
        matches!(error, ModelError::Refused { status: 400, .. }),
        "{error}"
    );
    assert_eq!(server.counts().requests, 2, "once more without it");
}

/// A port where nobody listens.
async fn nowhere() -> String {
    let socket = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = socket.local_addr().expect("an address");
    format!("http://{address}")
}

#[tokio::test]
async fn an_endpoint_that_is_not_there() {
    let url = nowhere().await;
    let mut settings = Settings {
        attempts: 2,
        ..Settings::default()
    };
    settings.providers.push(Provider {
        name: "house".to_owned(),
        wire: Wire::Chat,
        base_url: format!(
            "{}/v1/?token=secret-query",
            url.replace("://", "://me:password@")
        ),
        key: KeySource::None,
        headers: Vec::new(),
    });
    let models = Models::new(settings).expect("models");
    let model = models.resolve("house/llama").expect("a model");
    let (answer, heard) = soon(listen(&model, &[said("hi")])).await;
    let address = url.trim_start_matches("http://");
    let why = std::net::TcpStream::connect(address).expect_err("nobody there");
    let error = answer.expect_err("an error");
    assert_eq!(
        error.to_string(),
        format!("cannot reach house at {url}/v1: {why}")
    );
    assert_eq!(heard, [format!("again house: {why}")]);
}

#[tokio::test]
async fn an_address_that_is_no_api() {
    let script = Script::new().rule(When::always(), Reply::text("unheard"));
    let server = ModelServer::start(script).await.expect("a server");
    let mut settings = Settings::default();
    settings.providers.push(Provider {
        name: "house".to_owned(),
        wire: Wire::Chat,
        base_url: format!("{}/elsewhere", server.url()),
        key: KeySource::None,
        headers: Vec::new(),
    });
    let models = Models::new(settings).expect("models");
    let model = models.resolve("house/llama").expect("a model");
    let error = ask(&model, &[said("hi")]).await.expect_err("an error");
    let refused = ModelError::Refused {
        provider: "house".to_owned(),
        status: 404,
        message: "no reason given".to_owned(),
        hint: None,
    };
    assert_eq!(error, refused);
}

#[tokio::test]
async fn a_dropped_question_is_cancelled() {
    let script = Script::new().rule(When::always(), Reply::fault(Fault::Hang));
    let (server, model) = scripted(Wire::Anthropic, script).await;
    let asking = tokio::spawn(async move { ask(&model, &[said("hi")]).await });
    soon(server.wait_for(|requests| !requests.is_empty())).await;
    asking.abort();
    assert!(asking.await.is_err());
    // Ends only when all connections are closed.
    soon(server.stop()).await;
}
