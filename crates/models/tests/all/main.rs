//! What a user of models would notice, as stories over real HTTP.
#![expect(clippy::expect_used, reason = "a test may panic; its helpers too")]

mod answering;
mod endless;
mod limits;
mod naming;
mod odd_servers;
mod prefix;
mod secrets;
mod trouble;

use std::time::Duration;

use asyncagents_core::agent::{Answer, ToolSpec, Turn};
use asyncagents_models::{
    AnswerEvent, KeySource, Model, ModelError, Models, Provider, Request, Secret, Settings, Wire,
};
use asyncagents_scripted_model::{ModelServer, Script};

/// A key that must never be seen.
const KEY: &str = "sk-secret-0123456789";

/// A provider with a real model of each protocol, played by the script.
fn house(wire: Wire, url: &str) -> (Settings, &'static str) {
    let (name, model) = match wire {
        Wire::Anthropic => ("anthropic", "anthropic/claude-sonnet-4-5"),
        Wire::Responses => ("openai", "openai/gpt-5"),
        Wire::Chat => ("deepseek", "deepseek/deepseek-chat"),
    };
    let provider = Provider {
        name: name.to_owned(),
        wire,
        base_url: url.to_owned(),
        key: KeySource::Given(Secret::new(KEY)),
        headers: Vec::new(),
    };
    let mut settings = Settings::default();
    settings.providers.push(provider);
    (settings, model)
}

/// A model that plays the script.
async fn scripted(wire: Wire, script: Script) -> (ModelServer, Model) {
    scripted_with(wire, script, |_| {}).await
}

async fn scripted_with(
    wire: Wire,
    script: Script,
    change: impl FnOnce(&mut Settings),
) -> (ModelServer, Model) {
    let server = ModelServer::start(script).await.expect("a server");
    let (mut settings, name) = house(wire, &server.url());
    change(&mut settings);
    let models = Models::new(settings).expect("models");
    let model = models.resolve(name).expect("a model");
    (server, model)
}

fn said(text: &str) -> Turn {
    Turn::Said(text.to_owned())
}

fn tools() -> Vec<ToolSpec> {
    ["read", "run"]
        .map(|name| ToolSpec {
            name: name.to_owned(),
            description: format!("To {name} things."),
            schema:
                r#"{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"string"}}}"#
                    .to_owned(),
        })
        .into()
}

/// Asks and notes everything heard, as words.
async fn listen(model: &Model, turns: &[Turn]) -> (Result<Answer, ModelError>, Vec<String>) {
    let tools = tools();
    let request = Request {
        system: "You are terse.",
        tools: &tools,
        turns,
        inherited: 0,
        no_tools: false,
        max_output: None,
        cache_key: "session-1",
        effort: None,
    };
    let mut heard = Vec::new();
    let mut hear = |what: AnswerEvent<'_>| match what {
        AnswerEvent::Text(text) => heard.push(format!("text {text}")),
        AnswerEvent::Reasoning(text) => heard.push(format!("thought {text}")),
        AnswerEvent::Call(name) => heard.push(format!("call {name}")),
        AnswerEvent::Retry { why, .. } => heard.push(format!("again {why}")),
        AnswerEvent::KeepAlive => {}
    };
    let answer = model.ask(&request, &mut hear).await;
    (answer, heard)
}

async fn ask(model: &Model, turns: &[Turn]) -> Result<Answer, ModelError> {
    listen(model, turns).await.0
}

/// Fails rather than hangs.
async fn soon<T>(future: impl Future<Output = T>) -> T {
    let waited = tokio::time::timeout(Duration::from_secs(30), future).await;
    waited.expect("an end within 30 s")
}
