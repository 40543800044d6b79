//! What a host reports while it is listened to.

use std::collections::BTreeMap;

use asyncagents_core::{
    port::{Report, SessionEvent},
    progress::{Observation, Totals},
};

use super::{
    scene::{Scene, answer, is_idle},
    script::{COUNT, HAS_READ, READ},
};

pub(super) async fn the_end_of_a_run_is_reported(scene: Scene) {
    let (session, _) = scene.at_work(1, COUNT).await;
    scene
        .until_reported(|report| is_idle(report, &session))
        .await;
}

pub(super) async fn an_abort_is_reported(scene: Scene) {
    let (session, _) = scene.hanging(1).await;
    assert_eq!(scene.host.abort(&session).await, Ok(()));
    scene
        .until_reported(|report| is_idle(report, &session))
        .await;
}

pub(super) async fn a_deleted_session_is_reported(scene: Scene) {
    let (session, _) = scene.answered(1, COUNT).await;
    assert_eq!(scene.host.delete(&session).await, Ok(()));
    let deleted = Report::Session(session, SessionEvent::Deleted);
    scene.until_reported(|report| *report == deleted).await;
}

pub(super) async fn what_is_reported_adds_up_to_what_is_inspected(scene: Scene) {
    let (session, prompt) = scene.at_work(1, READ).await;
    let end = scene.ended(&session, &prompt).await;
    scene
        .until_reported(|report| is_idle(report, &session))
        .await;
    let mut sums = Totals::default();
    let observed: BTreeMap<_, _> = scene.observed(&session).into_iter().collect();
    for what in observed.into_values() {
        match what {
            Observation::ToolCalled { tool, .. } => {
                *sums.by_tool.entry(tool).or_default() += 1;
            }
            Observation::Turned(spent) => {
                sums.tokens += spent.tokens;
                sums.cost += spent.cost;
                sums.unpriced += spent.unpriced;
                sums.turns += 1;
            }
            other => panic!("nothing of the kind has happened: {other:?}"),
        }
    }
    assert_eq!(end.totals, Some(sums));
}

pub(super) async fn a_report_that_is_repeated_has_the_same_key(scene: Scene) {
    let (session, prompt) = scene.at_work(1, READ).await;
    assert_eq!(answer(&scene.ended(&session, &prompt).await), HAS_READ);
    scene
        .until_reported(|report| is_idle(report, &session))
        .await;
    let observed = scene.observed(&session);
    for (key, what) in &observed {
        let mut same_key = observed.iter().filter(|(other, _)| other == key);
        assert!(same_key.all(|(_, other)| other == what), "{observed:?}");
    }
    let is_call = |what: &Observation| matches!(what, Observation::ToolCalled { .. });
    let calls: BTreeMap<_, _> = observed
        .into_iter()
        .filter(|(_, what)| is_call(what))
        .collect();
    assert_eq!(calls.len(), 1, "{calls:?}");
}

pub(super) async fn nothing_is_observed_after_the_end(scene: Scene) {
    let (session, prompt) = scene.at_work(1, READ).await;
    scene.ended(&session, &prompt).await;
    scene
        .until_reported(|report| is_idle(report, &session))
        .await;
    // Whatever is on its way arrives before another session has come to its end.
    let (other, _) = scene.answered(2, READ).await;
    scene.until_reported(|report| is_idle(report, &other)).await;
    let observed = |report: &Report| matches!(report, Report::Session(of, SessionEvent::Observed { .. }) if *of == session);
    let reports = scene.reports();
    let last = reports.iter().rposition(observed).expect("it was observed");
    let end = reports.iter().rposition(|report| is_idle(report, &session));
    assert!(Some(last) < end, "{reports:?}");
}
