//! Too many requests: everybody waits, and then not everybody comes at once.

use std::time::{Duration, Instant};

use asyncagents_models::{ModelError, Models, Wire};
use asyncagents_scripted_model::{ModelServer, Reply, Script, When};
use rstest::rstest;

use super::{ask, house, listen, said, scripted, soon};

#[rstest]
#[tokio::test]
async fn a_wait_that_is_asked_for_is_kept(
    #[values(Wire::Anthropic, Wire::Responses, Wire::Chat)] wire: Wire,
) {
    let script = Script::new()
        .rule(
            When::always().times(1),
            Reply::status(429).retry_after("1").message("Slow down."),
        )
        .rule(When::always(), Reply::text("ok"));
    let (server, model) = scripted(wire, script).await;
    let start = Instant::now();
    let (answer, heard) = soon(listen(&model, &[said("hi")])).await;
    answer.expect("an answer");
    assert!(
        start.elapsed() >= Duration::from_secs(1),
        "{:?}",
        start.elapsed()
    );
    let requests = server.requests();
    assert!(requests[1].at - requests[0].at >= Duration::from_secs(1));
    let provider = model.name().as_str().split('/').next().expect("a provider");
    assert_eq!(
        heard,
        [
            format!("again {provider}: 429, Slow down."),
            "text ok".to_owned()
        ]
    );
}

#[rstest]
#[case::no_wait_at_all(Reply::status(429).retry_after("0"), 750)]
#[case::nothing_said(Reply::status(429), 750)]
#[case::in_words(Reply::status(429).message("Please try again in 1.2s."), 2_400)]
#[tokio::test]
async fn attempts_are_not_burnt(#[case] reply: Reply, #[case] ms: u64) {
    let script = Script::new()
        .rule(When::always().times(2), reply)
        .rule(When::always(), Reply::text("ok"));
    let (server, model) = scripted(Wire::Chat, script).await;
    let start = Instant::now();
    soon(ask(&model, &[said("hi")])).await.expect("an answer");
    assert!(
        start.elapsed() >= Duration::from_millis(ms),
        "{:?}",
        start.elapsed()
    );
    assert_eq!(server.counts().requests, 3);
}

#[tokio::test]
async fn a_wait_that_is_too_long_is_an_error() {
    let reply = Reply::status(429)
        .retry_after("3600")
        .message("Come back later.");
    let script = Script::new().rule(When::always(), reply);
    let (server, model) = scripted(Wire::Responses, script).await;
    let error = soon(ask(&model, &[said("hi")]))
        .await
        .expect_err("an error");
    let overloaded = ModelError::Overloaded {
        provider: "openai".to_owned(),
        attempts: 1,
        why: "429, Come back later.; it asks for a wait of 3600 s".to_owned(),
    };
    assert_eq!(error, overloaded);
    assert_eq!(server.counts().requests, 1);
}

#[tokio::test]
async fn a_storm_of_twenty_goes_through_one_gate() {
    let script = Script::new()
        .rule(
            When::always().times(20),
            Reply::status(429)
                .retry_after("1")
                .delay(Duration::from_secs(1)),
        )
        .rule(
            When::always(),
            Reply::text("ok").delay(Duration::from_millis(20)),
        );
    let server = ModelServer::start(script).await.expect("a server");
    let (settings, name) = house(Wire::Anthropic, &server.url());
    let models = Models::new(settings).expect("models");
    let mut askers = tokio::task::JoinSet::new();
    for _ in 0..20 {
        // Handles of their own share the gate.
        let model = models.clone().resolve(name).expect("a model");
        askers.spawn(async move { ask(&model, &[said("hi")]).await.map(|answer| answer.text()) });
    }
    let answers = soon(askers.join_all()).await;
    assert!(
        answers.iter().all(|answer| answer.as_deref() == Ok("ok")),
        "{answers:?}"
    );
    let requests = server.requests();
    assert_eq!(requests.len(), 40);
    let (storm, calm) = requests.split_at(20);
    assert!(storm.iter().all(|request| request.status == 429));
    let first = calm
        .iter()
        .map(|request| request.at)
        .min()
        .expect("requests");
    let last = storm
        .iter()
        .map(|request| request.at)
        .max()
        .expect("requests");
    assert!(
        first - last >= Duration::from_secs(1),
        "nobody comes back too early"
    );
    // Ten at first, one more with each answer: never the whole crowd again.
    let burst = calm
        .iter()
        .filter(|request| request.at - first < Duration::from_millis(15));
    assert!(burst.count() <= 11);
}
