//! Which sessions are at work and how they ended, as events and our own requests say. What is not
//! known here, OpenCode is asked; but a run that failed before its model answered leaves nothing
//! behind, so its event is remembered.

use std::{
    collections::{HashMap, HashSet},
    sync::Mutex,
    time::Duration,
};

use asyncagents_core::{
    id::{ModelName, SessionId},
    lifecycle::Standing,
    lock::lock,
    moment::Moment,
};

use super::retry::Retry;

/// A busy session without any event for this long is no longer taken for busy. Events are reliable;
/// this is for the day they are not.
const BUSY_TIMEOUT: Duration = Duration::from_secs(4 * 60);
/// How long a session may take from a prompt until it is at work.
const START_TIMEOUT: Duration = Duration::from_secs(10);
/// So many sessions are remembered, those that were heard of last.
const REMEMBERED: usize = 4_096;

/// How an execution ended, by its event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    Failed {
        why: String,
        /// Because its model cannot be asked.
        by_model: bool,
    },
    /// By a user, or because the server ended or a permission was refused.
    Interrupted { reason: String },
}

#[derive(Default)]
pub(super) struct Activity(Mutex<State>);

#[derive(Default)]
struct State {
    sessions: HashMap<SessionId, SessionState>,
    /// Sessions that have been at work since this process began.
    awake: HashSet<SessionId>,
}

#[derive(Default)]
struct SessionState {
    /// When something was last heard of it.
    heard: Moment,
    /// Until when it certainly works.
    busy: Option<Moment>,
    /// When the session was prompted, if no event has come since.
    prompted: Option<Moment>,
    /// The newest message of ours that OpenCode has admitted.
    admitted: Option<String>,
    /// The message of ours that is on its way. What an event says until it is admitted is about
    /// what came before.
    on_its_way: Option<String>,
    end: Option<End>,
    /// The model that was asked last.
    model: Option<ModelName>,
    /// It did not answer and is asked again.
    retry: Option<Retry>,
}

impl Activity {
    /// A prompt is about to be sent.
    pub(super) fn prompting(&self, session: &SessionId, message: &str, now: Moment) {
        self.change(session, now, |seen| {
            // Sent again it is not announced again.
            let again = seen.admitted.as_deref() == Some(message);
            *seen = SessionState {
                heard: now,
                prompted: Some(now),
                on_its_way: (!again).then(|| message.to_owned()),
                admitted: Some(message.to_owned()),
                ..SessionState::default()
            };
        });
        self.wake(session);
    }

    /// OpenCode did not take the prompt.
    pub(super) fn not_prompted(&self, session: &SessionId) {
        if let Some(seen) = lock(&self.0).sessions.get_mut(session) {
            seen.prompted = None;
        }
    }

    /// A notice was sent, which sets a session to work that is idle.
    pub(super) fn notified(&self, session: &SessionId, now: Moment) {
        self.change(session, now, |seen| {
            if seen.busy.is_none() {
                seen.prompted = Some(now);
            }
        });
    }

    /// A message was found in the inbox.
    pub(super) fn found(&self, session: &SessionId, message: &str, now: Moment) {
        self.change(session, now, |seen| {
            seen.admitted = Some(message.to_owned());
        });
    }

    /// A message was put into the inbox, or taken from it into the history.
    pub(super) fn admitted(&self, session: &SessionId, message: &str) {
        if let Some(seen) = lock(&self.0).sessions.get_mut(session)
            && seen.on_its_way.as_deref() == Some(message)
        {
            seen.on_its_way = None;
        }
    }

    /// It has begun to work.
    pub(super) fn started(&self, session: &SessionId, now: Moment) {
        self.change(session, now, |seen| {
            seen.busy = Some(now.after(BUSY_TIMEOUT));
            seen.retry = None;
            seen.end = None;
            if seen.on_its_way.is_none() {
                seen.prompted = None;
            }
        });
        self.wake(session);
    }

    /// An event about a session at work has come.
    pub(super) fn event(&self, session: &SessionId, now: Moment) {
        if let Some(seen) = lock(&self.0).sessions.get_mut(session) {
            seen.heard = now;
            seen.busy = seen.busy.map(|_| now.after(BUSY_TIMEOUT));
        }
    }

    /// A model is asked.
    pub(super) fn asked(&self, session: &SessionId, model: Option<ModelName>) {
        if let Some(seen) = lock(&self.0).sessions.get_mut(session) {
            seen.model = model;
            seen.retry = None;
        }
    }

    /// A model did not answer. Nothing is heard of the session until it is asked again.
    pub(super) fn retries(&self, session: &SessionId, retry: Retry, now: Moment) {
        if let Some(seen) = lock(&self.0).sessions.get_mut(session) {
            let next = retry.next().unwrap_or(now).max(now);
            seen.busy = seen.busy.map(|_| next.after(BUSY_TIMEOUT));
            seen.retry = Some(retry);
        }
    }

    /// Where a session at work stands, if its model is not to be asked again for a long time.
    pub(super) fn long_wait(&self, session: &SessionId, now: Moment) -> Option<Standing> {
        let state = lock(&self.0);
        let seen = state.sessions.get(session)?;
        seen.retry.as_ref()?.long_wait(seen.model.clone(), now)
    }

    /// An execution has ended; `end` is nothing if it went well.
    pub(super) fn ended(&self, session: &SessionId, end: Option<End>, now: Moment) {
        self.change(session, now, |seen| {
            seen.busy = None;
            seen.retry = None;
            if seen.on_its_way.is_none() {
                seen.end = end;
                seen.prompted = None;
            }
        });
    }

    pub(super) fn deleted(&self, session: &SessionId) {
        let mut state = lock(&self.0);
        state.sessions.remove(session);
        state.awake.remove(session);
    }

    /// Events were lost: any session may have become idle.
    pub(super) fn events_lost(&self) {
        for seen in lock(&self.0).sessions.values_mut() {
            seen.busy = None;
            seen.on_its_way = None;
        }
    }

    /// Whether a session is certainly at work.
    pub(super) fn is_busy(&self, session: &SessionId, now: Moment) -> bool {
        let state = lock(&self.0);
        let busy = state.sessions.get(session).and_then(|seen| seen.busy);
        busy.is_some_and(|until| now < until)
    }

    /// Whether a session was prompted a moment ago and may not be at work yet.
    pub(super) fn is_starting(&self, session: &SessionId, now: Moment) -> bool {
        let state = lock(&self.0);
        let prompted = state.sessions.get(session).and_then(|seen| seen.prompted);
        prompted.is_some_and(|at| now.since(at) < START_TIMEOUT)
    }

    /// How the newest execution ended, if an event said so since the prompt and it did not go well.
    pub(super) fn end(&self, session: &SessionId) -> Option<End> {
        lock(&self.0).sessions.get(session)?.end.clone()
    }

    /// Whether a session has been at work since this process began.
    pub(super) fn is_awake(&self, session: &SessionId) -> bool {
        lock(&self.0).awake.contains(session)
    }

    pub(super) fn wake(&self, session: &SessionId) {
        let mut state = lock(&self.0);
        if state.awake.len() >= REMEMBERED && !state.awake.contains(session) {
            // Those that are forgotten are looked up in their history.
            state.awake.clear();
        }
        state.awake.insert(session.clone());
    }

    fn change(&self, session: &SessionId, now: Moment, how: impl FnOnce(&mut SessionState)) {
        let mut state = lock(&self.0);
        let sessions = &mut state.sessions;
        if sessions.len() >= REMEMBERED && !sessions.contains_key(session) {
            let mut heard: Vec<Moment> = sessions.values().map(|seen| seen.heard).collect();
            heard.sort_unstable();
            let middle = heard[heard.len() / 2];
            sessions.retain(|_, seen| seen.heard > middle || seen.busy.is_some());
        }
        let seen = sessions.entry(session.clone()).or_default();
        seen.heard = now;
        how(seen);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::from_millis(0).after(Duration::from_secs(seconds))
    }

    #[test]
    fn the_end_of_what_came_before_a_prompt_is_not_its_end() {
        let (activity, session) = (Activity::default(), SessionId::from("ses_1"));
        let interrupted = End::Interrupted {
            reason: "user".to_owned(),
        };
        activity.started(&session, at(1));
        activity.prompting(&session, "msg_2", at(2));
        activity.ended(&session, Some(interrupted.clone()), at(2));
        assert_eq!(activity.end(&session), None);
        assert!(activity.is_starting(&session, at(3)));
        activity.admitted(&session, "msg_2");
        activity.started(&session, at(3));
        assert!(activity.is_busy(&session, at(4)));
        activity.ended(&session, Some(interrupted.clone()), at(5));
        assert_eq!(activity.end(&session), Some(interrupted));
        assert!(!activity.is_starting(&session, at(5)));
    }

    #[test]
    fn a_prompt_that_is_sent_again_is_not_announced_again() {
        let (activity, session) = (Activity::default(), SessionId::from("ses_1"));
        let failed = End::Failed {
            why: "Agent not found".to_owned(),
            by_model: false,
        };
        activity.found(&session, "msg_1", at(1));
        activity.prompting(&session, "msg_1", at(2));
        activity.started(&session, at(2));
        activity.ended(&session, Some(failed.clone()), at(2));
        assert_eq!(activity.end(&session), Some(failed));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let activity = Activity::default();
        for number in 0..20_000_u64 {
            let session = SessionId::from(format!("ses_{number}"));
            activity.started(&session, at(number));
            activity.ended(&session, None, at(number));
        }
        let state = lock(&activity.0);
        assert!(state.sessions.len() <= REMEMBERED);
        assert!(state.awake.len() <= REMEMBERED);
        assert!(state.sessions.contains_key(&SessionId::from("ses_19999")));
    }
}
