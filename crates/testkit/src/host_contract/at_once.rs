//! Things that happen at once, in every order that there is.

use asyncagents_core::{
    port::{Delivery, Report, SessionEvent},
    task::Outcome,
    transcript::Role,
};
use tokio::join;

use crate::plain::prompt;

use super::{
    scene::{Scene, answer, is_idle, notice, outcome, task, texts},
    script::{COUNT, COUNTED, HANG, MEASURE, MEASURED, NAME, NAMED, READ},
};

pub(super) async fn an_abort_right_after_the_prompt_ends_it(scene: Scene) {
    let (session, prompt) = scene.at_work(1, HANG).await;
    assert_eq!(scene.host.abort(&session).await, Ok(()));
    let end = scene.ended(&session, &prompt).await;
    assert_eq!(outcome(&end), Outcome::Cancelled);
}

pub(super) async fn sessions_at_work_together_have_their_own_answers(scene: Scene) {
    let run = async |number, text, expected| {
        let (session, prompt) = scene.at_work(number, text).await;
        assert_eq!(answer(&scene.ended(&session, &prompt).await), expected);
        let messages = scene.messages(&session).await;
        assert_eq!(texts(&messages, Role::User), [text]);
        assert_eq!(texts(&messages, Role::Assistant), [expected]);
    };
    join!(
        run(1, COUNT, COUNTED),
        run(2, MEASURE, MEASURED),
        run(3, NAME, NAMED),
    );
}

pub(super) async fn notices_that_come_together_all_arrive(scene: Scene) {
    let tell = async |number| scene.tell(&scene.parent, &task(number)).await;
    join!(tell(1), tell(2), tell(3), tell(4));
    for number in 1..=4 {
        let confirmed = scene
            .host
            .confirm(&scene.parent, &task(number).notice(0))
            .await;
        assert_eq!(confirmed, Ok(true));
    }
}

pub(super) async fn all_listeners_hear_the_same(scene: Scene) {
    let mut events = scene.host.subscribe();
    let (session, prompt) = scene.at_work(1, READ).await;
    let other = tokio::spawn({
        let session = session.clone();
        async move {
            let mut observed = Vec::new();
            while let Some(Report::Session(of, event)) = events.next().await {
                if of != session {
                    continue;
                }
                match event {
                    SessionEvent::Observed { key, what } => observed.push((key, what)),
                    SessionEvent::Idle => break,
                    SessionEvent::Alive | SessionEvent::Deleted => {}
                }
            }
            observed
        }
    });
    scene.ended(&session, &prompt).await;
    scene
        .until_reported(|report| is_idle(report, &session))
        .await;
    assert_eq!(other.await.expect("it hears"), scene.observed(&session));
}

pub(super) async fn a_prompt_and_a_notice_that_come_together_both_arrive(scene: Scene) {
    let (host, own, other) = (&scene.host, task(1), task(2));
    let session = scene.child(&own).await;
    let (prompted, delivered) = join!(
        host.prompt(&session, prompt(own.prompt(0), COUNT)),
        host.deliver(&session, notice(&other)),
    );
    assert_eq!((prompted, delivered), (Ok(()), Ok(Delivery::Taken)));
    let end = scene.ended(&session, &own.prompt(0)).await;
    assert_eq!(outcome(&end), Outcome::Completed);
    scene.until_confirmed(&session, &other).await;
}
