//! Replies that wait until a test lets them go.

use tokio::sync::watch;

/// Holds replies back until it is opened. Copies are the same gate.
#[derive(Debug, Clone)]
pub struct Gate(watch::Sender<bool>);

impl Gate {
    /// A closed gate.
    pub fn closed() -> Self {
        Self(watch::Sender::new(false))
    }

    /// Lets out what it held back, and from now on everything.
    pub fn open(&self) {
        self.0.send_replace(true);
    }

    pub(crate) async fn opened(&self) {
        // An error would mean that the gate is gone; this is one.
        let _ = self.0.subscribe().wait_for(|open| *open).await;
    }
}
