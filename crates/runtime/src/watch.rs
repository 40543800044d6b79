//! Wakes those who wait for something to happen to a task.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use asyncagents_core::{id::TaskId, lock::lock};
use tokio::sync::Notify;

/// Who waits for which task.
#[derive(Default)]
pub(crate) struct Watch {
    watched: Mutex<HashMap<TaskId, Arc<Notify>>>,
    /// Someone has begun to wait.
    pub(crate) begun: Notify,
}

/// Someone's wait for a task. It is over when this is dropped.
pub(crate) struct Watching<'w> {
    watch: &'w Watch,
    task: TaskId,
    pub(crate) changed: Arc<Notify>,
}

impl Watch {
    pub(crate) fn task(&self, task: &TaskId) -> Watching<'_> {
        let mut watched = lock(&self.watched);
        let changed = watched.entry(task.clone()).or_default().clone();
        self.begun.notify_one();
        Watching {
            watch: self,
            task: task.clone(),
            changed,
        }
    }

    /// Something happened to these.
    pub(crate) fn wake(&self, tasks: &[TaskId]) {
        let watched = lock(&self.watched);
        for changed in tasks.iter().filter_map(|task| watched.get(task)) {
            changed.notify_waiters();
        }
    }

    /// Something may have happened to any of them.
    pub(crate) fn wake_all(&self) {
        let watched = lock(&self.watched);
        watched
            .values()
            .for_each(|changed| changed.notify_waiters());
    }

    pub(crate) fn is_idle(&self) -> bool {
        lock(&self.watched).is_empty()
    }
}

impl Drop for Watching<'_> {
    fn drop(&mut self) {
        let mut watched = lock(&self.watch.watched);
        // One reference is the map's and one is ours.
        let last = watched
            .get(&self.task)
            .is_some_and(|changed| Arc::strong_count(changed) <= 2);
        if last {
            watched.remove(&self.task);
        }
    }
}
