//! `asyncagents setup` and what it sets up, as a user types it. Files are real; OpenCode is a script that
//! says it listens where the test answers.
#![expect(clippy::expect_used, reason = "a test may panic; its helpers too")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use asyncagents_core::tool_set;
use asyncagents_hosts::plugin;
use tempfile::TempDir;

#[path = "setup/agents.rs"]
mod agents;
#[path = "setup/checking.rs"]
mod checking;
#[path = "setup/clients.rs"]
mod clients;
#[path = "setup/fake.rs"]
mod fake;
#[path = "setup/finding.rs"]
mod finding;
#[path = "setup/installing.rs"]
mod installing;

const TOOLS: [&str; 8] = [
    "asyncagents_task",
    "asyncagents_output",
    "asyncagents_list",
    "asyncagents_cancel",
    "asyncagents_message",
    "asyncagents_answer",
    "asyncagents_clear",
    "asyncagents_skill",
];

const ONLY_ONE: &str = "OpenCode would load both";

/// A user with a project, and nothing else.
struct Home {
    folder: TempDir,
}

impl Home {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        // Where a repository begins, OpenCode looks no further up.
        fs::create_dir_all(folder.path().join("project/.git")).expect("a project");
        Self { folder }
    }

    /// Without links, as programs see it.
    fn path(&self, name: &str) -> PathBuf {
        let folder = self.folder.path().canonicalize().expect("a folder");
        folder.join(name)
    }

    fn user_file(&self) -> PathBuf {
        self.path("config/opencode/plugins/asyncagents.js")
    }

    fn project_file(&self) -> PathBuf {
        self.path("project/.opencode/plugins/asyncagents.js")
    }

    fn command(&self) -> Command {
        self.setup_of("opencode")
    }

    fn setup_of(&self, host: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_asyncagents"));
        command
            .current_dir(self.path("project"))
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", self.folder.path())
            .env("XDG_CONFIG_HOME", self.path("config"))
            .args(["setup", host]);
        command
    }

    fn run(&self, args: &[&str]) -> Said {
        Said::of(self.command().args(args))
    }

    fn write(&self, file: &Path, text: &str) {
        fs::create_dir_all(file.parent().expect("a folder")).expect("folders");
        fs::write(file, text).expect("written");
    }
}

/// What a command said and how it ended.
#[derive(Debug)]
struct Said {
    code: Option<i32>,
    answer: String,
    remarks: String,
}

impl Said {
    fn of(command: &mut Command) -> Self {
        let Output {
            status,
            stdout,
            stderr,
        } = command.output().expect("runs");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        Self {
            code: status.code(),
            answer: text(stdout).trim_end().to_owned(),
            remarks: text(stderr),
        }
    }

    #[track_caller]
    fn done(self, answer: &str) -> Self {
        assert_eq!(self.code, Some(0), "{self:?}");
        assert_eq!(self.answer, answer, "{self:?}");
        self
    }

    /// One sentence, and nothing done.
    #[track_caller]
    fn refused(&self, code: i32, why: &str) {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert_eq!(self.answer, "", "{self:?}");
        let line = format!("asyncagents: {why}\n");
        assert_eq!(self.remarks, line, "{self:?}");
    }

    #[track_caller]
    fn remarks(&self, what: &str) {
        assert!(self.remarks.contains(what), "no `{what}`: {self:?}");
    }
}

/// What the plugin should be when a program is named.
fn rendered(program: &str) -> String {
    plugin::render(program, &tool_set::specs_with_skill("asyncagents_", None))
}

fn current() -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_asyncagents"));
    let program = program.canonicalize().expect("a program");
    rendered(program.to_str().expect("text"))
}
