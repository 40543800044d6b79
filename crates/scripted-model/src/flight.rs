//! How many requests are being answered at once.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// Counts the requests in flight.
#[derive(Clone, Default)]
pub(crate) struct Flight(Arc<Counters>);

#[derive(Default)]
struct Counters {
    now: AtomicUsize,
    peak: AtomicUsize,
}

/// A request in flight, until this is dropped.
pub(crate) struct Aboard(Flight);

impl Flight {
    pub(crate) fn board(&self) -> Aboard {
        let now = self.0.now.fetch_add(1, Ordering::Relaxed) + 1;
        self.0.peak.fetch_max(now, Ordering::Relaxed);
        Aboard(self.clone())
    }

    pub(crate) fn now(&self) -> usize {
        self.0.now.load(Ordering::Relaxed)
    }

    pub(crate) fn peak(&self) -> usize {
        self.0.peak.load(Ordering::Relaxed)
    }
}

impl Drop for Aboard {
    fn drop(&mut self) {
        self.0.0.now.fetch_sub(1, Ordering::Relaxed);
    }
}
