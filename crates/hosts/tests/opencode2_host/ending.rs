//! How a run ended: by its event, and by what is left of it where the event was missed.

use std::time::Duration;

use asyncagents_core::{
    id::SessionId,
    lifecycle::{Next, Standing, after_asking},
    port::{Host, HostError, NewSession, Prompt},
    question::Reply,
    task::Outcome,
};
use asyncagents_hosts::opencode2::message;
use serde_json::json;
use tokio::time;

use crate::{
    build::Build,
    working::{ASK_PERMISSION, RETRY, WENT_ON},
    world::{World, prompt, task},
};

const HANG: &str = "Wait for ever";
const COUNT: &str = "Count the files";

fn failed(why: &str) -> Outcome {
    Outcome::Failed {
        why: why.to_owned(),
    }
}

/// A child with a model that is not there.
async fn without_model(world: &World) -> SessionId {
    with_model(world, "fake/nope").await
}

async fn with_model(world: &World, model: &str) -> SessionId {
    let new = NewSession {
        model: Some(model.into()),
        ..world.new_session()
    };
    let session = world.host.create(new).await.expect("a session");
    let prompt = Prompt {
        model: Some(model.into()),
        ..prompt(COUNT)
    };
    world.host.prompt(&session, prompt).await.expect("taken");
    session
}

#[tokio::test(start_paused = true)]
async fn an_unknown_model_is_the_reason_although_no_message_says_so() {
    let mut world = World::new(Build::measured());
    let session = without_model(&world).await;
    world.until_idle().await;
    let outcome = world.outcome(&session).await;
    assert_eq!(outcome, failed("Model unavailable: fake/nope"));
}

#[tokio::test(start_paused = true)]
async fn an_unknown_model_is_found_out_where_the_event_was_missed() {
    let silent = Build {
        writes_idle: false,
        ..Build::release()
    };
    let unexplained = Build {
        explains_idle: false,
        ..Build::release()
    };
    for (build, why) in [
        (Build::measured(), "Model unavailable: fake/nope"),
        (Build::release(), "Model unavailable: fake/nope"),
        (silent, "OpenCode does not say why"),
        (unexplained, "OpenCode does not say why"),
    ] {
        let mut world = World::new(build);
        let session = without_model(&world).await;
        world.until_idle().await;
        let world = world.restarted();
        assert_eq!(world.outcome(&session).await, failed(why));
    }
}

/// Another model may go on then, so it is the model that is unavailable, heard of or not.
#[tokio::test(start_paused = true)]
async fn an_unknown_variant_makes_a_model_unavailable() {
    let mut world = World::new(Build::measured());
    let session = with_model(&world, "fake/fake-1#wide").await;
    world.until_idle().await;
    let why = async |world: &World| match world.standing(&session).await {
        Standing::ModelUnavailable(unavailable) => unavailable.why,
        other => panic!("it has a model: {other:?}"),
    };
    let heard = "Variant unavailable for fake/fake-1: wide";
    assert_eq!(why(&world).await, heard);
    let found = "Variant unavailable: fake/fake-1#wide";
    assert_eq!(why(&world.restarted()).await, found);
}

#[tokio::test(start_paused = true)]
async fn a_known_variant_does_not() {
    let mut world = World::new(Build::measured());
    let session = with_model(&world, "fake/fake-1#high").await;
    world.until_idle().await;
    assert_eq!(world.outcome(&session).await, Outcome::Completed);
    let world = world.restarted();
    assert_eq!(world.outcome(&session).await, Outcome::Completed);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_agent_is_the_reason_although_the_prompt_was_not_taken() {
    let mut world = World::new(Build::measured());
    let session = world.child().await;
    let unknown = || Prompt {
        agent: "nobody".into(),
        ..prompt(COUNT)
    };
    world.host.prompt(&session, unknown()).await.expect("taken");
    world.until_idle().await;
    let why = "Agent not found: \"nobody\"";
    assert_eq!(world.outcome(&session).await, failed(why));

    // Where the event was missed the prompt still waits. Sent again, it fails again.
    let mut world = world.restarted();
    assert_eq!(world.standing(&session).await, Standing::Unprompted);
    world.host.prompt(&session, unknown()).await.expect("taken");
    world.until_idle().await;
    assert_eq!(world.outcome(&session).await, failed(why));
}

#[tokio::test(start_paused = true)]
async fn a_refused_permission_is_no_server_that_ends() {
    for build in [Build::measured(), Build::release()] {
        let mut world = World::new(build);
        let session = world.at_work(ASK_PERMISSION).await;
        let (asked, _) = world.until_asked().await;
        let reply = Reply::Reject { text: None };
        world
            .host
            .answer(&session, &asked, reply)
            .await
            .expect("taken");
        world.until_idle().await;
        let refused = failed("The user declined this tool call");
        assert_eq!(world.outcome(&session).await, refused);
        let world = world.restarted();
        assert_eq!(world.outcome(&session).await, refused, "missed");
    }
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_says_by_whom() {
    for (reason, expected) in [
        ("user", Some(Outcome::Cancelled)),
        (
            "inactivity",
            Some(failed(
                "OpenCode stopped it because nothing happened for long",
            )),
        ),
        ("superseded", None),
        ("shutdown", None),
    ] {
        let mut world = World::new(Build::measured());
        let session = world.at_work(HANG).await;
        time::sleep(Duration::from_millis(50)).await;
        world.opencode.interrupt(session.as_str(), reason);
        world.until_idle().await;
        match (world.standing(&session).await, expected) {
            (Standing::Done { outcome, .. }, Some(expected)) => assert_eq!(outcome, expected),
            (Standing::Interrupted, None) => {}
            (other, _) => panic!("{reason}: {other:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_of_a_child_that_waits_to_retry_is_one() {
    for build in [Build::measured(), Build::release()] {
        let mut world = World::new(build);
        let session = world.at_work(RETRY).await;
        // That it waits is told like an end, so that it is looked at.
        world.until_idle().await;
        world.host.abort(&session).await.expect("stopped");
        world.until_idle().await;
        assert_eq!(world.outcome(&session).await, Outcome::Cancelled);
    }
}

/// Whether another model is asked meanwhile is for the runtime to say.
#[tokio::test(start_paused = true)]
async fn a_retry_in_an_hour_is_no_end_and_costs_no_request() {
    let mut world = World::new(Build::measured());
    let session = world.at_work(RETRY).await;
    time::sleep(Duration::from_millis(50)).await;
    let mut reports = Vec::new();
    while let Ok(report) = time::timeout(Duration::from_millis(10), world.next()).await {
        reports.push(report);
    }
    assert!(!reports.is_empty());
    world.opencode.forget_requests();
    let waits = |standing: Standing| match standing {
        Standing::ModelUnavailable(unavailable) => unavailable.retrying,
        _ => false,
    };
    world.clock.set_forward(50 * 60);
    assert!(waits(world.standing(&session).await));
    world.clock.set_forward(7 * 60);
    assert_eq!(world.standing(&session).await, Standing::Working);
    assert!(world.opencode.requests().is_empty());
    world.clock.set_forward(60 * 60);
    assert_eq!(world.standing(&session).await, Standing::Working);
    assert!(!world.opencode.requests().is_empty(), "it was asked");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_killed_and_does_not_go_on_has_interrupted_its_children() {
    for build in [Build::measured(), Build::release()] {
        let world = World::new(build);
        let session = world.at_work(HANG).await;
        time::sleep(Duration::from_millis(50)).await;
        world.opencode.kill();
        let world = world.restarted();
        assert_eq!(world.standing(&session).await, Standing::Interrupted);
    }
}

#[tokio::test(start_paused = true)]
async fn a_child_that_the_server_goes_on_with_is_followed_and_not_prompted_again() {
    let world = World::new(Build::background());
    let session = world.at_work(HANG).await;
    time::sleep(Duration::from_millis(50)).await;
    world.opencode.kill();
    // It has started, and the child is not at work yet.
    let mut world = world.restarted();
    assert_eq!(world.standing(&session).await, Standing::Working);
    world.until_idle().await;
    assert_eq!(world.standing(&session).await, went_on());
    assert_eq!(world.opencode.sent_to("/prompt").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_wants_to_go_on_and_does_not_is_not_waited_for_for_ever() {
    let world = World::new(Build::background());
    let session = world.at_work(HANG).await;
    time::sleep(Duration::from_millis(50)).await;
    world.opencode.kill();
    world.opencode.stays_idle(session.as_str());
    let world = world.restarted();
    assert_eq!(world.standing(&session).await, Standing::Working);
    world.clock.set_forward(5 * 60);
    assert_eq!(world.standing(&session).await, Standing::Interrupted);
}

#[tokio::test(start_paused = true)]
async fn a_child_with_a_parent_is_not_gone_on_with() {
    let build = Build {
        resumes: true,
        ..Build::release()
    };
    let world = World::new(build);
    let session = world.at_work(HANG).await;
    time::sleep(Duration::from_millis(50)).await;
    world.opencode.kill();
    let world = world.restarted();
    assert_eq!(world.standing(&session).await, Standing::Interrupted);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ends_in_order_has_not_cancelled_its_children() {
    for (build, end) in [
        (Build::background(), went_on()),
        (Build::measured(), Standing::Interrupted),
    ] {
        let mut world = World::new(build);
        let session = world.at_work(HANG).await;
        time::sleep(Duration::from_millis(50)).await;
        world.opencode.stop();
        world.until_idle().await;
        let asked = world.host.inspect(&session, &task().prompt(0)).await;
        assert!(matches!(asked, Err(HostError::Unreachable(_))), "{asked:?}");
        world.opencode.is_started();
        time::sleep(Duration::from_secs(1)).await;
        assert_eq!(world.standing(&session).await, end);
    }
}

#[tokio::test(start_paused = true)]
async fn one_execution_may_cover_several_prompts() {
    let mut world = World::new(Build::measured());
    let session = world.at_work("Think for a moment").await;
    let next = Prompt {
        id: task().prompt(1),
        ..prompt("Use the broken model")
    };
    world.host.prompt(&session, next).await.expect("taken");
    world.until_idle().await;
    let first = world.host.inspect(&session, &task().prompt(1)).await;
    let first = first.expect("known").standing;
    let broken = failed("this model is broken");
    assert!(matches!(after_asking(first), Next::Finish { outcome, .. } if outcome == broken));
}

#[tokio::test(start_paused = true)]
async fn a_prompt_that_waits_in_the_inbox_is_sent_again_and_wakes() {
    let mut world = World::new(Build::measured());
    let session = world.child().await;
    let waiting = json!({
        "id": message(&task().prompt(0)),
        "text": COUNT,
        "metadata": {"asyncagents": {"post": task().prompt(0).as_str()}},
        "resume": false,
    });
    world
        .opencode
        .sends(&format!("/api/session/{session}/prompt"), waiting)
        .await;
    assert_eq!(world.standing(&session).await, Standing::Unprompted);
    world
        .host
        .prompt(&session, prompt(COUNT))
        .await
        .expect("taken");
    world.until_idle().await;
    assert_eq!(world.outcome(&session).await, Outcome::Completed);
    assert_eq!(world.texts(&session), [COUNT], "once");
}

#[tokio::test(start_paused = true)]
async fn what_a_child_inherited_is_neither_read_nor_counted() {
    let mut world = World::new(Build::measured());
    let long = |number: usize| {
        json!({"id": format!("msg_{number}"), "type": "assistant", "finish": "stop",
            "tokens": {"input": 1000}, "content": [{"type": "text", "text": "before"}]})
    };
    let session = world.child().await;
    let path = format!("/api/session/{session}/message");
    let told =
        json!({"id": message(&task().inheritance()), "type": "synthetic", "text": "all this"});
    world.opencode.with(session.as_str(), |it| {
        it.messages.extend((0..1_000).map(long));
        it.messages.push(told);
    });
    world.opencode.forget_requests();
    assert_eq!(world.standing(&session).await, Standing::Unprompted);
    let pages = world.opencode.requests();
    assert_eq!(pages.iter().filter(|it| it.ends_with(&path)).count(), 1);
    world
        .host
        .prompt(&session, prompt(COUNT))
        .await
        .expect("taken");
    world.until_idle().await;
    let totals = world.inspect(&session).await.totals.expect("what it used");
    assert_eq!((totals.turns, totals.tokens), (1, 113));
}

fn went_on() -> Standing {
    Standing::Done {
        outcome: Outcome::Completed,
        answer: Some(WENT_ON.to_owned()),
    }
}
