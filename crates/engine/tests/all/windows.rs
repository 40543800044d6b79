//! Conversations that grow beyond the model's window.

use asyncagents_core::{
    fork::{Parent, Preset, fork},
    port::Host,
    tokens,
};
use asyncagents_scripted_model::{Reply, Script, When};
use serde_json::json;

use crate::harness::{Harness, Plan};

const SMALL: &str = r#"{"test/model":{"window":4000,"max_output":500}}"#;

fn small() -> Plan {
    Plan {
        prices: Some(SMALL.to_owned()),
        ..Plan::default()
    }
}

#[tokio::test]
async fn near_the_window_the_conversation_is_summarised_and_the_work_goes_on() {
    let script = Script::new()
        .rule(
            When::always().last("Summarise it"),
            Reply::text("The file says blue. Left to do: answer."),
        )
        .rule(
            When::turn(0).lacks("<summary>"),
            Reply::call("read", json!({"path": "a.txt"})).usage(3_500, 0, 100),
        )
        .rule(
            When::always().contains("The file says blue"),
            Reply::text("Blue."),
        );
    let harness = Harness::with(script, small()).await;
    harness.write("a.txt", "blue\n");
    let session = harness.begin("general").await;
    let prompt = harness.prompt(&session, "Which colour?").await;
    assert_eq!(harness.ended(&session, &prompt).await.said(), "Blue.");
    let requests = harness.model.requests();
    assert_eq!(requests.len(), 3);
    assert!(
        requests[1].text().contains("blue"),
        "the summary is made of the whole"
    );
    assert!(
        !requests[2].text().contains("Which colour?"),
        "and stands for it"
    );
    let parent = Parent::new(harness.engine.messages(&session).await.expect("read"));
    let child = fork(&parent, &Preset::Graduated.limits(), tokens::o200k).expect("a fork");
    assert!(
        child.stats.compaction.is_some(),
        "a fork knows the boundary"
    );
    assert!(child.context.contains("The file says blue"));
    assert!(
        !child.context.contains("Which colour?"),
        "{}",
        child.context
    );
    // What it used for the summary counts.
    assert_eq!(harness.used(&session).await.0.turns, 3);
    harness.close().await;
}

#[tokio::test]
async fn a_provider_that_says_it_is_too_long_is_asked_with_less() {
    let script = Script::new()
        .rule(
            When::always()
                .last("Summarise it")
                .contains("<inherited_context>"),
            Reply::text("It says blue."),
        )
        .rule(
            When::turn(0).lacks("<summary>"),
            Reply::call("read", json!({"path": "a.txt"})),
        )
        .rule(
            When::turn(1),
            Reply::status(400).message("prompt is too long: 9000 tokens > 4000 maximum"),
        )
        .rule(
            When::always().contains("It says blue."),
            Reply::text("Blue."),
        );
    let harness = Harness::new(script).await;
    harness.write("a.txt", &"blue ".repeat(5_000));
    assert_eq!(harness.run("Which colour?").await.said(), "Blue.");
    harness.close().await;
}

#[tokio::test]
async fn a_prompt_that_is_too_long_for_any_window_is_a_clear_error() {
    let script = Script::new().rule(
        When::always(),
        Reply::status(400).message("prompt is too long: 9000 tokens > 4000 maximum"),
    );
    let harness = Harness::new(script).await;
    let ended = harness.run("Far too long").await;
    assert!(ended.error().contains("too long"), "{}", ended.error());
    assert!(harness.model.requests().len() <= 3);
    harness.close().await;
}

#[tokio::test]
async fn a_summary_that_is_none_is_asked_for_once_more() {
    let script = Script::new()
        .rule(
            When::always()
                .last("Summarise it")
                .lacks("<inherited_context>"),
            Reply::call("read", json!({"path": "a.txt"})).usage(3_500, 0, 100),
        )
        .rule(
            When::always().last("Summarise it"),
            Reply::text("The file says blue.").usage(1_000, 0, 50),
        )
        .rule(
            When::turn(0).lacks("<summary>"),
            Reply::call("read", json!({"path": "a.txt"})).usage(3_500, 0, 100),
        )
        .rule(
            When::always().contains("The file says blue"),
            Reply::text("Blue.").usage(500, 0, 5),
        );
    let harness = Harness::with(script, small()).await;
    harness.write("a.txt", "blue\n");
    let session = harness.begin("general").await;
    let prompt = harness.prompt(&session, "Which colour?").await;
    assert_eq!(harness.ended(&session, &prompt).await.said(), "Blue.");
    assert_eq!(harness.model.requests().len(), 4);
    // What was asked for in vain was paid for too.
    assert_eq!(
        harness.used(&session).await.0.tokens,
        3_600 + 3_600 + 1_050 + 505
    );
    harness.close().await;
}
