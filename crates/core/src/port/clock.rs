//! The time.

use crate::moment::Moment;

/// Tells the time. All processes that share a store have to agree on it, more or less.
pub trait Clock: Send + Sync {
    /// Now.
    fn now(&self) -> Moment;
}
