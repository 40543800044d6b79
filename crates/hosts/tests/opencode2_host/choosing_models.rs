//! The models that OpenCode 2 has, and what it says of one that cannot be asked.

use asyncagents_core::{
    agent::Effort,
    id::{ModelName, TaskId},
    lifecycle::{Standing, Unavailable},
    model_choice::HostModel,
    port::{Host, NewSession, Prompt, SessionEvent, WantedModel},
    task::Outcome,
};
use serde_json::{Value, json};

use crate::{
    build::Build,
    working::{RETRY, RETRY_SOON},
    world::{World, prompt, task},
};

const COUNT: &str = "Count the files";

fn model(name: &str, efforts: &[Effort]) -> HostModel {
    HostModel {
        name: name.into(),
        efforts: efforts.to_vec(),
        of_agent: false,
    }
}

#[tokio::test(start_paused = true)]
async fn its_models_are_listed_with_their_variants_as_efforts() {
    let world = World::new(Build::measured());
    let models = world.host.models().await;
    let known = vec![
        model("fake/fake-1", &[Effort::High]),
        model("fake/fake-2", &[]),
    ];
    assert_eq!(models, Ok(Some(known)));
    let of = async |asked: Option<&str>| {
        let wanted = WantedModel {
            asked: asked.map(ModelName::from),
            agent: "general".into(),
            parent: world.parent.clone(),
        };
        world.host.model_of(&wanted).await
    };
    let parents = model("fake/fake-1", &[Effort::High]);
    assert_eq!(of(None).await, Ok(Some(parents)));
    assert_eq!(
        of(Some("fake/fake-2")).await,
        Ok(Some(model("fake/fake-2", &[])))
    );
    assert_eq!(of(Some("fake/nope")).await, Ok(None));
}

#[tokio::test(start_paused = true)]
async fn an_effort_is_the_variant_of_its_name() {
    let world = World::new(Build::measured());
    let session = world.child().await;
    let prompt = Prompt {
        effort: Some(Effort::High),
        ..prompt(COUNT)
    };
    world.host.prompt(&session, prompt).await.expect("taken");
    let sent = world.opencode.sent_to("/model");
    let high = json!({"providerID": "fake", "id": "fake-1", "variant": "high"});
    assert_eq!(sent, [json!({"model": high})]);
}

/// Only what an agent's file names may not be allowed though nobody has asked for it.
#[tokio::test(start_paused = true)]
async fn the_model_of_a_task_is_asked_for_or_its_agent_s_or_its_parent_s() {
    let world = World::new(Build::measured());
    let of = async |asked: Option<&str>, agent: &str| {
        let wanted = WantedModel {
            asked: asked.map(ModelName::from),
            agent: agent.into(),
            parent: world.parent.clone(),
        };
        world.host.model_of(&wanted).await
    };
    let first = || Ok(Some(model("fake/fake-1", &[Effort::High])));
    let own = HostModel {
        of_agent: true,
        ..model("fake/fake-2", &[])
    };
    assert_eq!(of(None, "explore").await, Ok(Some(own)));
    assert_eq!(of(None, "general").await, first());
    assert_eq!(of(Some("fake/fake-1"), "explore").await, first());
    assert_eq!(of(Some(ModelName::INHERIT), "explore").await, first());
    let named = of(Some("fake/fake-2"), "explore").await;
    assert_eq!(named, Ok(Some(model("fake/fake-2", &[]))));
}

/// A session that was begun without a model has none, however long it works.
#[tokio::test(start_paused = true)]
async fn an_effort_without_a_model_is_that_of_the_model_opencode_would_choose() {
    let world = World::new(Build::measured());
    world.opencode.with(world.parent.as_str(), |it| {
        it.info["model"] = Value::Null;
    });
    let wanted = WantedModel {
        asked: None,
        agent: "general".into(),
        parent: world.parent.clone(),
    };
    let default = model("fake/fake-1", &[Effort::High]);
    assert_eq!(world.host.model_of(&wanted).await, Ok(Some(default)));
    for (agent, id, number) in [("general", "fake-1", 2), ("explore", "fake-2", 3)] {
        let new = NewSession {
            task: TaskId::from_random(number),
            agent: agent.into(),
            effort: Some(Effort::High),
            ..world.new_session()
        };
        let session = world.host.create(new).await.expect("a session");
        let with_effort = json!({"providerID": "fake", "id": id, "variant": "high"});
        let made = world
            .opencode
            .with(session.as_str(), |it| it.info["model"].clone());
        assert_eq!(made, Some(with_effort), "{agent}");
    }
    // Without an effort it is left to OpenCode.
    world.child().await;
    let made = world.opencode.sent_to("/api/session").pop();
    assert_eq!(made.map(|body| body["model"].clone()), Some(Value::Null));
}

/// What a run says that ended with this error.
async fn after(error: Value) -> Standing {
    let mut world = World::new(Build::measured());
    let session = world.at_work(COUNT).await;
    world.until_idle().await;
    let last = world.opencode.with(session.as_str(), |it| {
        let last = it.messages.last_mut().expect("an answer");
        last["finish"] = json!("error");
        last["error"] = error;
        last["content"] = json!([]);
        last["model"] = json!({"providerID": "fake", "id": "fake-1", "variant": "default"});
    });
    last.expect("a session");
    world.restarted().standing(&session).await
}

#[tokio::test(start_paused = true)]
async fn a_run_that_failed_because_of_its_model_says_so() {
    for (kind, status) in [
        ("provider.unknown", 402),
        ("provider.quota", 429),
        ("provider.rate-limit", 429),
        ("provider.auth", 401),
        ("provider.internal", 503),
        ("provider.invalid-request", 404),
    ] {
        let error = json!({"type": kind, "message": "no", "status": status});
        let expected = Unavailable {
            model: Some("fake/fake-1".into()),
            why: "no".to_owned(),
            answer: None,
            retrying: false,
        };
        let standing = after(error).await;
        assert_eq!(standing, Standing::ModelUnavailable(expected), "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_whose_request_was_refused_has_failed() {
    let error = json!({"type": "provider.invalid-request", "message": "no", "status": 400});
    let outcome = Outcome::Failed {
        why: "no".to_owned(),
    };
    let answer = None;
    assert_eq!(after(error).await, Standing::Done { outcome, answer });
}

fn waits() -> Standing {
    Standing::ModelUnavailable(Unavailable {
        model: Some("fake/fake-1".into()),
        why: "usage limit; it asks for a wait of 3600 s".to_owned(),
        answer: None,
        retrying: true,
    })
}

/// OpenCode waits for as long as the provider wants; whether that is too long is not for it to say.
#[tokio::test(start_paused = true)]
async fn a_provider_that_wants_a_long_wait_is_unavailable_and_another_goes_on() {
    for build in [Build::measured(), Build::release()] {
        let mut world = World::new(build);
        let session = world.at_work(RETRY).await;
        // Its user is not kept waiting for the next look.
        world.until_idle().await;
        assert_eq!(world.standing(&session).await, waits());
        world.host.abort(&session).await.expect("stopped");
        world.until_idle().await;
        let again = Prompt {
            id: task().prompt_again(0, 1),
            model: Some("fake/fake-2".into()),
            ..prompt(COUNT)
        };
        let prompt = again.id.clone();
        world.host.prompt(&session, again).await.expect("taken");
        world.until_idle().await;
        let seen = world.host.inspect(&session, &prompt).await.expect("seen");
        let done = matches!(
            seen.standing,
            Standing::Done {
                outcome: Outcome::Completed,
                ..
            }
        );
        assert!(done, "{:?}", seen.standing);
    }
}

#[tokio::test(start_paused = true)]
async fn a_long_wait_is_seen_by_a_process_that_did_not_hear_of_it() {
    let mut world = World::new(Build::measured());
    let session = world.at_work(RETRY).await;
    world.until_idle().await;
    assert_eq!(world.restarted().standing(&session).await, waits());
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_wants_a_short_wait_is_waited_for() {
    let mut world = World::new(Build::measured());
    let session = world.at_work(RETRY_SOON).await;
    let has_begun = |event: &SessionEvent| *event == SessionEvent::Alive;
    world.until(has_begun).await;
    assert_eq!(world.standing(&session).await, Standing::Working);
    let world = world.restarted();
    assert_eq!(world.standing(&session).await, Standing::Working);
}
