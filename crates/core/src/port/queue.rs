//! Tasks that wait for a slot.

use super::Stored;
use crate::{id::OwnerId, schedule::Slots, task::Task};

/// The queue, as one transaction sees it.
pub trait Queue {
    /// Up to `most` queued tasks of one depth that have an owner and whose former run has
    /// been stopped: first come first, those after place `after`, each with its place. Those in
    /// hosts of the kinds `without` are left out.
    fn queue(
        &mut self,
        depth: u32,
        without: &[Box<str>],
        after: i64,
        most: usize,
    ) -> Stored<Vec<(Task, i64)>>;
    /// The depths at which tasks are queued.
    fn queued_depths(&mut self) -> Stored<Vec<u32>>;
    /// Whether a task of this owner is queued.
    fn any_queued(&mut self, owner: &OwnerId) -> Stored<bool>;
    /// How many slots are taken by tasks that someone looks after.
    fn taken(&mut self, slots: &Slots) -> Stored<u64>;
}
