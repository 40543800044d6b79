//! Work is stopped, and sessions are deleted.

use asyncagents_core::{
    fork::Plan,
    id::SessionId,
    lifecycle::Standing,
    port::{Delivery, HostError},
    task::Outcome,
};

use crate::plain::prompt;

use super::{
    scene::{Scene, answer, inheritance, notice, outcome, task},
    script::{COUNT, COUNTED, HANG},
};

pub(super) async fn a_prompt_that_is_aborted_is_cancelled(scene: Scene) {
    let (session, prompt) = scene.hanging(1).await;
    assert_eq!(scene.host.abort(&session).await, Ok(()));
    let end = scene.ended(&session, &prompt).await;
    assert_eq!(outcome(&end), Outcome::Cancelled);
    assert_eq!(scene.host.abort(&session).await, Ok(()), "once more");
    let end = scene.ended(&session, &prompt).await;
    assert_eq!(outcome(&end), Outcome::Cancelled);
}

pub(super) async fn a_session_that_was_aborted_works_on_the_next_prompt(scene: Scene) {
    let (session, first) = scene.hanging(1).await;
    assert_eq!(scene.host.abort(&session).await, Ok(()));
    scene.ended(&session, &first).await;
    let next = scene.prompt(&session, (&task(1), 1), COUNT).await;
    assert_eq!(answer(&scene.ended(&session, &next).await), COUNTED);
}

pub(super) async fn an_abort_of_an_idle_session_changes_nothing(scene: Scene) {
    let new = scene.child(&task(1)).await;
    assert_eq!(scene.host.abort(&new).await, Ok(()));
    let standing = scene.standing(&new, &task(1).prompt(0)).await;
    assert_eq!(standing, Standing::Unprompted);
    let prompt = scene.prompt(&new, (&task(1), 0), COUNT).await;
    assert_eq!(answer(&scene.ended(&new, &prompt).await), COUNTED);
    assert_eq!(scene.host.abort(&new).await, Ok(()));
    assert_eq!(answer(&scene.ended(&new, &prompt).await), COUNTED);
}

pub(super) async fn an_abort_of_no_session_is_harmless(scene: Scene) {
    let session = deleted(&scene).await;
    assert_eq!(scene.host.abort(&session).await, Ok(()));
    assert_eq!(scene.host.abort(&"shell-4711".into()).await, Ok(()));
}

pub(super) async fn a_deleted_session_is_gone_for_everyone(mut scene: Scene) {
    let (session, id) = scene.answered(1, COUNT).await;
    assert_eq!(scene.host.exists(&session).await, Ok(true));
    assert_eq!(scene.host.delete(&session).await, Ok(()));
    is_gone(&scene, &session).await;
    assert_eq!(scene.standing(&session, &id).await, Standing::Gone);
    scene.restart().await;
    is_gone(&scene, &session).await;
}

pub(super) async fn a_session_is_deleted_twice(scene: Scene) {
    let session = deleted(&scene).await;
    assert_eq!(scene.host.delete(&session).await, Ok(()));
    assert_eq!(scene.host.delete(&"shell-4711".into()).await, Ok(()));
    assert_eq!(scene.host.exists(&scene.parent).await, Ok(true));
}

pub(super) async fn a_session_is_deleted_in_the_middle_of_its_work(scene: Scene) {
    let (session, prompt) = scene.hanging(1).await;
    assert_eq!(scene.host.delete(&session).await, Ok(()));
    assert_eq!(
        scene.ended(&session, &prompt).await.standing,
        Standing::Gone
    );
    is_gone(&scene, &session).await;
}

/// A session that was made and deleted.
async fn deleted(scene: &Scene) -> SessionId {
    let session = scene.child(&task(1)).await;
    let deleted = scene.host.delete(&session).await;
    deleted.expect("it is deleted");
    session
}

async fn is_gone(scene: &Scene, session: &SessionId) {
    let host = &scene.host;
    let task = task(1);
    assert_eq!(host.exists(session).await, Ok(false));
    let standing = scene.standing(session, &task.prompt(7)).await;
    assert_eq!(standing, Standing::Gone);
    let no_session = || HostError::NoSession(session.clone());
    let prompted = host.prompt(session, prompt(task.prompt(7), HANG)).await;
    assert_eq!(prompted, Err(no_session()));
    let injected = host.inject(session, inheritance(&task)).await;
    assert_eq!(injected, Err(no_session()));
    assert_eq!(host.messages(session).await, Err(no_session()));
    let recent = host.recent(session, &Plan::default()).await;
    assert_eq!(recent, Err(no_session()));
    let delivered = host.deliver(session, notice(&task)).await;
    assert_eq!(delivered, Ok(Delivery::Gone));
}
