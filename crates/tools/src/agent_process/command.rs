//! What is started, and what that gives.

use std::{ffi::OsString, io, path::PathBuf};

use tokio::net::unix::pipe;

use super::{life::AgentLife, limits::AgentLimits, start};
use crate::resources::Resources;

/// A program of another vendor, to be started.
#[derive(Debug, Clone)]
pub struct AgentCommand {
    /// An absolute path.
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
    /// Where it works.
    pub folder: PathBuf,
    /// All its variables, but for `TMPDIR`: a folder of its own, which it may write.
    pub environment: Vec<(OsString, OsString)>,
    /// The program that has the verb `sandbox-exec`.
    pub helper: PathBuf,
    /// How much it may use, with all that it starts.
    pub resources: Resources,
    /// What it may do. `None`: everything, because the user said so.
    pub sandbox: Option<AgentLimits>,
}

/// A program of another vendor that was started.
pub struct AgentProcess {
    pub input: pipe::Sender,
    pub output: pipe::Receiver,
    pub errors: pipe::Receiver,
    /// Ends it when it is dropped.
    pub life: AgentLife,
}

/// Why a program was not started.
#[derive(Debug, thiserror::Error)]
pub enum AgentStartError {
    /// This machine cannot sandbox it. It was not started: only the user can say that it may run
    /// without.
    #[error("it cannot be sandboxed: {0}")]
    CannotSandbox(String),
    #[error("it cannot be started: {0}")]
    Failed(#[from] io::Error),
}

impl AgentProcess {
    /// Starts a program. It has begun when this returns, or it will be told by
    /// [`AgentLife::wait`] why it has not.
    ///
    /// # Errors
    /// If it was not started; nothing of it runs then.
    pub async fn start(command: AgentCommand) -> Result<Self, AgentStartError> {
        start::start(command).await
    }
}
