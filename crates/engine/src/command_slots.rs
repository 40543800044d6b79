//! How many commands run at once, in all sessions of a process.

use std::{
    collections::HashMap,
    num::NonZeroUsize,
    sync::{Arc, Mutex},
    thread,
};

use asyncagents_core::lock::lock;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many commands may run at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CommandLimit {
    /// As many as the machine has cores.
    #[default]
    Cores,
    Of(NonZeroUsize),
}

impl CommandLimit {
    fn number(self) -> usize {
        match self {
            Self::Cores => thread::available_parallelism().map_or(1, NonZeroUsize::get),
            Self::Of(number) => number.get().min(Semaphore::MAX_PERMITS),
        }
    }
}

/// Slots for commands. Waiting for a model costs a machine nothing, but two hundred agents must not
/// start two hundred builds.
///
/// Each depth has slots of its own: a command may wait for tasks below its session, whose commands
/// it must not hold up.
pub struct CommandSlots {
    /// At each depth.
    most: usize,
    by_depth: Mutex<HashMap<u32, Arc<Semaphore>>>,
}

/// A command that may run, until this is dropped.
pub(crate) struct CommandSlot(#[expect(dead_code, reason = "held, not read")] OwnedSemaphorePermit);

impl CommandSlots {
    /// Slots for so many at each depth.
    pub fn new(limit: CommandLimit) -> Self {
        Self {
            most: limit.number(),
            by_depth: Mutex::default(),
        }
    }

    /// Whether a command would not have to wait.
    pub(crate) fn is_free(&self, depth: u32) -> bool {
        let slots = lock(&self.by_depth);
        let slots = slots.get(&depth);
        slots.is_none_or(|slots| slots.available_permits() > 0)
    }

    /// Waits for a slot. Who came first goes first, and a session has one command at a time, so
    /// that all sessions take turns.
    pub(crate) async fn take(&self, depth: u32) -> Option<CommandSlot> {
        let slots = lock(&self.by_depth)
            .entry(depth)
            .or_insert_with(|| Arc::new(Semaphore::new(self.most)))
            .clone();
        // They are never closed.
        slots.acquire_owned().await.ok().map(CommandSlot)
    }
}

impl Default for CommandSlots {
    fn default() -> Self {
        Self::new(CommandLimit::default())
    }
}
