//! Processes end in the middle, and others go on.

use std::time::Duration;

use asyncagents_core::{lifecycle::Standing, task::Outcome, transcript::Role};
use tokio::time;

use super::{
    scene::{Scene, answer, outcome, task, texts},
    script::{COUNT, COUNTED, THINK, THOUGHT},
};

pub(super) async fn another_process_finds_everything(mut scene: Scene) {
    let (session, prompt) = scene.answered(1, COUNT).await;
    let before = scene.inspect(&session, &prompt).await;
    scene.restart().await;
    assert_eq!(scene.host.exists(&session).await, Ok(true));
    let after = scene.inspect(&session, &prompt).await;
    assert_eq!(
        (after.standing, after.totals),
        (before.standing, before.totals)
    );
    let messages = scene.messages(&session).await;
    assert_eq!(texts(&messages, Role::User), [COUNT]);
    assert_eq!(texts(&messages, Role::Assistant), [COUNTED]);
}

pub(super) async fn a_child_at_work_is_followed_by_another_process(mut scene: Scene) {
    let (session, prompt) = scene.at_work(1, THINK).await;
    // No process is followed by another before its lease has run out. By then the work has begun.
    time::sleep(Duration::from_millis(50)).await;
    scene.restart().await;
    assert_eq!(answer(&scene.ended(&session, &prompt).await), THOUGHT);
    let messages = scene.messages(&session).await;
    assert_eq!(texts(&messages, Role::User), [THINK], "nothing twice");
}

pub(super) async fn an_abort_by_another_process_ends_the_work(mut scene: Scene) {
    let (session, prompt) = scene.hanging(1).await;
    scene.restart().await;
    assert_eq!(scene.host.abort(&session).await, Ok(()));
    let end = scene.ended(&session, &prompt).await;
    assert_eq!(outcome(&end), Outcome::Cancelled);
}

pub(super) async fn a_child_whose_agent_was_stopped_is_interrupted(scene: Scene) {
    if !scene.site.abilities().is_another_process {
        return;
    }
    let (session, prompt) = scene.hanging(1).await;
    scene.site.restart_agent().await;
    let end = scene.ended(&session, &prompt).await;
    assert_eq!(end.standing, Standing::Interrupted);
    let next = scene.prompt(&session, (&task(1), 1), COUNT).await;
    assert_eq!(answer(&scene.ended(&session, &next).await), COUNTED);
}
