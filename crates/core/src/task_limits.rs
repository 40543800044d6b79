//! What keeps tasks from running away. Zero means zero, never "no limit".

use std::{collections::BTreeMap, time::Duration};

use crate::{budget::Budget, host_ref::HostRef, id::ModelName};

/// How many bytes a prompt may have: more than any model can read.
pub const LONGEST_PROMPT: usize = 16_000_000;

/// The limits of all tasks together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskLimits {
    /// How many tasks of one depth run at once. Each depth has slots of its own: a task
    /// waits only for deeper ones, so waiting tasks can never take each other's slots.
    pub concurrency: u64,
    /// Of these, how many in an OpenCode of one generation, whose one thread does all the work.
    pub opencode: u64,
    /// How many tasks of one depth run at once in other agents, which need much memory each.
    pub agents: u64,
    /// How many tasks of a model run at once at one depth, for models that have a limit.
    pub per_model: BTreeMap<ModelName, u64>,
    /// How many tasks of one parent run at once.
    pub per_parent: Option<u64>,
    /// How deep tasks may launch tasks.
    pub depth: u32,
    /// How many tasks may ever be launched below one root session.
    pub spawns: u64,
    /// A task without progress for this long is ended.
    pub stall: Duration,
    /// A question that is open for this long is told to the parent.
    pub ask: Duration,
    /// The same call this often in a row ends a task.
    pub same_calls: u64,
    /// A task that loses its worker so often, without progress in between, is ended.
    pub worker_deaths: u64,
    /// What a task may spend where its launch does not say.
    pub budget: Budget,
}

impl TaskLimits {
    /// How many tasks of one depth run at once in a host, if its kind has a limit of its own.
    pub(crate) fn in_host(&self, host: &HostRef) -> Option<u64> {
        match host {
            HostRef::OpenCodeBridge { .. }
            | HostRef::OpenCodeUrl { .. }
            | HostRef::OpenCode2Bridge { .. }
            | HostRef::OpenCode2Url { .. } => Some(self.opencode),
            HostRef::Agent { .. } => Some(self.agents),
            HostRef::Engine { .. }
            | HostRef::ClaudeCode { .. }
            | HostRef::Codex { .. }
            | HostRef::McpClient
            | HostRef::Other(_) => None,
        }
    }
}

impl Default for TaskLimits {
    fn default() -> Self {
        Self {
            concurrency: 200,
            opencode: 10,
            agents: 4,
            per_model: BTreeMap::new(),
            per_parent: None,
            depth: 2,
            spawns: 200,
            stall: Duration::from_secs(10 * 60),
            ask: Duration::from_secs(2 * 60),
            same_calls: 20,
            worker_deaths: 2,
            budget: Budget {
                time: Some(Duration::from_secs(60 * 60)),
                ..Budget::default()
            },
        }
    }
}
