//! A fork: what a child would inherit.

use std::time::Duration;

use asyncagents_core::fork::{Fork, Stats};
use serde::Serialize;

/// Context, preamble and statistics.
#[derive(Debug, Serialize)]
pub struct ForkView<'a> {
    context: &'a str,
    preamble: &'a str,
    stats: TimedStats<'a>,
}

#[derive(Debug, Serialize)]
struct TimedStats<'a> {
    #[serde(flatten)]
    stats: &'a Stats,
    took_ms: Milliseconds,
}

#[derive(Debug, Serialize)]
struct Milliseconds {
    reading: f64,
    forking: f64,
}

impl<'a> ForkView<'a> {
    /// A fork, and how long it took to read the session and to fork it.
    pub fn new(fork: &'a Fork, reading: Duration, forking: Duration) -> Self {
        Self {
            context: &fork.context,
            preamble: &fork.preamble,
            stats: TimedStats {
                stats: &fork.stats,
                took_ms: Milliseconds {
                    reading: milliseconds(reading),
                    forking: milliseconds(forking),
                },
            },
        }
    }
}

/// To the microsecond: more digits would be noise.
pub fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}
