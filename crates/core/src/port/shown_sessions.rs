//! Which session a process of another agent shows to its user.

use super::Stored;
use crate::{id::SessionId, moment::Moment};

/// The sessions that processes show, as one transaction sees them.
pub trait ShownSessions {
    /// From now on a process shows this session. False if it did already.
    fn shows(&mut self, process: &str, session: &SessionId, at: Moment) -> Stored<bool>;
    /// The session that a process shows, if it has said so.
    fn shown_by(&mut self, process: &str) -> Stored<Option<SessionId>>;
}
