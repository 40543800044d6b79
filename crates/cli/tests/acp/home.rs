//! A home and a folder of its own, and a model that plays a script.

use std::{fs, path::PathBuf, time::Duration};

use asyncagents_scripted_model::{ModelServer, Recorded, Script};
use tempfile::TempDir;
use tokio::process::Command;

pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Home {
    folder: TempDir,
    pub(crate) model: ModelServer,
}

impl Home {
    pub(crate) async fn new(script: Script) -> Self {
        let model = ModelServer::start(script).await.expect("a port");
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["work", "home"] {
            fs::create_dir(folder.path().join(name)).expect("made");
        }
        Self { folder, model }
    }

    /// The folder that the agent works in, without links.
    pub(crate) fn work(&self) -> PathBuf {
        let work = self.folder.path().join("work");
        work.canonicalize().expect("a folder")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.work().join(name)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("written");
    }

    /// The program, in another folder than the agent works in.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_asyncagents"));
        let config = format!("providers.test.base_url={}", self.model.url());
        command
            .current_dir(self.folder.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.folder.path().join("home"))
            .env("ASYNCAGENTS_MODEL", "test/model")
            .env("ASYNCAGENTS_PERMISSIONS_MODE", "yolo")
            .env("ASYNCAGENTS_WORKER_LEASE", "600ms")
            .env("ASYNCAGENTS_WORKER_IDLE", "1s")
            .args(["-c", &config, "-c", "providers.test.wire=anthropic"])
            .args(args)
            .kill_on_drop(true);
        command
    }

    /// `asyncagents acp` that asks.
    pub(crate) fn asking(&self) -> Command {
        let mut command = self.command(&["acp"]);
        command.env("ASYNCAGENTS_PERMISSIONS_MODE", "ask");
        command
    }

    /// Waits until the model has got such requests.
    pub(crate) async fn wait_for(&self, what: impl Fn(&[Recorded]) -> bool) {
        let waited = tokio::time::timeout(PATIENCE, self.model.wait_for(what)).await;
        waited.expect("the model never gets that request");
    }

    /// What the model was sent last.
    pub(crate) fn newest(&self) -> String {
        let requests = self.model.requests();
        requests.last().map(Recorded::text).unwrap_or_default()
    }
}

/// Waits until something is so, looking again and again.
pub(crate) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let looked = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let waited = tokio::time::timeout(PATIENCE, looked).await;
    waited.unwrap_or_else(|_| panic!("never: {what}"));
}
