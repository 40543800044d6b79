//! An agent that was started, as these stories need it.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use asyncagents_tools::{
    AgentCommand, AgentFiles, AgentLimits, AgentNetwork, AgentProcess, Resources, Settings,
};
use tempfile::TempDir;
use tokio::{io::AsyncReadExt, time::timeout};

use crate::workbench::HELPER;

/// After this a story has failed.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// A workspace, a home and what is none of an agent's business.
pub(super) struct Site {
    pub(super) workspace: PathBuf,
    pub(super) home: PathBuf,
    pub(super) settings: Settings,
    _folder: TempDir,
}

impl Site {
    pub(super) fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        let root = folder.path().canonicalize().expect("it exists");
        let [workspace, home] = ["workspace", "home"].map(|name| root.join(name));
        for (name, text) in [
            (".agent/login.json", "LOGIN"),
            (".agent/settings.json", "{}"),
            (".agent/sessions/old", "said"),
            (".codex/auth.json", "ANOTHER LOGIN"),
            (".config/asyncagents/config.toml", "KEY"),
            ("notes", "harmless"),
        ] {
            let path = home.join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, text).expect("a file");
        }
        fs::create_dir(&workspace).expect("a folder");
        let database = root.join("database");
        fs::write(&database, "CONVERSATIONS").expect("a file");
        let mut settings = Settings::new(&workspace, HELPER);
        settings.home = Some(home.clone());
        settings.secret_paths = vec![database];
        Self {
            workspace,
            home,
            settings,
            _folder: folder,
        }
    }

    pub(super) fn limits(&self, own: &AgentFiles, network: AgentNetwork) -> AgentLimits {
        AgentLimits::of(&self.settings, own, network).expect("limits")
    }

    /// Nothing of its own, and a port at which nobody is.
    pub(super) fn usual_limits(&self) -> AgentLimits {
        self.limits(&AgentFiles::default(), only(1))
    }

    pub(super) fn command(&self, sandbox: Option<AgentLimits>, words: &[&str]) -> AgentCommand {
        let (program, arguments) = words.split_first().expect("a program");
        AgentCommand {
            program: program.into(),
            arguments: arguments.iter().map(Into::into).collect(),
            folder: self.workspace.clone(),
            environment: vec![("PATH".into(), std::env::var_os("PATH").expect("a path"))],
            helper: HELPER.into(),
            resources: Resources::default(),
            sandbox,
        }
    }

    /// Runs a program to its end: what it has printed, its errors, and how it ended.
    pub(super) async fn run(
        &self,
        sandbox: Option<AgentLimits>,
        words: &[&str],
    ) -> (String, String, String) {
        let agent = AgentProcess::start(self.command(sandbox, words)).await;
        let AgentProcess {
            input,
            mut output,
            mut errors,
            mut life,
        } = agent.expect("started");
        drop(input);
        let (mut printed, mut complained) = (String::new(), String::new());
        let run = async {
            output.read_to_string(&mut printed).await.expect("text");
            errors.read_to_string(&mut complained).await.expect("text");
            life.wait().await
        };
        let ended = timeout(PATIENCE, run).await.expect("in time");
        (printed, complained, ended)
    }

    /// Runs a script of the shell.
    pub(super) async fn shell(
        &self,
        sandbox: Option<AgentLimits>,
        script: &str,
    ) -> (String, String, String) {
        self.run(sandbox, &["/bin/sh", "-c", script]).await
    }
}

pub(super) fn only(port: u16) -> AgentNetwork {
    AgentNetwork::Only {
        port,
        listens: None,
    }
}

pub(super) fn text(path: &Path) -> &str {
    path.to_str().expect("text")
}
