//! Nobody sees a key but the provider.

use std::fs;

use asyncagents_models::{KeySource, Models, Provider, Secret, Settings, Wire};
use asyncagents_scripted_model::{Fault, ModelServer, Reply, Script, When};
use rstest::rstest;

use super::{KEY, house, listen, said, scripted_with, soon};

#[rstest]
#[tokio::test]
async fn a_server_that_quotes_the_key_is_not_quoted(
    #[values(Wire::Anthropic, Wire::Responses, Wire::Chat)] wire: Wire,
    #[values(400, 401, 413, 429, 500)] status: u16,
) {
    let reply = Reply::status(status).message(format!("your key {KEY} is bad"));
    let script = Script::new().rule(When::always(), reply);
    let (_server, model) = scripted_with(wire, script, |settings| settings.attempts = 2).await;
    let (answer, heard) = soon(listen(&model, &[said("hi")])).await;
    let error = answer.expect_err("an error");
    let shown = format!("{error} {error:?} {heard:?} {model:?}");
    assert!(!shown.contains(KEY), "{shown}");
    assert!(shown.contains("your key [key] is bad"), "{shown}");
}

#[tokio::test]
async fn an_error_inside_a_stream_may_quote_it_too() {
    let reply = Reply::fault(Fault::ErrorEvent).message(format!("{KEY} is busy"));
    let script = Script::new().rule(When::always(), reply);
    let (_server, model) =
        scripted_with(Wire::Chat, script, |settings| settings.attempts = 1).await;
    let (answer, _) = listen(&model, &[said("hi")]).await;
    let error = answer.expect_err("an error");
    assert_eq!(
        error.to_string(),
        "deepseek is overloaded: 500, [key] is busy (asked once)"
    );
}

#[rstest]
#[tokio::test]
async fn half_a_key_is_not_shown_either(
    #[values(400, 413, 429)] status: u16,
    #[values(481, 488, 492)] before: usize,
) {
    let reply = Reply::status(status).message(format!("{}{KEY} is bad", "x".repeat(before)));
    let script = Script::new().rule(When::always(), reply);
    let (_server, model) =
        scripted_with(Wire::Chat, script, |settings| settings.attempts = 1).await;
    let (answer, _) = soon(listen(&model, &[said("hi")])).await;
    let error = answer.expect_err("an error").to_string();
    assert!(error.contains("xx[k") && !error.contains("sk-"), "{error}");
}

#[test]
fn settings_can_be_shown() {
    let (mut settings, _) = house(
        Wire::Chat,
        "https://me:password@example.com/v1?token=hidden",
    );
    settings.providers.push(Provider {
        name: "house".to_owned(),
        wire: Wire::Chat,
        base_url: "http://example.com".to_owned(),
        key: KeySource::None,
        headers: vec![("X-Key".to_owned(), KEY.to_owned())],
    });
    let models = Models::new(settings.clone()).expect("models");
    let shown = format!("{settings:?} {models:?} {:?}", Secret::new(KEY));
    for secret in [KEY, "password", "hidden"] {
        assert!(!shown.contains(secret), "{shown}");
    }
    assert!(
        shown.contains("https://example.com/v1") && shown.contains("X-Key"),
        "{shown}"
    );
}

#[rstest]
#[case(Wire::Anthropic, "x-api-key", KEY.to_owned())]
#[case(Wire::Responses, "authorization", format!("Bearer {KEY}"))]
#[case(Wire::Chat, "authorization", format!("Bearer {KEY}"))]
#[tokio::test]
async fn the_provider_gets_it(#[case] wire: Wire, #[case] name: &str, #[case] value: String) {
    let script = Script::new().rule(When::always(), Reply::text("ok"));
    let (server, model) = scripted_with(wire, script, |_| {}).await;
    listen(&model, &[said("hi")]).await.0.expect("an answer");
    let headers = server.requests().pop().expect("a request").headers;
    assert!(headers.contains(&(name.to_owned(), value)), "{headers:?}");
    let version = ("anthropic-version".to_owned(), "2023-06-01".to_owned());
    assert_eq!(headers.contains(&version), wire == Wire::Anthropic);
}

#[rstest]
#[case(KeySource::Env("HOUSE_KEY".to_owned()), "house refuses (401): who are you?; check HOUSE_KEY")]
#[case(
    KeySource::None,
    "house refuses (401): who are you?; it seems to need a key"
)]
#[tokio::test]
async fn a_wrong_key_is_traced_to_its_source(#[case] key: KeySource, #[case] text: &str) {
    let reply = Reply::status(401).message("who are you?");
    let server = ModelServer::start(Script::new().rule(When::always(), reply)).await;
    let server = server.expect("a server");
    let error = commanded(&server, key).await.expect_err("an error");
    assert_eq!(error, text);
}

/// Asks a house whose key comes from elsewhere, twice.
async fn commanded(server: &ModelServer, key: KeySource) -> Result<(), String> {
    let mut settings = Settings::default();
    settings.providers.push(Provider {
        name: "house".to_owned(),
        wire: Wire::Chat,
        base_url: server.url(),
        key,
        headers: Vec::new(),
    });
    let models = Models::with_environment(settings, |_| Some(KEY.to_owned())).expect("models");
    models.check("house/llama").expect("no command is run yet");
    for _ in 0..2 {
        let model = models.resolve("house/llama").expect("a model");
        let (answer, _) = listen(&model, &[said("hi")]).await;
        answer.map_err(|error| error.to_string())?;
    }
    Ok(())
}

#[tokio::test]
async fn a_command_prints_the_key_once() {
    let script = Script::new().rule(When::always(), Reply::text("ok"));
    let server = ModelServer::start(script).await.expect("a server");
    let folder = tempfile::tempdir().expect("a folder");
    let runs = folder.path().join("runs");
    // In no project's folder.
    let command = format!("pwd >> '{}'; echo {KEY}", runs.display());
    commanded(&server, KeySource::Command(command))
        .await
        .expect("answers");
    assert_eq!(fs::read_to_string(runs).expect("a file"), "/\n");
    let headers = server.requests().pop().expect("a request").headers;
    assert!(headers.contains(&("authorization".to_owned(), format!("Bearer {KEY}"))));
}

#[rstest]
#[case::a_new_key("$(wc -l < FILE)", &["Bearer key 1", "Bearer key 2", "Bearer key 2"])]
// To ask again with the same key would be in vain.
#[case::the_same_key("0", &["Bearer key 0"])]
#[tokio::test]
async fn a_key_that_expires_is_printed_again(#[case] printed: &str, #[case] sent: &[&str]) {
    let script = Script::new()
        .rule(When::always().times(1), Reply::status(401))
        .rule(When::always(), Reply::text("ok"));
    let server = ModelServer::start(script).await.expect("a server");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("runs");
    let command = format!("echo run >> FILE; echo key {printed}");
    let command = command.replace("FILE", &format!("'{}'", file.display()));
    let asked = commanded(&server, KeySource::Command(command)).await;
    assert_eq!(asked.is_ok(), sent.len() > 1, "{asked:?}");
    let ran = fs::read_to_string(&file).expect("a file").lines().count();
    assert_eq!(ran, 2, "the command is run once more");
    let keys = server
        .requests()
        .into_iter()
        .flat_map(|request| request.headers);
    let keys: Vec<String> = keys
        .filter(|(name, _)| name == "authorization")
        .map(|(_, value)| value)
        .collect();
    assert_eq!(keys, sent);
}

#[rstest]
#[case(
    "echo sk-secret; exit 3",
    "the key command of house failed: exit status: 3"
)]
#[case("true", "the key command of house failed: it printed nothing")]
#[tokio::test]
async fn a_command_that_fails_is_not_quoted(#[case] command: &str, #[case] text: &str) {
    let server = ModelServer::start(Script::new()).await.expect("a server");
    let source = KeySource::Command(command.to_owned());
    assert_eq!(commanded(&server, source).await, Err(text.to_owned()));
    assert_eq!(server.counts().requests, 0);
}
