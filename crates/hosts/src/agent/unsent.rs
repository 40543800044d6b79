//! The answers that an agent has not read yet. One that asks and does not read is not heard until it does.

use std::sync::Arc;

use tokio::sync::watch;

/// How many answers may wait until the agent reads them.
const MOST_UNSENT: usize = 100;

/// How many answers an agent has not read; nothing if none is written any more.
#[derive(Clone)]
pub(crate) struct Unsent(Arc<watch::Sender<Option<usize>>>);

impl Unsent {
    pub(crate) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(Some(0))))
    }

    /// One more is on its way.
    pub(crate) fn add(&self) {
        self.change(|count| count + 1);
    }

    /// One was written.
    pub(crate) fn written(&self) {
        self.change(|count| count.saturating_sub(1));
    }

    /// No more are written: the agent has ended, or does not read any more. What it has said is heard.
    pub(crate) fn close(&self) {
        self.0.send_replace(None);
    }

    fn change(&self, to: impl FnOnce(usize) -> usize) {
        self.0.send_modify(|count| *count = count.map(to));
    }

    /// Waits until the agent may ask more.
    pub(crate) async fn room(&self) {
        // The sender is here.
        let mut count = self.0.subscribe();
        let has_room = |count: &Option<usize>| count.is_none_or(|count| count < MOST_UNSENT);
        let _ = count.wait_for(has_room).await;
    }
}
