//! How many requests are being answered at once.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// Counts the requests in flight.
#[derive(Clone, Default)]
pub(crate) struct InFlight(Arc<Counters>);

#[derive(Default)]
struct Counters {
    now: AtomicUsize,
    peak: AtomicUsize,
}

/// A request in flight, until this is dropped.
pub(crate) struct InFlightGuard(InFlight);

impl InFlight {
    pub(crate) fn begin(&self) -> InFlightGuard {
        let now = self.0.now.fetch_add(1, Ordering::Relaxed) + 1;
        self.0.peak.fetch_max(now, Ordering::Relaxed);
        InFlightGuard(self.clone())
    }

    pub(crate) fn now(&self) -> usize {
        self.0.now.load(Ordering::Relaxed)
    }

    pub(crate) fn peak(&self) -> usize {
        self.0.peak.load(Ordering::Relaxed)
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.0.0.now.fetch_sub(1, Ordering::Relaxed);
    }
}
