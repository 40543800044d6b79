//! What was asked so far.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use serde_json::Value;
use tokio::sync::Notify;

use crate::{protocol::Wire, request::Request};

/// A request that arrived.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// The protocol it came in.
    pub wire: Wire,
    /// Its body as it came.
    pub body: String,
    /// Its headers as they came.
    pub headers: Vec<(String, String)>,
    /// The HTTP status it was answered with; 0 while it is not, or when it never will be.
    pub status: u16,
    pub at: Instant,
    pub(crate) seen: Arc<Request>,
    pub(crate) unanswered: bool,
}

/// How many requests there were.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    pub requests: usize,
    /// Those no rule had a reply for.
    pub unanswered: usize,
}

impl Recorded {
    /// The body as JSON; null when it is none.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    /// The model asked for.
    pub fn model(&self) -> String {
        self.seen.model.clone()
    }

    /// The system prompt.
    pub fn system(&self) -> String {
        self.seen.system().to_owned()
    }

    /// The conversation as rules see it: the text of all messages, tool calls (name and
    /// arguments) and tool results, without the system prompt and without reasoning.
    pub fn text(&self) -> String {
        self.seen.text().to_owned()
    }

    /// Everything after the last assistant message.
    pub fn last(&self) -> String {
        self.seen.last().to_owned()
    }

    /// How many assistant messages it has.
    pub fn turn(&self) -> usize {
        self.seen.turn
    }

    /// The names of the tools it offers.
    pub fn tool_names(&self) -> Vec<String> {
        self.seen.tool_names()
    }
}

/// All requests, in order of arrival.
#[derive(Default)]
pub(crate) struct Record {
    kept: Mutex<Kept>,
    changed: Notify,
    forget_bodies: bool,
}

#[derive(Default)]
struct Kept {
    requests: Vec<Recorded>,
    counts: Counts,
}

/// A request's place in the record.
#[derive(Clone, Copy)]
pub(crate) struct Place(usize);

impl Record {
    pub(crate) fn new(forget_bodies: bool) -> Self {
        Self {
            forget_bodies,
            ..Self::default()
        }
    }

    /// Notes an arrival; `request` is asked only when it is kept.
    pub(crate) fn arrived(&self, request: impl FnOnce() -> Recorded) -> Place {
        let recorded = (!self.forget_bodies).then(request);
        let place = {
            let mut kept = self.kept();
            kept.requests.extend(recorded);
            kept.counts.requests += 1;
            Place(kept.counts.requests - 1)
        };
        self.changed.notify_waiters();
        place
    }

    /// Notes how a request was answered.
    pub(crate) fn answered(&self, place: Place, status: u16) {
        if !self.forget_bodies {
            self.change(place, |request| request.status = status);
        }
    }

    /// Notes that no rule had a reply.
    pub(crate) fn unanswered(&self, place: Place) {
        self.kept().counts.unanswered += 1;
        self.change(place, |request| request.unanswered = true);
    }

    pub(crate) fn requests(&self) -> Vec<Recorded> {
        self.kept().requests.clone()
    }

    pub(crate) fn without_reply(&self) -> Vec<Recorded> {
        let kept = self.kept();
        let unanswered = kept.requests.iter().filter(|request| request.unanswered);
        unanswered.cloned().collect()
    }

    pub(crate) fn counts(&self) -> Counts {
        self.kept().counts
    }

    pub(crate) async fn wait_for(&self, what: impl Fn(&[Recorded]) -> bool) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // Before looking, so that no change in between is missed.
            changed.as_mut().enable();
            if what(&self.kept().requests) {
                return;
            }
            changed.await;
        }
    }

    fn change(&self, place: Place, what: impl FnOnce(&mut Recorded)) {
        if let Some(request) = self.kept().requests.get_mut(place.0) {
            what(request);
        }
        self.changed.notify_waiters();
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
