//! Notices, and one question beside a session.

use std::time::Duration;

use asyncagents_core::{
    id::SessionId,
    lifecycle::Standing,
    port::{Delivery, OneQuestion},
    task::Outcome,
    transcript::Role,
};
use tokio::time;

use super::{
    LAST_TURN,
    scene::{Scene, answer, notice, outcome, task, texts, times},
    script::{COUNT, COUNTED, MEASURE, NOTED, SUMMED_UP},
};

pub(super) async fn a_notice_that_was_taken_is_confirmed(mut scene: Scene) {
    scene.tell(&scene.parent.clone(), &task(1)).await;
    scene.restart().await;
    let confirmed = scene.host.confirm(&scene.parent, &task(1).notice(0)).await;
    assert_eq!(confirmed, Ok(true));
}

pub(super) async fn a_notice_that_was_never_sent_is_not_confirmed(scene: Scene) {
    let (session, prompt) = scene.answered(1, COUNT).await;
    scene.tell(&scene.parent, &task(2)).await;
    let host = &scene.host;
    let (sent, unsent) = (task(2).notice(0), task(2).notice(1));
    assert_eq!(host.confirm(&scene.parent, &unsent).await, Ok(false));
    assert_eq!(host.confirm(&session, &sent).await, Ok(false), "elsewhere");
    assert_eq!(host.confirm(&"shell-4711".into(), &sent).await, Ok(false));
    assert_eq!(answer(&scene.ended(&session, &prompt).await), COUNTED);
}

pub(super) async fn the_same_notice_is_there_once(scene: Scene) {
    let (session, _) = scene.answered(1, COUNT).await;
    scene.tell(&session, &task(2)).await;
    if !scene.site.abilities().keeps_posts_once {
        return;
    }
    scene.tell(&session, &task(2)).await;
    let asked = texts(&scene.messages(&session).await, Role::User).concat();
    assert_eq!(times(&asked, &notice(&task(2)).message.visible), 1);
}

pub(super) async fn a_notice_is_shown_to_the_model(scene: Scene) {
    let (session, _) = scene.answered(1, COUNT).await;
    scene.tell(&session, &task(2)).await;
    if scene.host.notices_wake() {
        until_noted(&scene, &session).await;
    }
    let next = scene.prompt(&session, (&task(1), 1), MEASURE).await;
    scene.ended(&session, &next).await;
    let shown = scene.site.shown(&session).await;
    let at = |words: &str| shown.find(words).expect("it is shown");
    let message = notice(&task(2)).message;
    let places = [COUNT, &*message.visible, &*message.hidden, MEASURE].map(at);
    assert!(places.is_sorted(), "{shown}");
}

pub(super) async fn a_notice_to_a_session_at_work_arrives(scene: Scene) {
    let (session, prompt) = scene.hanging(1).await;
    let held_back = scene.site.abilities().holds_notices;
    if held_back {
        let delivered = scene.host.deliver(&session, notice(&task(2))).await;
        assert_eq!(delivered, Ok(Delivery::Taken));
    } else {
        scene.tell(&session, &task(2)).await;
    }
    let standing = scene.standing(&session, &prompt).await;
    assert_eq!(standing, Standing::Working, "it is not interrupted");
    assert_eq!(scene.host.abort(&session).await, Ok(()));
    let end = scene.ended(&session, &prompt).await;
    assert_eq!(outcome(&end), Outcome::Cancelled);
    if held_back {
        scene.tell(&session, &task(2)).await;
    }
}

pub(super) async fn a_notice_wakes_an_idle_session_where_the_host_says_so(scene: Scene) {
    let (session, prompt) = scene.answered(1, COUNT).await;
    scene.tell(&session, &task(2)).await;
    if scene.host.notices_wake() {
        until_noted(&scene, &session).await;
        let end = scene.ended(&session, &prompt).await;
        assert_eq!(outcome(&end), Outcome::Completed);
        return;
    }
    assert_eq!(answer(&scene.ended(&session, &prompt).await), COUNTED);
    let answers = texts(&scene.messages(&session).await, Role::Assistant);
    assert_eq!(answers, [COUNTED]);
}

pub(super) async fn no_notice_reaches_a_session_that_is_gone(scene: Scene) {
    let session = scene.child(&task(1)).await;
    scene.host.delete(&session).await.expect("it is deleted");
    let delivered = scene.host.deliver(&session, notice(&task(2))).await;
    assert_eq!(delivered, Ok(Delivery::Gone));
    let confirmed = scene.host.confirm(&session, &task(2).notice(0)).await;
    assert_eq!(confirmed, Ok(false));
}

pub(super) async fn a_session_of_another_form_is_told_or_gone(scene: Scene) {
    let shell: SessionId = "shell-4711".into();
    let there = scene.site.abilities().has_foreign_sessions;
    assert_eq!(scene.host.exists(&shell).await, Ok(there));
    if there {
        scene.tell(&shell, &task(1)).await;
    } else {
        let delivered = scene.host.deliver(&shell, notice(&task(1))).await;
        assert_eq!(delivered, Ok(Delivery::Gone));
    }
}

pub(super) async fn one_question_is_answered_beside_the_session(scene: Scene) {
    let (session, _) = scene.answered(1, COUNT).await;
    let before = scene.messages(&session).await;
    let asked = scene.host.ask_once(&session, question(60_000)).await;
    let answered = asked.expect("it is asked");
    assert_eq!(answered.is_some(), scene.site.abilities().asks_once);
    if let Some(answered) = answered {
        assert_eq!(answered.text, SUMMED_UP);
        assert!(answered.spent.tokens > 0);
    }
    assert_eq!(scene.messages(&session).await, before);
}

pub(super) async fn one_question_has_no_answer_after_its_time(scene: Scene) {
    let (session, _) = scene.answered(1, COUNT).await;
    let before = scene.messages(&session).await;
    let asked = scene.host.ask_once(&session, question(1)).await;
    assert_eq!(asked, Ok(None));
    assert_eq!(scene.messages(&session).await, before);
}

fn question(millis: u64) -> OneQuestion {
    OneQuestion {
        id: task(1).last_turn(0),
        text: LAST_TURN.0.to_owned(),
        agent: "general".into(),
        model: None,
        effort: None,
        role: None,
        within: Duration::from_millis(millis),
    }
}

/// Waits until a session has answered to a notice.
async fn until_noted(scene: &Scene, session: &SessionId) {
    loop {
        let answers = texts(&scene.messages(session).await, Role::Assistant);
        if answers.iter().any(|answer| answer == NOTED) {
            return;
        }
        time::sleep(Duration::from_millis(10)).await;
    }
}
