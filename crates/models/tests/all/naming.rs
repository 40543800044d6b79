//! Names of models, and what is said about those that cannot be used.

use std::collections::BTreeMap;

use asyncagents_models::{KeySource, ModelError, Models, Provider, Settings, Wire};
use asyncagents_scripted_model::{ModelServer, Reply, Script, When};
use rstest::rstest;

use super::{ask, said};

/// Models in a world with only these variables.
fn models(variables: &'static [(&str, &str)]) -> Models {
    with(Settings::default(), variables)
}

fn with(settings: Settings, variables: &'static [(&str, &str)]) -> Models {
    let value = |wanted: &str| {
        let found = variables.iter().find(|(name, _)| *name == wanted);
        found.map(|(_, value)| (*value).to_owned())
    };
    Models::with_environment(settings, value).expect("models")
}

#[rstest]
#[case("sonnet", "anthropic/claude-sonnet-5-5")]
#[case("opus", "anthropic/claude-opus-5-5")]
#[case("haiku", "anthropic/claude-haiku-5-5")]
#[case("gpt", "openai/gpt-6.1-sol")]
#[case("gpt-mini", "openai/gpt-5.4-mini")]
#[case("mine", "anthropic/claude-opus-5-5")]
#[case("gpt-5", "openai/gpt-5")]
#[case("claude-haiku-4-5-20251001", "anthropic/claude-haiku-4-5-20251001")]
#[case("openrouter/qwen/qwen3-coder", "openrouter/qwen/qwen3-coder")]
#[case("ollama/llama3:8b", "ollama/llama3:8b")]
fn a_name_and_what_it_means(#[case] name: &str, #[case] full: &str) {
    let mut settings = Settings::default();
    settings
        .aliases
        .insert("mine".to_owned(), "opus".to_owned());
    let model = with(settings, &[]).resolve(name).expect("a model");
    assert_eq!(model.name().as_str(), full);
}

#[rstest]
#[case("nobody/knows")]
#[case("nobody-knows")]
#[case("anthropic/")]
#[case("")]
fn a_name_that_means_nothing(#[case] name: &str) {
    let error = models(&[]).resolve(name).expect_err("an error");
    assert_eq!(
        error.to_string(),
        format!(
            "`{name}` is not a known model: write PROVIDER/MODEL, where PROVIDER is one of \
             anthropic, openai, openrouter, ollama, lmstudio, vllm; declare another in the \
             configuration with `[providers.NAME]` and `base_url = …`"
        )
    );
}

#[test]
fn aliases_in_a_circle_end() {
    let pairs = [("a", "b"), ("b", "a")].map(|(from, to)| (from.to_owned(), to.to_owned()));
    let settings = Settings {
        aliases: BTreeMap::from(pairs),
        ..Settings::default()
    };
    assert!(with(settings, &[]).resolve("a").is_err());
}

#[tokio::test]
async fn a_missing_key_is_named_before_anything_is_sent() {
    let models = models(&[("ANTHROPIC_API_KEY", " ")]);
    let text = "anthropic needs a key: set ANTHROPIC_API_KEY";
    assert_eq!(
        models.check("sonnet").expect_err("an error").to_string(),
        text
    );
    let model = models.resolve("sonnet").expect("a model");
    let error = ask(&model, &[said("hi")]).await.expect_err("an error");
    assert_eq!(error.to_string(), text);
}

#[rstest]
#[case("ollama/x")]
#[case("vllm/x")]
#[case("openai/gpt-5")]
fn these_can_be_asked(#[case] name: &str) {
    models(&[("OPENAI_API_KEY", "k")])
        .check(name)
        .expect("no error");
}

#[rstest]
#[case(&[("OPENROUTER_API_KEY", "k")], "openrouter/openrouter/auto")]
#[case(&[("OPENROUTER_API_KEY", "k"), ("OPENAI_API_KEY", "k")], "openai/gpt-6.1-sol")]
#[case(&[("OPENAI_API_KEY", "k"), ("ANTHROPIC_API_KEY", "k")], "anthropic/claude-sonnet-5-5")]
fn the_first_key_decides(
    #[case] variables: &'static [(&'static str, &'static str)],
    #[case] name: &str,
) {
    assert_eq!(models(variables).default_model().as_deref(), Ok(name));
}

#[test]
fn without_any_key_the_ways_out_are_named() {
    let error = models(&[]).default_model().expect_err("an error");
    assert_eq!(
        error.to_string(),
        "no model is set up: set ANTHROPIC_API_KEY, OPENAI_API_KEY or OPENROUTER_API_KEY, or \
         choose a local model with `--model ollama/NAME`; `asyncagents demo` needs none"
    );
}

#[test]
fn variables_with_keys_are_known() {
    let expected = [
        "ANTHROPIC_API_KEY",
        "OPENAI_API_KEY",
        "OPENROUTER_API_KEY",
        "VLLM_API_KEY",
    ];
    assert_eq!(models(&[]).secret_variables(), expected);
}

#[rstest]
#[case("anthropic", Wire::Anthropic)]
#[case("responses", Wire::Responses)]
#[case("chat", Wire::Chat)]
fn protocols_have_names(#[case] name: &str, #[case] wire: Wire) {
    assert_eq!((name.parse(), wire.to_string().as_str()), (Ok(wire), name));
    let error = "soap".parse::<Wire>().expect_err("an error");
    assert_eq!(
        error.to_string(),
        "wire: `soap` is none of anthropic, responses, chat"
    );
}

#[rstest]
#[tokio::test]
async fn an_address_may_be_written_in_many_ways(
    #[values("", "/", "/v1", "/v1/", "/v1/chat/completions")] tail: &str,
) {
    let script = Script::new().rule(When::always(), Reply::text("ok"));
    let server = ModelServer::start(script).await.expect("a server");
    let mut settings = Settings::default();
    settings.providers.push(Provider {
        name: "ollama".to_owned(),
        wire: Wire::Chat,
        base_url: format!("{}{tail}", server.url()),
        key: KeySource::None,
        headers: vec![("X-Team".to_owned(), "blue".to_owned())],
    });
    let model = with(settings, &[])
        .resolve("ollama/llama")
        .expect("a model");
    assert_eq!(
        ask(&model, &[said("hi")]).await.expect("an answer").text(),
        "ok"
    );
    let headers = server.requests().pop().expect("a request").headers;
    assert!(headers.contains(&("x-team".to_owned(), "blue".to_owned())));
    assert!(headers.iter().all(|(name, _)| name != "authorization"));
}

#[rstest]
#[case(
    "localhost:1234",
    "base_url of provider house: it must begin with http:// or https://"
)]
#[case("nonsense", "base_url of provider house: relative URL without a base")]
fn an_address_that_is_none(#[case] base_url: &str, #[case] text: &str) {
    let mut settings = Settings::default();
    settings.providers.push(Provider {
        name: "house".to_owned(),
        wire: Wire::Chat,
        base_url: base_url.to_owned(),
        key: KeySource::None,
        headers: Vec::new(),
    });
    let error: ModelError = Models::new(settings).expect_err("an error");
    assert_eq!(error.to_string(), text);
}
