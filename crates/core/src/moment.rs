//! Points in time, as rules see them.

use std::time::Duration;

/// Milliseconds since 1970. The rules are told the time; they never ask for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Moment(i64);

impl Moment {
    /// A moment by its milliseconds since 1970.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Milliseconds since 1970.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// How long after `earlier` this is; zero if it is before, as clocks may be set back.
    pub fn since(self, earlier: Moment) -> Duration {
        let millis = self.0.saturating_sub(earlier.0);
        Duration::from_millis(u64::try_from(millis).unwrap_or(0))
    }

    /// Moved by milliseconds, forwards or backwards.
    pub fn moved(self, millis: i64) -> Moment {
        Self(self.0.saturating_add(millis))
    }

    /// `time` earlier.
    pub fn before(self, time: Duration) -> Moment {
        let millis = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        Self(self.0.saturating_sub(millis))
    }

    /// `time` later.
    pub fn after(self, time: Duration) -> Moment {
        let millis = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(millis))
    }
}
