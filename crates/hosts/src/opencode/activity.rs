//! Which sessions are at work, as events and our own requests say. A hint that saves requests: what
//! is not known here, OpenCode is asked.

use std::{
    collections::{HashMap, HashSet},
    sync::Mutex,
    time::Duration,
};

use asyncagents_core::{
    id::{PostId, SessionId},
    lock::lock,
    moment::Moment,
    task::Outcome,
};

use super::wire::RunEnd;

/// A busy session without any event for this long is no longer taken for busy. Events are reliable;
/// this is for the day they are not.
const BUSY_TIMEOUT: Duration = Duration::from_secs(4 * 60);
/// How long a session may take from a prompt until it is at work.
pub(super) const START_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Default)]
pub(super) struct Activity(Mutex<State>);

#[derive(Default)]
struct State {
    sessions: HashMap<SessionId, SessionState>,
    /// When we sent what.
    sent: HashMap<PostId, Moment>,
    /// Sessions that have been at work since this process began.
    awake: HashSet<SessionId>,
}

#[derive(Default)]
struct SessionState {
    /// The time of the newest event, while the session is at work.
    busy: Option<Moment>,
    /// When the session was prompted, if no event has come since.
    prompted: Option<Moment>,
    /// How the run ended, if an event said so since the prompt.
    end: Option<RunEnd>,
}

impl Activity {
    /// A prompt is about to be sent.
    pub(super) fn prompting(&self, session: &SessionId, now: Moment) {
        let mut state = lock(&self.0);
        let prompted = SessionState {
            prompted: Some(now),
            ..SessionState::default()
        };
        state.sessions.insert(session.clone(), prompted);
        state.awake.insert(session.clone());
    }

    /// OpenCode did not take the prompt.
    pub(super) fn not_prompted(&self, session: &SessionId) {
        if let Some(seen) = lock(&self.0).sessions.get_mut(session) {
            seen.prompted = None;
        }
    }

    /// A notice was sent, which sets a session to work that is idle.
    pub(super) fn notified(&self, session: &SessionId, now: Moment) {
        let mut state = lock(&self.0);
        let seen = state.sessions.entry(session.clone()).or_default();
        if seen.busy.is_none() {
            seen.prompted = Some(now);
        }
    }

    pub(super) fn busy(&self, session: &SessionId, now: Moment) {
        let mut state = lock(&self.0);
        let busy = SessionState {
            busy: Some(now),
            ..SessionState::default()
        };
        state.sessions.insert(session.clone(), busy);
        state.awake.insert(session.clone());
    }

    /// An event about a session has come.
    pub(super) fn event(&self, session: &SessionId, now: Moment) {
        if let Some(seen) = lock(&self.0).sessions.get_mut(session) {
            seen.busy = seen.busy.map(|_| now);
        }
    }

    pub(super) fn idle(&self, session: &SessionId) {
        if let Some(seen) = lock(&self.0).sessions.get_mut(session) {
            seen.busy = None;
        }
    }

    /// A run was aborted or has failed.
    pub(super) fn ended(&self, session: &SessionId, end: RunEnd) {
        let mut state = lock(&self.0);
        let seen = state.sessions.entry(session.clone()).or_default();
        // The event of an abort before the prompt may come after the prompt.
        if end.outcome == Outcome::Cancelled && seen.prompted.is_some() {
            return;
        }
        seen.end = Some(end);
        seen.prompted = None;
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
        }
    }

    /// Whether a session is certainly at work.
    pub(super) fn is_busy(&self, session: &SessionId, now: Moment) -> bool {
        let state = lock(&self.0);
        let busy = state.sessions.get(session).and_then(|seen| seen.busy);
        busy.is_some_and(|newest| now.since(newest) < BUSY_TIMEOUT)
    }

    /// Whether a session was prompted a moment ago and may not be at work yet.
    pub(super) fn is_starting(&self, session: &SessionId, now: Moment) -> bool {
        let state = lock(&self.0);
        let prompted = state.sessions.get(session).and_then(|seen| seen.prompted);
        prompted.is_some_and(|at| now.since(at) < START_TIMEOUT)
    }

    /// How the run ended, if an event said so since the prompt.
    pub(super) fn end(&self, session: &SessionId) -> Option<RunEnd> {
        lock(&self.0).sessions.get(session)?.end.clone()
    }

    /// Whether a session has been at work since this process began.
    pub(super) fn is_awake(&self, session: &SessionId) -> bool {
        lock(&self.0).awake.contains(session)
    }

    pub(super) fn wake(&self, session: &SessionId) {
        lock(&self.0).awake.insert(session.clone());
    }

    pub(super) fn sending(&self, post: &PostId, now: Moment) {
        lock(&self.0).sent.insert(post.clone(), now);
    }

    pub(super) fn sent_at(&self, post: &PostId) -> Option<Moment> {
        lock(&self.0).sent.get(post).copied()
    }

    pub(super) fn arrived(&self, post: &PostId) {
        lock(&self.0).sent.remove(post);
    }
}
