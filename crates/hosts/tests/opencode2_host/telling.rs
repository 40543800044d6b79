//! A session is told something, once, whatever happens between us and OpenCode.

use std::{collections::HashSet, time::Duration};

use asyncagents_core::{
    id::{PostId, SessionId},
    lifecycle::Standing,
    port::{Delivery, Host, HostError, Notice},
    task::Outcome,
};
use asyncagents_hosts::opencode2::message;
use serde_json::{Value, json};
use tokio::time;

use crate::{
    build::Build,
    world::{World, notice, task},
};

const HANG: &str = "Wait for ever";
const COUNT: &str = "Count the files";

async fn told(world: &World, session: &SessionId) -> Delivery {
    let delivered = world.host.deliver(session, notice(0)).await;
    delivered.expect("it is taken")
}

/// A message of a session.
fn found(world: &World, session: &SessionId, post: &PostId) -> Option<Value> {
    let name = json!(message(post));
    let found = world.opencode.with(session.as_str(), |it| {
        it.messages.iter().find(|it| it["id"] == name).cloned()
    });
    found.expect("a session")
}

#[tokio::test(start_paused = true)]
async fn a_notice_is_one_message_with_a_line_for_people() {
    let mut world = World::new(Build::measured());
    let parent = world.parent.clone();
    assert_eq!(told(&world, &parent).await, Delivery::Taken);
    assert!(world.is_told(&parent, &notice(0).id).await, "at once");
    world.until_idle().await;
    let there = found(&world, &parent, &notice(0).id).expect("a message");
    let line = "✓ Agent \"0\" finished. · Task Progress: 1/1";
    assert_eq!(there["description"], json!(line));
    let text = there["text"].as_str().expect("a text");
    assert!(text.starts_with("✓ **Agent \"0\" finished.**"), "{text}");
    assert!(text.ends_with("to see agent responses."), "{text}");
    assert_eq!(there["type"], json!("synthetic"));
    let sent = &world.opencode.sent_to("/synthetic")[0];
    assert!(sent["resume"].is_null(), "it wakes");
}

#[tokio::test(start_paused = true)]
async fn a_long_message_is_shown_to_people_in_one_line() {
    let world = World::new(Build::measured());
    let mut long = notice(0);
    long.message.visible = "Look at the ärger\n".repeat(100);
    let parent = world.parent.clone();
    let delivered = world.host.deliver(&parent, long.clone()).await;
    assert_eq!(delivered, Ok(Delivery::Taken));
    let there = found(&world, &parent, &long.id).expect("a message");
    let line = there["description"].as_str().expect("a line");
    assert!(
        line.chars().count() <= 300 && !line.contains('\n'),
        "{line}"
    );
    assert!(line.ends_with(" · … 87 more · Look at the ärger"), "{line}");
    let text = there["text"].as_str().expect("a text");
    assert!(text.starts_with(&long.message.visible), "the model has all");
}

#[tokio::test(start_paused = true)]
async fn a_notice_after_an_interrupt_waits_until_it_is_sent_again() {
    for build in [Build::measured(), Build::release()] {
        let mut world = World::new(build);
        let session = world.at_work(HANG).await;
        time::sleep(Duration::from_millis(50)).await;
        assert_eq!(told(&world, &session).await, Delivery::Taken);
        assert!(!world.is_told(&session, &notice(0).id).await, "it is busy");
        world.host.abort(&session).await.expect("stopped");
        world.until_idle().await;
        assert!(!world.is_told(&session, &notice(0).id).await, "it waits");
        assert_eq!(world.outcome(&session).await, Outcome::Cancelled);
        assert_eq!(told(&world, &session).await, Delivery::Taken);
        assert!(world.is_told(&session, &notice(0).id).await);
        world.until_idle().await;
        assert_eq!(world.texts(&session).len(), 2, "the prompt and the notice");
    }
}

#[tokio::test(start_paused = true)]
async fn a_notice_survives_a_server_that_is_killed() {
    for build in [Build::measured(), Build::background()] {
        let world = World::new(build);
        let session = world.at_work(HANG).await;
        time::sleep(Duration::from_millis(50)).await;
        told(&world, &session).await;
        world.opencode.kill();
        let world = world.restarted();
        told(&world, &session).await;
        time::sleep(Duration::from_secs(1)).await;
        assert!(world.is_told(&session, &notice(0).id).await);
        let texts = world.texts(&session);
        let notices = texts.iter().filter(|text| text.contains("finished"));
        assert_eq!(notices.count(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_that_nobody_used_today_is_told_and_not_woken() {
    let world = World::new(Build::measured()).another_day();
    let parent = world.parent.clone();
    for _ in 0..2 {
        assert_eq!(told(&world, &parent).await, Delivery::Taken);
        assert!(world.is_told(&parent, &notice(0).id).await, "admitted");
    }
    time::sleep(Duration::from_secs(1)).await;
    assert_eq!(found(&world, &parent, &notice(0).id), None, "it sleeps");
    // The next prompt of its user brings it.
    let path = format!("/api/session/{parent}/prompt");
    let prompt = json!({"id": "msg_user", "text": COUNT});
    assert_eq!(world.opencode.sends(&path, prompt).await, 200);
    time::sleep(Duration::from_secs(1)).await;
    assert!(found(&world, &parent, &notice(0).id).is_some());
    assert!(world.is_told(&parent, &notice(0).id).await);
    // From then on it is used.
    assert_eq!(
        world.host.deliver(&parent, notice(1)).await,
        Ok(Delivery::Taken)
    );
    let sent = world.opencode.sent_to("/synthetic");
    assert_eq!(sent[0]["resume"], json!(false));
    assert!(sent[2]["resume"].is_null(), "{sent:?}");
}

#[tokio::test(start_paused = true)]
async fn a_child_is_woken_though_nobody_used_it_today() {
    let world = World::new(Build::measured()).another_day();
    let child = world.child().await;
    told(&world, &child).await;
    assert!(found(&world, &child, &notice(0).id).is_some());
}

#[tokio::test(start_paused = true)]
async fn a_session_that_was_woken_by_a_call_is_used() {
    let world = World::new(Build::measured()).another_day();
    let parent = world.parent.clone();
    world.host.wake(&parent);
    told(&world, &parent).await;
    assert!(found(&world, &parent, &notice(0).id).is_some());
}

#[tokio::test(start_paused = true)]
async fn a_name_that_somebody_else_has_is_a_clear_error() {
    let world = World::new(Build::measured());
    let parent = world.parent.clone();
    let path = format!("/api/session/{parent}/synthetic");
    let theirs = json!({"id": message(&notice(0).id), "text": "mine", "resume": false});
    assert_eq!(world.opencode.sends(&path, theirs).await, 200);
    let refused = world.host.deliver(&parent, notice(0)).await;
    match refused {
        Err(HostError::Refused(why)) => assert!(why.contains("conflicts"), "{why}"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_notice_to_a_child_at_work_belongs_to_its_turn() {
    let mut world = World::new(Build::measured());
    let session = world.at_work("Read the notes").await;
    time::sleep(Duration::from_millis(15)).await;
    told(&world, &session).await;
    world.until_idle().await;
    assert!(world.is_told(&session, &notice(0).id).await);
    let standing = world.standing(&session).await;
    let answer = Some("Water the plants".to_owned());
    let outcome = Outcome::Completed;
    assert_eq!(standing, Standing::Done { outcome, answer });
    assert_eq!(world.texts(&session).len(), 2);
}

/// As the outbox does it: what may have been sent is looked for, and then sent again.
async fn tell_until_told(world: &World, session: &SessionId, notice: Notice) {
    for _ in 0..200 {
        if world.host.confirm(session, &notice.id).await == Ok(true) {
            return;
        }
        let delivered = world.host.deliver(session, notice.clone()).await;
        match delivered {
            Ok(Delivery::Taken) | Err(HostError::Unreachable(_)) => {}
            other => panic!("{other:?}"),
        }
    }
    panic!("{} was never told", notice.id);
}

#[tokio::test(start_paused = true)]
async fn of_ten_thousand_notices_each_is_told_once_although_answers_are_lost() {
    let world = World::new(Build::measured());
    let parents: Vec<SessionId> = (0..1_000)
        .map(|_| world.opencode.parent("/home/user/project"))
        .collect();
    {
        let mut state = world.opencode.lock();
        state.faults.requests = 15;
        state.faults.answers = 25;
    }
    for number in 0..10_000_u32 {
        let parent = &parents[number as usize % parents.len()];
        tell_until_told(&world, parent, notice(number)).await;
    }
    let mut names = HashSet::new();
    for (at, parent) in parents.iter().enumerate() {
        let there = world.opencode.with(parent.as_str(), |it| {
            assert!(it.inbox.is_empty());
            it.messages.clone()
        });
        let there = there.expect("a session").into_iter();
        let notices: Vec<Value> = there
            .filter(|it| it["type"] == json!("synthetic"))
            .collect();
        assert_eq!(notices.len(), 10, "of parent {at}");
        names.extend(notices.into_iter().map(|it| it["id"].to_string()));
    }
    assert_eq!(names.len(), 10_000);
    let sent = world.opencode.sent_to("/synthetic").len();
    assert!(
        sent > 11_000,
        "{sent}: nothing was sent twice, so nothing is shown"
    );
}

#[tokio::test(start_paused = true)]
async fn nobody_is_told_who_is_not_there() {
    let world = World::new(Build::measured());
    for gone in ["ses_gone", "shell-4711", "ses_../../x"] {
        let session = SessionId::from(gone);
        assert_eq!(told(&world, &session).await, Delivery::Gone, "{gone}");
        assert!(!world.is_told(&session, &task().notice(0)).await);
    }
    let slept = world.another_day();
    assert_eq!(told(&slept, &"ses_gone".into()).await, Delivery::Gone);
}
