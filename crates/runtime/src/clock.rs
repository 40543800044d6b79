//! The system's clock.

use std::time::{SystemTime, UNIX_EPOCH};

use asyncagents_core::{moment::Moment, port::Clock};

/// The system's clock, which all processes on a machine share.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Moment {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let millis = since.map_or(0, |since| since.as_millis());
        Moment::from_millis(i64::try_from(millis).unwrap_or(i64::MAX))
    }
}
