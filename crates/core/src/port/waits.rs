//! Callers that wait for a task.

use super::Stored;
use crate::{
    id::{SessionId, TaskId},
    moment::Moment,
};

/// The waits, as one transaction sees them.
pub trait Waits {
    /// Someone waits for a task until then.
    fn wait(&mut self, task: &TaskId, by: &SessionId, until: Moment) -> Stored<i64>;
    /// That someone waits no more.
    fn stop_waiting(&mut self, wait: i64) -> Stored<()>;
    /// Until when someone in this session waits for a task.
    fn awaited(&mut self, task: &TaskId, by: &SessionId, now: Moment) -> Stored<Option<Moment>>;
}
