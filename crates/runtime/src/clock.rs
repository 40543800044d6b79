//! The system's clocks.

use std::{
    fs,
    sync::LazyLock,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use asyncagents_core::{moment::Moment, port::Clock};
use rustix::time::{ClockId, clock_gettime};

/// The system's clocks, which all processes on a machine share.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

/// Where the system has no name for its boot, this stays empty.
static BOOT: LazyLock<String> = LazyLock::new(|| {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id");
    boot.unwrap_or_default().trim().to_owned()
});

impl Clock for SystemClock {
    fn now(&self) -> Moment {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let millis = since.map_or(0, |since| since.as_millis());
        Moment::from_millis(i64::try_from(millis).unwrap_or(i64::MAX))
    }

    fn steady(&self) -> Duration {
        Duration::try_from(clock_gettime(ClockId::Monotonic)).unwrap_or_default()
    }

    fn boot(&self) -> &str {
        &BOOT
    }
}

/// What both clocks said when they were last read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clocks {
    now: Moment,
    steady: Duration,
}

/// Clocks are corrected by a little all the time.
const CORRECTION: i64 = 5_000;

impl Clocks {
    pub(crate) fn read(clock: &dyn Clock) -> Self {
        Self {
            now: clock.now(),
            steady: clock.steady(),
        }
    }

    /// By how many milliseconds the time of day has moved more than the time that has passed, if
    /// that is more than a correction. A move is reported once.
    pub(crate) fn moved(&mut self, clock: &dyn Clock) -> Option<i64> {
        let seen = Self::read(clock);
        let passed = seen.steady.saturating_sub(self.steady).as_millis();
        let passed = i64::try_from(passed).unwrap_or(i64::MAX);
        let day = seen.now.as_millis().saturating_sub(self.now.as_millis());
        let moved = day.saturating_sub(passed);
        (moved.abs() > CORRECTION).then(|| {
            *self = seen;
            moved
        })
    }
}
