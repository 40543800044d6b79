//! A clock that tests can stop.

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
}
