//! The models that OpenCode has, and what it says of one that cannot be asked.

use asyncagents_core::{
    agent::Effort,
    id::{ModelName, SessionId},
    lifecycle::{Standing, Unavailable},
    model_choice::HostModel,
    port::{Clock, Host, Prompt, Report, SessionEvent, WantedModel},
    task::Outcome,
};
use asyncagents_hosts::Method;
use serde_json::{Value, json};

use crate::{
    message::{agent, failed, text, unfinished, user_of},
    world::{World, prompt, task},
};

fn model(name: &str, efforts: &[Effort]) -> HostModel {
    HostModel {
        name: name.into(),
        efforts: efforts.to_vec(),
        of_agent: false,
    }
}

fn wanted(asked: Option<&str>, agent: &str, parent: &SessionId) -> WantedModel {
    WantedModel {
        asked: asked.map(ModelName::from),
        agent: agent.into(),
        parent: parent.clone(),
    }
}

fn api_error(status: u16, message: &str, retried: bool) -> Value {
    json!({"name": "APIError", "data": {
        "message": message, "statusCode": status, "isRetryable": retried,
    }})
}

fn unavailable(why: &str, answer: Option<&str>) -> Standing {
    Standing::ModelUnavailable(Unavailable {
        model: Some("fake/fake-1".into()),
        why: why.to_owned(),
        answer: answer.map(str::to_owned),
        retrying: false,
    })
}

#[tokio::test(start_paused = true)]
async fn its_models_are_those_of_its_providers_with_their_variants_as_efforts() {
    let world = World::new();
    let models = world.host.models().await.expect("an answer");
    let all = [Effort::Low, Effort::Medium, Effort::High];
    let expected = vec![
        model("fake/fake-1", &[]),
        model("fake/large-1", &all),
        model("fake/small-1", &[Effort::Low]),
    ];
    assert_eq!(models, Some(expected));
}

#[tokio::test(start_paused = true)]
async fn a_list_that_does_not_get_through_is_no_list() {
    let world = World::new();
    let opencode = &world.opencode;
    opencode.fails(Method::Get, "/config/providers", 413, "");
    assert_eq!(world.host.models().await, Ok(None));
    // An agent's own model may not be allowed, whatever else is known of it.
    let parent = opencode.parent();
    opencode.fails(Method::Get, "/config/providers", 413, "");
    let own = world.host.model_of(&wanted(None, "explore", &parent)).await;
    let known = HostModel {
        of_agent: true,
        ..model("fake/small-1", &[])
    };
    assert_eq!(own, Ok(Some(known)));
    let asked = wanted(Some("fake/small-1"), "explore", &parent);
    opencode.fails(Method::Get, "/config/providers", 413, "");
    assert_eq!(world.host.model_of(&asked).await, Ok(None));
}

#[tokio::test(start_paused = true)]
async fn the_model_of_a_task_is_asked_for_or_its_agent_s_or_its_parent_s_or_configured() {
    let world = World::new();
    let parent = world.opencode.parent();
    let of = async |asked, agent, parent: &SessionId| {
        let found = world.host.model_of(&wanted(asked, agent, parent)).await;
        let found = found.expect("an answer")?;
        Some((found.name.to_string(), found.of_agent))
    };
    let own = |name: &str, of_agent| Some((name.to_owned(), of_agent));
    let large = Some("fake/large-1");
    assert_eq!(
        of(large, "explore", &parent).await,
        own("fake/large-1", false)
    );
    assert_eq!(
        of(None, "explore", &parent).await,
        own("fake/small-1", true)
    );
    assert_eq!(
        of(None, "general", &parent).await,
        own("fake/fake-1", false)
    );
    let inherit = Some(ModelName::INHERIT);
    assert_eq!(
        of(inherit, "explore", &parent).await,
        own("fake/fake-1", false)
    );
    let shell = SessionId::from("shell");
    assert_eq!(
        of(None, "general", &shell).await,
        own("fake/large-1", false)
    );
    assert_eq!(of(Some("fake/none"), "general", &parent).await, None);
}

#[tokio::test(start_paused = true)]
async fn an_effort_is_the_variant_of_its_name() {
    let mut world = World::new();
    let (child, _) = world.working_child().await;
    world.opencode.forget_requests();
    let prompt = Prompt {
        id: task().prompt(1),
        model: Some("fake/large-1".into()),
        effort: Some(Effort::High),
        ..prompt()
    };
    world.host.prompt(&child, prompt).await.expect("taken");
    let body = world.opencode.sent_once(Method::Post, "/prompt_async");
    assert_eq!(body["variant"], "high");
    assert_eq!(body["model"]["modelID"], "large-1");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_failed_because_of_its_model_says_so() {
    let no_key = json!({"message": "no key", "providerID": "fake"});
    for error in [
        api_error(402, "out of credit", false),
        api_error(429, "You exceeded your current quota", true),
        api_error(503, "overloaded", true),
        api_error(401, "bad key", false),
        api_error(404, "no such model", false),
        api_error(400, "Your credit balance is too low", false),
        json!({"name": "ProviderAuthError", "data": no_key}),
    ] {
        by_model(error).await;
    }
}

async fn by_model(error: Value) {
    let mut world = World::new();
    let (child, prompt) = world.working_child().await;
    let why = error["data"]["message"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    world.opencode.add(&child, agent(vec![text("Half of it")]));
    world.opencode.add(&child, failed(error, Vec::new()));
    world.hears_idle(&child).await;
    let seen = world.host.inspect(&child, &prompt).await.expect("seen");
    assert_eq!(seen.standing, unavailable(&why, Some("Half of it")));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_failed_for_another_reason_does_not() {
    for error in [
        api_error(400, "unknown field", false),
        json!({"name": "ContextOverflowError", "data": {"message": "too long"}}),
        json!({"name": "MessageOutputLengthError", "data": {}}),
    ] {
        not_by_model(error).await;
    }
}

async fn not_by_model(error: Value) {
    let mut world = World::new();
    let (child, prompt) = world.working_child().await;
    world.opencode.add(&child, failed(error, Vec::new()));
    world.hears_idle(&child).await;
    let seen = world.host.inspect(&child, &prompt).await.expect("seen");
    let done = matches!(
        seen.standing,
        Standing::Done {
            outcome: Outcome::Failed { .. },
            ..
        }
    );
    assert!(done, "{:?}", seen.standing);
}

/// There is no message of the agent then.
#[tokio::test(start_paused = true)]
async fn a_model_that_opencode_does_not_know_is_unavailable() {
    let mut world = World::new();
    let (child, prompt) = world.working_child().await;
    let why = "Model not found: fake/gone-1.";
    let error = json!({"name": "UnknownError", "data": {"message": why}});
    let said = json!({"type": "session.error", "properties": {
        "sessionID": child.as_str(), "error": error,
    }});
    world.hears(said).await;
    world.hears_idle(&child).await;
    let seen = world.host.inspect(&child, &prompt).await.expect("seen");
    let expected = Unavailable {
        model: None,
        why: why.to_owned(),
        answer: None,
        retrying: false,
    };
    assert_eq!(seen.standing, Standing::ModelUnavailable(expected));
}

/// OpenCode waits for as long as the provider wants; whether that is too long is not for it to say.
#[tokio::test(start_paused = true)]
async fn a_provider_that_wants_a_long_wait_is_unavailable() {
    let why = "usage limit; it asks for a wait of 3600 s";
    waits(3_600, "usage limit", Some(why)).await;
    waits(60, "usage limit", None).await;
}

/// OpenCode asks it again and again, for minutes.
#[tokio::test(start_paused = true)]
async fn a_provider_that_is_not_paid_is_unavailable_at_once() {
    let why = "You exceeded your current quota, please check your plan";
    waits(2, why, Some(why)).await;
}

/// OpenCode waits before it asks a provider again that has said this; why that is in vain, if it is.
async fn waits(wait: i64, message: &str, in_vain: Option<&str>) {
    let mut world = World::new();
    let (child, prompt) = world.working_child().await;
    world.opencode.add(&child, unfinished(Vec::new()));
    let next = world.clock.now().as_millis() + wait * 1_000;
    let status = json!({"type": "retry", "attempt": 1, "message": message, "next": next});
    world.opencode.has_status(&child, status.clone());
    let said = json!({"type": "session.status", "properties": {
        "sessionID": child.as_str(), "status": status,
    }});
    let heard = world.hears(said).await;
    let expected = match in_vain {
        Some(_) => SessionEvent::Idle,
        None => SessionEvent::Alive,
    };
    assert_eq!(heard, Report::Session(child.clone(), expected));
    let seen = world.host.inspect(&child, &prompt).await.expect("seen");
    let Some(why) = in_vain else {
        assert_eq!(seen.standing, Standing::Working);
        return;
    };
    let expected = Unavailable {
        model: Some("fake/fake-1".into()),
        why: why.to_owned(),
        answer: None,
        retrying: true,
    };
    assert_eq!(seen.standing, Standing::ModelUnavailable(expected));
    // It is stopped, and goes on with another model in the same session.
    world.host.abort(&child).await.expect("stopped");
    let again = Prompt {
        id: task().prompt_again(0, 1),
        model: Some("fake/large-1".into()),
        ..crate::world::prompt()
    };
    let seen = world.host.inspect(&child, &again.id).await.expect("seen");
    assert_eq!(seen.standing, Standing::Unprompted);
    world
        .host
        .prompt(&child, again.clone())
        .await
        .expect("taken");
    assert_eq!(world.host.confirm(&child, &again.id).await, Ok(true));
    world.opencode.add(&child, agent(vec![text("Done.")]));
    world.hears_idle(&child).await;
    let seen = world.host.inspect(&child, &again.id).await.expect("seen");
    let done = Standing::Done {
        outcome: Outcome::Completed,
        answer: Some("Done.".to_owned()),
    };
    assert_eq!(seen.standing, done);
}

/// The name of the prompt does not keep the run from finding where the task began.
#[tokio::test(start_paused = true)]
async fn what_was_used_before_the_other_model_counts() {
    let mut world = World::new();
    let (child, _) = world.working_child().await;
    let used = json!({"finish": null, "error": api_error(402, "out", false),
        "tokens": {"input": 7, "output": 3, "reasoning": 0, "cache": {"read": 0, "write": 0}}});
    world
        .opencode
        .add(&child, crate::message::agent_with(used, Vec::new()));
    let id = task().prompt_again(0, 1);
    let part = json!({"type": "text", "text": "go on",
        "metadata": {"asyncagents": {"post": id.as_str()}}});
    world.opencode.add(&child, user_of(vec![part]));
    world.opencode.add(&child, agent(vec![text("Done.")]));
    world.hears_idle(&child).await;
    let seen = world.host.inspect(&child, &id).await.expect("seen");
    assert_eq!(seen.totals.map(|totals| totals.tokens), Some(10));
}
