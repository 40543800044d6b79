//! A clock that tests can stop.

use std::{
    sync::atomic::{AtomicI64, Ordering},
    time::Duration,
};

use asyncagents_core::{moment::Moment, port::Clock};
use tokio::time::Instant;

/// Goes as tokio's time goes: where that is paused, it jumps from timer to timer.
#[derive(Debug, Clone, Copy)]
pub struct TokioClock {
    begun: Instant,
}

impl TokioClock {
    /// Begins at a fixed moment. Must be called inside a tokio runtime.
    pub fn start() -> Self {
        Self {
            begun: Instant::now(),
        }
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Moment {
        Moment::from_millis(1_800_000_000_000).after(self.begun.elapsed())
    }

    fn steady(&self) -> Duration {
        self.begun.elapsed()
    }

    fn boot(&self) -> &str {
        "the test's"
    }
}

/// A clock whose time of day is set while the steady time goes on.
#[derive(Debug)]
pub struct SetClock {
    clock: TokioClock,
    ahead: AtomicI64,
}

impl SetClock {
    /// Begins as [`TokioClock::start`] does.
    pub fn start() -> Self {
        Self {
            clock: TokioClock::start(),
            ahead: AtomicI64::new(0),
        }
    }

    /// Sets it forward by so many seconds, or back.
    pub fn set_forward(&self, seconds: i64) {
        self.ahead.fetch_add(seconds * 1_000, Ordering::SeqCst);
    }
}

impl Clock for SetClock {
    fn now(&self) -> Moment {
        self.clock.now().moved(self.ahead.load(Ordering::SeqCst))
    }

    fn steady(&self) -> Duration {
        self.clock.steady()
    }

    fn boot(&self) -> &str {
        self.clock.boot()
    }
}
