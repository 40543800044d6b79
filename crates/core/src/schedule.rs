//! Which queued task may start.

use std::collections::HashMap;

use crate::{
    id::{ModelName, SessionId},
    task::Task,
    task_limits::TaskLimits,
};

/// What slots are counted by.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Slots {
    /// All tasks of one depth.
    Depth(u32),
    /// Those in hosts of one kind, which the names of the hosts begin with, at one depth.
    Host(u32, Box<str>),
    /// Those that are asked with one model, also in place of another, at one depth.
    Model(u32, ModelName),
    /// Those of one parent.
    Parent(SessionId),
}

/// Goes through the queue, first come first served, and admits every task for which all
/// its slots are free. A task that has to wait for its model does not hold up the others.
#[derive(Debug)]
pub struct Schedule<'a> {
    limits: &'a TaskLimits,
    slots: HashMap<Slots, Taken>,
}

/// How many slots of a kind there are, and how many are taken.
#[derive(Debug, Clone, Copy)]
struct Taken {
    used: u64,
    limit: u64,
}

impl Taken {
    fn is_full(self) -> bool {
        self.used >= self.limit
    }
}

impl<'a> Schedule<'a> {
    /// Begins at the head of the queue.
    pub fn new(limits: &'a TaskLimits) -> Self {
        Self {
            limits,
            slots: HashMap::new(),
        }
    }

    /// Whether the next task in the queue may start; if so, it takes its slots. `count`
    /// says how many slots are taken already, and is asked once for each kind.
    ///
    /// # Errors
    /// Only those of `count`.
    pub fn admit<E>(
        &mut self,
        task: &Task,
        mut count: impl FnMut(&Slots) -> Result<u64, E>,
    ) -> Result<bool, E> {
        let wanted = wanted(task, self.limits);
        for (slots, limit) in &wanted {
            let used = match self.slots.get(slots) {
                Some(taken) => taken.used,
                None => count(slots)?,
            };
            let limit = *limit;
            let taken = Taken { used, limit };
            self.slots.insert(slots.clone(), taken);
            if taken.is_full() {
                return Ok(false);
            }
        }
        for (slots, _) in &wanted {
            if let Some(taken) = self.slots.get_mut(slots) {
                taken.used += 1;
            }
        }
        Ok(true)
    }

    /// The kinds of hosts in which every slot of this depth was found taken.
    pub fn full_hosts(&self, depth: u32) -> Vec<Box<str>> {
        let full = self.slots.iter().filter_map(|(slots, taken)| match slots {
            Slots::Host(at, kind) if *at == depth && taken.is_full() => Some(kind),
            Slots::Host(..) | Slots::Depth(_) | Slots::Model(..) | Slots::Parent(_) => None,
        });
        full.cloned().collect()
    }

    /// Whether every slot of this depth was found taken.
    pub fn is_full(&self, depth: u32) -> bool {
        let taken = self.slots.get(&Slots::Depth(depth));
        taken.is_some_and(|taken| taken.is_full())
    }
}

fn wanted(task: &Task, limits: &TaskLimits) -> Vec<(Slots, u64)> {
    let depth = task.place.depth;
    let mut wanted = vec![(Slots::Depth(depth), limits.concurrency)];
    let host = &task.brief.host.host;
    if let Some(limit) = limits.in_host(host) {
        wanted.push((Slots::Host(depth, host.kind().into()), limit));
    }
    if let Some(model) = task.model()
        && let Some(limit) = limits.per_model.get(model)
    {
        wanted.push((Slots::Model(depth, model.clone()), *limit));
    }
    if let Some(limit) = limits.per_parent {
        wanted.push((Slots::Parent(task.place.parent.clone()), limit));
    }
    wanted
}
