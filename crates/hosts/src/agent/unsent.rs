//! The answers that an agent has not read yet. One that asks and does not read is not heard until it does.

use std::sync::Arc;

use tokio::sync::watch;

/// How many answers may wait until the agent reads them.
const MOST_UNSENT: usize = 100;

/// How many answers an agent has not read.
#[derive(Clone)]
pub(crate) struct Unsent(Arc<watch::Sender<usize>>);

impl Unsent {
    pub(crate) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }

    /// One more is on its way.
    pub(crate) fn add(&self) {
        self.0.send_modify(|count| *count += 1);
    }

    /// One was written.
    pub(crate) fn written(&self) {
        self.0.send_modify(|count| *count = count.saturating_sub(1));
    }

    /// Waits until the agent may ask more.
    pub(crate) async fn room(&self) {
        // The sender is here.
        let mut count = self.0.subscribe();
        let _ = count.wait_for(|count| *count < MOST_UNSENT).await;
    }
}
