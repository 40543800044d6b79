//! What an agent asks, and what it is answered; what it is told while it works.

use asyncagents_core::{
    id::{PostId, SessionId},
    lifecycle::Standing,
    port::{Delivery, Notice, Report, SessionEvent},
    progress::Observation,
    question::{Answered, QuestionKind, Reply},
    task::Outcome,
};
use tokio::time;

use super::scene::{Scene, notice, outcome, task};

/// A child that has asked for a permission and waits.
async fn asking(scene: &Scene) -> (SessionId, PostId, String) {
    let words = scene.site.asks_for_permission_on();
    let (session, prompt) = scene.at_work(1, words).await;
    scene
        .until_reported(|report| asked(report, &session).is_some())
        .await;
    let mut reports = scene.reports().into_iter();
    let question = reports.find_map(|report| asked(&report, &session));
    (session, prompt, question.expect("it was reported"))
}

/// The name of a permission that a session asks for.
fn asked(report: &Report, session: &SessionId) -> Option<String> {
    match report {
        Report::Session(of, SessionEvent::Observed { what, .. }) if of == session => match what {
            Observation::Asked { id, question } if question.kind == QuestionKind::Permission => {
                Some(id.clone())
            }
            _ => None,
        },
        _ => None,
    }
}

pub(super) async fn a_child_that_asks_is_at_work_until_it_is_answered(scene: Scene) {
    let (session, prompt, question) = asking(&scene).await;
    let standing = scene.standing(&session, &prompt).await;
    assert_eq!(standing, Standing::Working);
    let taken = scene.host.answer(&session, &question, Reply::Once).await;
    assert_eq!(taken, Ok(Answered::Taken));
    let end = scene.ended(&session, &prompt).await;
    assert_eq!(outcome(&end), Outcome::Completed);
}

pub(super) async fn a_question_is_answered_once(scene: Scene) {
    let (session, prompt, question) = asking(&scene).await;
    let answer = async |reply| scene.host.answer(&session, &question, reply).await;
    assert_eq!(answer(Reply::Once).await, Ok(Answered::Taken));
    let late = Reply::Reject { text: None };
    assert_eq!(answer(late).await, Ok(Answered::NotAsked));
    let end = scene.ended(&session, &prompt).await;
    assert_eq!(outcome(&end), Outcome::Completed, "the first answer counts");
    assert_eq!(answer(Reply::Once).await, Ok(Answered::NotAsked));
}

pub(super) async fn a_question_is_found_and_answered_by_another_process(mut scene: Scene) {
    // Where the agent is in the process, what it asked has ended with it.
    if !scene.site.abilities().is_another_process {
        return;
    }
    let (session, prompt, question) = asking(&scene).await;
    scene.restart().await;
    let seen = scene.inspect(&session, &prompt).await;
    assert_eq!(seen.standing, Standing::Working);
    let open = seen.asking.expect("it was looked for");
    assert!(open.keys().eq([&question]), "{open:?}");
    let taken = scene.host.answer(&session, &question, Reply::Once).await;
    assert_eq!(taken, Ok(Answered::Taken));
    let end = scene.ended(&session, &prompt).await;
    assert_eq!(outcome(&end), Outcome::Completed);
}

pub(super) async fn a_question_that_was_never_asked_is_not_answered(scene: Scene) {
    let (session, prompt, question) = asking(&scene).await;
    let unknown = scene
        .host
        .answer(&session, "never-asked", Reply::Once)
        .await;
    assert_eq!(unknown, Ok(Answered::NotAsked));
    let other = scene.child(&task(2)).await;
    let elsewhere = scene.host.answer(&other, &question, Reply::Once).await;
    assert_eq!(elsewhere, Ok(Answered::NotAsked));
    let standing = scene.standing(&session, &prompt).await;
    assert_eq!(standing, Standing::Working, "it waits as before");
}

pub(super) async fn a_child_that_asks_can_be_stopped(scene: Scene) {
    let (session, prompt, question) = asking(&scene).await;
    assert_eq!(scene.host.abort(&session).await, Ok(()));
    let end = scene.ended(&session, &prompt).await;
    assert_eq!(outcome(&end), Outcome::Cancelled);
    let late = scene.host.answer(&session, &question, Reply::Once).await;
    assert_eq!(late, Ok(Answered::NotAsked));
}

pub(super) async fn a_message_to_a_child_at_work_arrives(scene: Scene) {
    let (session, prompt) = scene.hanging(1).await;
    let id = task(1).message(9);
    let message = Notice {
        id: id.clone(),
        ..notice(&task(1))
    };
    let delivered = scene.host.deliver(&session, message).await;
    assert_eq!(delivered, Ok(Delivery::Taken));
    // Some hosts keep it until the model is asked again, and this one's never is.
    let is_held_back = scene.site.abilities().holds_notices;
    while !is_held_back && scene.host.confirm(&session, &id).await != Ok(true) {
        time::sleep(time::Duration::from_millis(10)).await;
    }
    let standing = scene.standing(&session, &prompt).await;
    assert_eq!(standing, Standing::Working, "it is not interrupted");
    assert_eq!(scene.host.abort(&session).await, Ok(()));
}
