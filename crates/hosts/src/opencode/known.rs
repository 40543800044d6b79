//! What events and our own requests have taught us about sessions.

use std::{
    collections::{HashMap, HashSet},
    sync::Mutex,
    time::Duration,
};

use asyncagents_core::{
    id::{PostId, SessionId},
    lock::lock,
    moment::Moment,
};

/// For so long a session that was at work is believed to be, though nothing is heard of it.
/// Events are reliable; this is for the day they are not.
const TRUST: Duration = Duration::from_secs(4 * 60);
/// A prompt that was taken may take so long until the session is at work.
pub(super) const START: Duration = Duration::from_secs(10);

/// What is known about sessions.
#[derive(Default)]
pub(super) struct Known {
    book: Mutex<Book>,
}

#[derive(Default)]
struct Book {
    sessions: HashMap<SessionId, Seen>,
    /// When we sent what.
    sent: HashMap<PostId, Moment>,
    /// Sessions that have been at work since this process began.
    awake: HashSet<SessionId>,
}

/// What is known about one session.
#[derive(Default)]
struct Seen {
    /// It is at work, and was last heard of then.
    busy: Option<Moment>,
    /// It was prompted then and has not been heard of since.
    prompted: Option<Moment>,
    /// What stopped it since it was prompted.
    end: Option<BadEnd>,
}

/// Why a session stopped, as it is said before it is written into the message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum BadEnd {
    /// Somebody stopped it.
    Aborted,
    /// Something went wrong.
    Failed(String),
}

impl Known {
    /// We are about to send it a prompt.
    pub(super) fn prompting(&self, session: &SessionId, now: Moment) {
        let mut book = lock(&self.book);
        let seen = book.sessions.entry(session.clone()).or_default();
        *seen = Seen {
            prompted: Some(now),
            ..Seen::default()
        };
        book.awake.insert(session.clone());
    }

    /// It did not take the prompt.
    pub(super) fn not_prompted(&self, session: &SessionId) {
        if let Some(seen) = lock(&self.book).sessions.get_mut(session) {
            seen.prompted = None;
        }
    }

    /// It was told something that sets it to work, if it is not at work already.
    pub(super) fn nudged(&self, session: &SessionId, now: Moment) {
        let mut book = lock(&self.book);
        let seen = book.sessions.entry(session.clone()).or_default();
        if seen.busy.is_none() {
            seen.prompted = Some(now);
        }
    }

    /// It is at work.
    pub(super) fn busy(&self, session: &SessionId, now: Moment) {
        let mut book = lock(&self.book);
        let seen = book.sessions.entry(session.clone()).or_default();
        seen.busy = Some(now);
        seen.prompted = None;
        seen.end = None;
        book.awake.insert(session.clone());
    }

    /// It was heard of.
    pub(super) fn heard(&self, session: &SessionId, now: Moment) {
        if let Some(seen) = lock(&self.book).sessions.get_mut(session) {
            seen.busy = seen.busy.map(|_| now);
        }
    }

    /// It works no more.
    pub(super) fn idle(&self, session: &SessionId) {
        if let Some(seen) = lock(&self.book).sessions.get_mut(session) {
            seen.busy = None;
        }
    }

    /// Something stopped it.
    pub(super) fn stopped(&self, session: &SessionId, end: BadEnd) {
        let mut book = lock(&self.book);
        let seen = book.sessions.entry(session.clone()).or_default();
        // What was stopped before the prompt may be heard of after it.
        if end == BadEnd::Aborted && seen.prompted.is_some() {
            return;
        }
        seen.end = Some(end);
        seen.prompted = None;
    }

    pub(super) fn deleted(&self, session: &SessionId) {
        let mut book = lock(&self.book);
        book.sessions.remove(session);
        book.awake.remove(session);
    }

    /// Events were lost: what they would have said is not known.
    pub(super) fn forget(&self) {
        for seen in lock(&self.book).sessions.values_mut() {
            seen.busy = None;
        }
    }

    /// Whether it is certainly at work.
    pub(super) fn is_busy(&self, session: &SessionId, now: Moment) -> bool {
        let book = lock(&self.book);
        let busy = book.sessions.get(session).and_then(|seen| seen.busy);
        busy.is_some_and(|heard| now.since(heard) < TRUST)
    }

    /// Whether it was prompted a moment ago and may not be at work yet.
    pub(super) fn is_starting(&self, session: &SessionId, now: Moment) -> bool {
        let book = lock(&self.book);
        let prompted = book.sessions.get(session).and_then(|seen| seen.prompted);
        prompted.is_some_and(|at| now.since(at) < START)
    }

    /// What stopped it since it was prompted.
    pub(super) fn end(&self, session: &SessionId) -> Option<BadEnd> {
        lock(&self.book).sessions.get(session)?.end.clone()
    }

    /// Whether it has been at work since this process began.
    pub(super) fn is_awake(&self, session: &SessionId) -> bool {
        lock(&self.book).awake.contains(session)
    }

    pub(super) fn wake(&self, session: &SessionId) {
        lock(&self.book).awake.insert(session.clone());
    }

    pub(super) fn sending(&self, post: &PostId, now: Moment) {
        lock(&self.book).sent.insert(post.clone(), now);
    }

    pub(super) fn sent_at(&self, post: &PostId) -> Option<Moment> {
        lock(&self.book).sent.get(post).copied()
    }

    pub(super) fn arrived(&self, post: &PostId) {
        lock(&self.book).sent.remove(post);
    }
}
