//! The settings of a toolbox.

use std::{path::PathBuf, time::Duration};

use crate::resources::Resources;

/// The settings of a toolbox.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where the agent works.
    pub workspace: PathBuf,
    /// Further folders that may be read and written.
    pub allowed: Vec<PathBuf>,
    /// Further folders and files that may only be read; private files in them are none.
    pub readable: Vec<PathBuf>,
    /// Whether `bash` runs in a sandbox.
    pub sandbox: SandboxMode,
    /// Whether `bash` may use the network.
    pub network: bool,
    /// How much a command may use, sandboxed or not.
    pub resources: Resources,
    /// The program that has the verb `sandbox-exec`.
    pub helper: PathBuf,
    /// Variables that sandboxed commands get besides the usual ones: names, and beginnings with a
    /// `*` behind them.
    pub variables: Vec<String>,
    /// Variables that `bash` never gets.
    pub secret_variables: Vec<String>,
    /// Paths that nothing here reads, besides the usual ones.
    pub secret_paths: Vec<PathBuf>,
    /// Where it is kept which files of the home were private, if it is: a command may change their
    /// modes.
    pub private_before: Option<PathBuf>,
    /// The user's folder: what the usual secret paths and `~` start from.
    pub home: Option<PathBuf>,
    /// How long `bash` may run if a call does not say.
    pub bash_timeout: Duration,
    /// How many characters a tool may answer with.
    pub output_limit: usize,
}

/// Whether `bash` runs in a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SandboxMode {
    /// Where the kernel can; where it cannot, the first answer of `bash` says so.
    #[default]
    Auto,
    Off,
    /// Always: where the kernel cannot, `bash` is refused.
    Required,
}

impl Settings {
    /// The defaults for this workspace, with the home folder of this process.
    pub fn new(workspace: impl Into<PathBuf>, helper: impl Into<PathBuf>) -> Self {
        Self {
            workspace: workspace.into(),
            allowed: Vec::new(),
            readable: Vec::new(),
            sandbox: SandboxMode::Auto,
            network: false,
            resources: Resources::default(),
            helper: helper.into(),
            variables: Vec::new(),
            secret_variables: Vec::new(),
            secret_paths: Vec::new(),
            private_before: None,
            home: std::env::home_dir(),
            bash_timeout: Duration::from_secs(120),
            output_limit: 30_000,
        }
    }
}
