//! The toolbox of a session.

use std::{io, path::Path, sync::Arc};

use asyncagents_core::{
    agent::{Reach, ToolOutcome},
    arguments::CallError,
};

use crate::{prepared::Prepared, sandbox::Sandbox, settings::Settings, tool, workspace::Workspace};

/// The tools of one session, in its folder. Clones are the same toolbox.
#[derive(Clone)]
pub struct Toolbox {
    workspace: Arc<Workspace>,
}

impl Toolbox {
    /// Opens a workspace. Makes a private temporary folder, which goes with the last toolbox that
    /// shares it.
    ///
    /// # Errors
    /// If a folder cannot be resolved, or the temporary one not be made.
    pub fn new(settings: Settings) -> io::Result<Self> {
        Workspace::open(settings).map(Self::in_workspace)
    }

    /// A toolbox for another session in the same folder, which knows nothing of what this one has
    /// read.
    #[must_use]
    pub fn for_session(&self) -> Self {
        Self::in_workspace(self.workspace.for_session())
    }

    /// The same toolbox, whose commands find the name of their session in
    /// [`SESSION_VARIABLE`](crate::SESSION_VARIABLE).
    #[must_use]
    pub fn named(&self, session: &str) -> Self {
        Self::in_workspace(self.workspace.named(session))
    }

    /// A toolbox for another session, in its own folder: that may be touched, and the folder of this
    /// one not, unless the settings allow it. It shares the settings, the temporary folder, and what
    /// was found out about the home.
    ///
    /// # Errors
    /// If there is no such folder, or its path has a link in it.
    pub fn in_folder(&self, folder: &Path) -> io::Result<Self> {
        self.workspace.in_folder(folder).map(Self::in_workspace)
    }

    fn in_workspace(workspace: Workspace) -> Self {
        let workspace = Arc::new(workspace);
        Self { workspace }
    }

    /// Ends the helpers that wait for a command, and removes the temporary folder now, for a process
    /// that ends before the last clone goes.
    pub fn close(&self) {
        self.workspace.helpers.end();
        // What is left is in the system's temporary folder, which is cleaned some day.
        let _ = std::fs::remove_dir_all(self.workspace.temporary.path());
    }

    /// Reads a call, for the rules that permit or refuse it, and to be run.
    ///
    /// # Errors
    /// With a text for the model: there is no such tool, the arguments do not fit, or the path is
    /// secret.
    pub fn prepare(&self, tool: &str, input: &str) -> Result<Prepared, CallError> {
        Prepared::new(&self.workspace, tool, input)
    }

    /// Reads and runs a call, where no rules have to be kept.
    pub async fn call(
        &self,
        tool: &str,
        input: &str,
        progress: &(dyn Fn(&str) + Send + Sync),
    ) -> ToolOutcome {
        match self.prepare(tool, input) {
            Ok(prepared) => prepared.run(Arc::new(|_| Reach::Show), progress).await,
            Err(error) => ToolOutcome::Failed(error.to_string()),
        }
    }

    /// Runs a read-only command: in a sandbox in which it can write nothing but its temporary files,
    /// for 5 seconds at most. Returns what it prints, up to 10,000 characters and the middle left
    /// out. Where there is no sandbox it runs only if it may run unsandboxed.
    ///
    /// # Errors
    /// With a sentence: the command was not run, failed, or took too long.
    pub async fn run_read_only(&self, command: &str, unsandboxed: bool) -> Result<String, String> {
        tool::run_read_only(&self.workspace, command, unsandboxed).await
    }

    /// What a model has to know of the sandbox: a sentence that is the same in every process, for
    /// system prompts begin the same and are found in the provider's cache. It says what this
    /// kernel can do, and does not wait until that was tried: should it fail, the answer to the
    /// first command says so.
    pub fn sandbox_rules(&self) -> String {
        if self.workspace.expects_sandbox() {
            self.workspace.command_rules()
        } else {
            "Commands run without a sandbox.".to_owned()
        }
    }

    /// Whether commands run in a sandbox. The first question takes some milliseconds.
    pub fn sandbox(&self) -> Sandbox {
        let broken = |why| Sandbox::Missing { why };
        self.workspace.sandbox().unwrap_or_else(broken)
    }
}
