//! The time.

use std::time::Duration;

use crate::moment::Moment;

/// Tells the time. All processes that share a store have to agree on it, more or less.
pub trait Clock: Send + Sync {
    /// The time of day. It may be set, back or forth, and it goes on while the machine sleeps: it is for
    /// telling when something was.
    fn now(&self) -> Moment;

    /// Time that cannot be set and that stands still while the machine sleeps: for telling how
    /// long something takes. It counts from the boot, so processes of one boot agree on it.
    fn steady(&self) -> Duration;

    /// Which boot that is; empty if it is not known, and then processes do not agree.
    fn boot(&self) -> &str;
}
