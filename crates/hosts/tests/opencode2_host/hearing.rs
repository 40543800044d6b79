//! What is heard of a child at work, and that nobody asks while it is heard.

use std::time::Duration;

use asyncagents_core::{
    id::TaskId,
    lifecycle::Standing,
    port::{Host, NewSession, Prompt, Report, SessionEvent},
    progress::Observation,
};
use asyncagents_hosts::opencode2::EVENTS;
use serde_json::json;
use tokio::time;

use crate::{
    build::Build,
    world::{World, prompt},
};

#[tokio::test(start_paused = true)]
async fn five_silent_tasks_are_asked_nothing_for_a_minute() {
    let mut world = World::new(Build::measured());
    let mut children = Vec::new();
    for number in 1..=5 {
        let task = TaskId::from_random(number);
        let new = NewSession {
            task: task.clone(),
            ..world.new_session()
        };
        let session = world.host.create(new).await.expect("a session");
        let prompt = Prompt {
            id: task.prompt(0),
            ..prompt("Wait for ever")
        };
        world.host.prompt(&session, prompt).await.expect("taken");
        children.push((session, task.prompt(0)));
    }
    while time::timeout(Duration::from_millis(100), world.next())
        .await
        .is_ok()
    {}
    world.opencode.forget_requests();
    for _ in 0..6 {
        time::sleep(Duration::from_secs(10)).await;
        for (session, prompt) in &children {
            let seen = world.host.inspect(session, prompt).await.expect("known");
            assert_eq!(seen.standing, Standing::Working);
        }
    }
    assert_eq!(world.opencode.requests(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_call_has_the_name_that_an_earlier_event_gave_it() {
    let mut world = World::new(Build::measured());
    world.at_work("Read the notes").await;
    let called = world.until(|event| matches!(event, SessionEvent::Observed { .. }));
    match called.await {
        SessionEvent::Observed {
            what: Observation::ToolCalled { tool, .. },
            ..
        } => assert_eq!(tool, "read"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn events_that_are_not_known_or_not_events_are_nothing() {
    let mut world = World::new(Build::measured());
    for (kind, data) in [
        ("session.usage.updated", json!({"sessionID": "ses_1"})),
        ("plugin.added", json!({})),
        ("session.tool.called", json!({"sessionID": 7})),
        ("session.execution.started", json!(null)),
        ("form.created", json!({"form": []})),
        ("permission.asked", json!({"sessionID": "ses_1"})),
    ] {
        world.opencode.emit(kind, data);
    }
    world
        .opencode
        .emit("session.text.delta", json!({"sessionID": "ses_2"}));
    let alive = Report::Session("ses_2".into(), SessionEvent::Alive);
    assert_eq!(world.next().await, alive);
    world.opencode.loses_events();
    assert_eq!(world.next().await, Report::Missed);
}

#[test]
fn the_events_that_are_passed_on_are_those_that_mean_something() {
    assert!(EVENTS.contains(&"session.execution.failed"));
    assert!(!EVENTS.contains(&"session.usage.updated"));
}
