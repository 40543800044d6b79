//! The settings of the built-in agent.

use std::{path::PathBuf, time::Duration};

use asyncagents_core::{agent::Permissions, model_choice::ModelPolicy};
use asyncagents_models::Effort;

/// What becomes of a call that has to be permitted by a person when nobody is there to be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unanswered {
    /// It waits for an answer from elsewhere, as long as its task has time.
    Wait,
    Refuse,
}

/// How the built-in agent behaves in one workspace.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The folder that agents work in, without links.
    pub workspace: PathBuf,
    /// Sessions may work in folders of their own below these. What else a database says of a
    /// session's folder is not believed: others may have changed it.
    pub session_folders: Vec<PathBuf>,
    /// The model of agents that have none of their own; `None` takes the first provider that
    /// has a key.
    pub model: Option<String>,
    /// Which models may be named, and what is asked when one is unavailable.
    pub model_policy: ModelPolicy,
    /// How hard the model thinks, where it can be told.
    pub effort: Option<Effort>,
    /// What agents may do without asking.
    pub permissions: Permissions,
    /// What becomes of what has to be asked for, where no person is.
    pub unanswered: Unanswered,
    /// From this share of the model's window on a conversation is compacted, in percent.
    pub compact_at: u64,
    /// How often a model may answer in one run, where its agent does not say.
    pub max_turns: Option<u64>,
    /// The same call this often in a row ends a run.
    pub same_calls: u64,
    /// A run waits for its background tasks before it ends.
    pub wait_for_tasks: bool,
    /// Folders with agents, the later over the earlier.
    pub agent_folders: Vec<PathBuf>,
    /// What the names of the tools for background tasks begin with.
    pub prefix: String,
    /// How long a tool may go on when the engine stops.
    pub shutdown_timeout: Duration,
}

impl Settings {
    /// The defaults for a workspace.
    pub fn new(workspace: PathBuf) -> Self {
        Self {
            workspace,
            session_folders: Vec::new(),
            model: None,
            model_policy: ModelPolicy::default(),
            effort: None,
            permissions: Permissions::default(),
            unanswered: Unanswered::Refuse,
            compact_at: 80,
            max_turns: None,
            same_calls: 20,
            wait_for_tasks: true,
            agent_folders: Vec::new(),
            prefix: "asyncagents_".to_owned(),
            shutdown_timeout: Duration::from_secs(2),
        }
    }
}
