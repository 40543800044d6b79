//! A workspace with a toolbox, beside a home and a folder that are none of its business.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use asyncagents_core::agent::ToolOutcome;
use asyncagents_tools::{Prepared, Sandbox, SandboxMode, Settings, Toolbox};
use rustix::process::{Pid, Signal};
use serde_json::Value;
use tempfile::TempDir;

pub(crate) const HELPER: &str = env!("CARGO_BIN_EXE_sandbox-helper");

pub(crate) struct Workbench {
    pub(crate) toolbox: Toolbox,
    pub(crate) workspace: PathBuf,
    pub(crate) home: PathBuf,
    pub(crate) outside: PathBuf,
    _folder: TempDir,
}

impl Workbench {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    /// With other settings.
    pub(crate) fn with(change: impl FnOnce(&mut Settings)) -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        let root = folder.path().canonicalize().expect("it exists");
        let [workspace, home, outside] = ["workspace", "home", "outside"].map(|n| root.join(n));
        for path in [&workspace, &home.join(".ssh"), &outside] {
            fs::create_dir_all(path).expect("a folder");
        }
        fs::write(home.join(".ssh/id"), "PRIVATE KEY\n").expect("a secret");
        fs::write(home.join(".profile"), "harmless\n").expect("no secret");
        fs::write(outside.join("precious"), "precious\n").expect("a file");
        let mut settings = Settings::new(&workspace, HELPER);
        settings.home = Some(home.clone());
        change(&mut settings);
        Self {
            toolbox: Toolbox::new(settings).expect("a toolbox"),
            workspace,
            home,
            outside,
            _folder: folder,
        }
    }

    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.workspace.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(&path, content).expect("a file");
        path
    }

    /// A program. Another process writes it: one that a process of these tests still has open for
    /// writing cannot be started.
    pub(crate) fn program(&self, name: &str, script: &str) {
        let text = self.file(&format!("{name}.txt"), script);
        let mut install = std::process::Command::new("install");
        install.args(["-m", "755"]).arg(&text);
        let installed = install.arg(self.workspace.join(name)).status();
        assert!(installed.expect("it runs").success());
        fs::remove_file(text).expect("removed");
    }

    pub(crate) fn content(&self, name: &str) -> String {
        fs::read_to_string(self.workspace.join(name)).expect("the file")
    }

    pub(crate) async fn call(&self, tool: &str, input: Value) -> ToolOutcome {
        self.toolbox.call(tool, &input.to_string(), &|_| {}).await
    }

    /// A call that makes sense.
    pub(crate) fn prepared(&self, tool: &str, input: &Value) -> Prepared {
        let prepared = self.toolbox.prepare(tool, &input.to_string());
        prepared.expect("a call that makes sense")
    }

    /// The toolbox of a session in another folder.
    pub(crate) fn session_in(&self, folder: &Path) -> Toolbox {
        self.toolbox.in_folder(folder).expect("a toolbox")
    }

    /// The answer of a call that must succeed.
    pub(crate) async fn done(&self, tool: &str, input: Value) -> String {
        match self.call(tool, input).await {
            ToolOutcome::Done(text) => text,
            other => panic!("{tool}: {other:?}"),
        }
    }

    /// The answer of a call that must fail.
    pub(crate) async fn failed(&self, tool: &str, input: Value) -> String {
        match self.call(tool, input).await {
            ToolOutcome::Failed(text) => text,
            other => panic!("{tool}: {other:?}"),
        }
    }

    /// Replaces `{workspace}`, `{home}`, `{outside}` and `{helper}`.
    pub(crate) fn filled(&self, text: &str) -> String {
        let places = [
            ("{workspace}", &self.workspace),
            ("{home}", &self.home),
            ("{outside}", &self.outside),
        ];
        let filled = places.iter().fold(text.to_owned(), |text, (name, path)| {
            text.replace(name, &path.display().to_string())
        });
        filled.replace("{helper}", HELPER)
    }
}

/// Whether this kernel can sandbox; says so if not.
pub(crate) fn can_sandbox() -> bool {
    match Workbench::with(|s| s.sandbox = SandboxMode::Required)
        .toolbox
        .sandbox()
    {
        Sandbox::Enforced { .. } => true,
        Sandbox::Missing { why } => {
            println!("skipped: {why}");
            false
        }
        Sandbox::Off => panic!("it was not turned off"),
    }
}

/// Waits for something that must come.
pub(crate) fn eventually(what: &str, mut happened: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(20);
    while !happened() {
        assert!(Instant::now() < until, "still waiting: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The processes whose numbers are in a file, one in each line.
pub(crate) fn processes(list: &Path) -> Vec<u32> {
    let list = fs::read_to_string(list).unwrap_or_default();
    list.lines()
        .filter_map(|line| line.trim().parse().ok())
        .collect()
}

/// Whether a process is there and not just waiting to be buried.
pub(crate) fn is_alive(process: u32) -> bool {
    fs::read_to_string(format!("/proc/{process}/stat")).is_ok_and(|stat| {
        !stat
            .rsplit_once(')')
            .is_some_and(|(_, rest)| rest.starts_with(" Z"))
    })
}

pub(crate) fn kill(process: u32) {
    send(process, Signal::KILL);
}

pub(crate) fn send(process: u32, signal: Signal) {
    let process = i32::try_from(process).ok().and_then(Pid::from_raw);
    rustix::process::kill_process(process.expect("a process"), signal).expect("it is ours");
}
