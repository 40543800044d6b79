//! Plays a model server by a script, and asks it over real HTTP. Tests of agents are written so:
//! any client of the Anthropic or OpenAI APIs can be pointed at its address.
//!
//! ```text
//! cargo run -p asyncagents-examples --example script_a_model
//! ```
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use asyncagents_core::agent::Turn;
use asyncagents_models::{AnswerEvent, KeySource, Models, Provider, Request, Settings, Wire};
use asyncagents_scripted_model::{ModelServer, Reply, Script, When};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // The first rule that fits answers. The first request is refused, as a busy server would do.
    let overloaded = Reply::status(529).retry_after("0");
    let greeting = Reply::text("Good morning, {{name}}!").chunk(5);
    let script = Script::new()
        .rule(When::always().times(1), overloaded)
        .rule(When::turn(0).capture("name", "I am ([A-Za-z]+)"), greeting)
        .rule(When::always(), Reply::text("I do not know you."));
    let server = ModelServer::start(script).await?;

    let models = Models::new(Settings {
        providers: vec![Provider {
            name: "scripted".to_owned(),
            wire: Wire::Anthropic,
            base_url: server.url(),
            key: KeySource::None,
            headers: Vec::new(),
        }],
        ..Settings::default()
    })?;
    let request = Request {
        system: "You are polite.",
        tools: &[],
        turns: &[Turn::Said("Hello, I am Ada.".to_owned())],
        no_tools: true,
        max_output: None,
        inherited: 0,
        cache_key: "example",
        effort: None,
    };
    let model = models.resolve("scripted/model")?;
    let answer = model
        .ask(&request, &mut |heard| match heard {
            AnswerEvent::Text(piece) => println!("heard  {piece:?}"),
            other => println!("heard  {other:?}"),
        })
        .await?;

    println!("answer {:?}, {:?}", answer.text(), answer.usage);
    println!("asked  {} times", server.requests().len());
    server.stop().await;
    Ok(())
}
