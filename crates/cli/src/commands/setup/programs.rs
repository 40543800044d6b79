//! Which OpenCode programs there are, and of which generation.

use std::{
    env, fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context, anyhow, bail};
use asyncagents_core::port::HostError;
use asyncagents_hosts::opencode::version::{self, Generation};
use tokio::{process::Command, time::timeout};

use crate::{exit::Failure, make_visible::shown_path, print};

/// How long a program may take to say its version. OpenCode needs 1.2 s of an idle processor.
const VERSION_TIMEOUT: Duration = Duration::from_secs(30);

/// What OpenCode's program is called. The second generation may have a name of its own.
const NAMES: [&str; 2] = ["opencode", "opencode2"];

/// An OpenCode that is installed.
#[derive(Debug)]
pub(in crate::commands) struct Program {
    pub(in crate::commands) path: PathBuf,
    /// As it prints it.
    pub(in crate::commands) version: String,
    /// The generation, or why it is not supported.
    pub(in crate::commands) generation: Result<Generation, String>,
}

impl Program {
    /// Asks a program for its version.
    async fn ask(path: PathBuf) -> anyhow::Result<Self> {
        let version = version_line(&path).await?;
        let generation = version::generation(version::in_line(&version));
        let generation = generation.map_err(|error| match error {
            HostError::Refused(why) => why,
            error => error.to_string(),
        });
        Ok(Self {
            path,
            version,
            generation,
        })
    }
}

/// The program that was named, or those that a shell would find, each asked for its version.
pub(in crate::commands) async fn programs(
    named: Option<&Path>,
    here: &Path,
) -> Result<Vec<Program>, Failure> {
    let mut programs = Vec::new();
    for path in find(named, here)? {
        programs.push(Program::ask(path).await.map_err(Failure::Machine)?);
    }
    Ok(programs)
}

/// The programs that a shell would find. One that does not say its version is told of, not
/// returned.
pub(in crate::commands) async fn installed(here: &Path) -> (Vec<Program>, Vec<String>) {
    let (mut programs, mut problems) = (Vec::new(), Vec::new());
    for path in on_path(here) {
        match Program::ask(path).await {
            Ok(program) => programs.push(program),
            Err(error) => problems.push(format!("{error:#}")),
        }
    }
    (programs, problems)
}

fn find(named: Option<&Path>, here: &Path) -> Result<Vec<PathBuf>, Failure> {
    let variable = env::var_os("ASYNCAGENTS_OPENCODE_BIN").filter(|value| !value.is_empty());
    let from_environment = variable.map(PathBuf::from);
    if let Some(program) = named.map(Path::to_owned).or(from_environment) {
        if !is_program(&program) {
            let program = shown_path(&program);
            return Err(Failure::Input(anyhow!(
                "{program} is not a program; name OpenCode with --opencode-bin"
            )));
        }
        // A name without a folder would be looked for on the PATH.
        return Ok(vec![std::path::absolute(&program).unwrap_or(program)]);
    }
    let found = on_path(here);
    if found.is_empty() {
        return Err(Failure::Machine(anyhow!(
            "there is no `opencode` on the PATH; install OpenCode, or name it with --opencode-bin"
        )));
    }
    Ok(found)
}

/// OpenCode's programs on the PATH, each once.
fn on_path(here: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    for name in NAMES {
        let is_new = |program: &PathBuf| {
            let real = fs::canonicalize(program).ok();
            found
                .iter()
                .all(|known| fs::canonicalize(known).ok() != real)
        };
        if let Some(program) = find_on_path(name, here).filter(is_new) {
            found.push(program);
        }
    }
    found
}

/// A program on the PATH. What a project has put there is not run: it is not the user's, and nobody
/// asked for it.
pub(super) fn find_on_path(name: &str, here: &Path) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let projects = projects_of(here);
    let is_safe = |folder: &PathBuf| {
        let real = folder.canonicalize().unwrap_or_else(|_| folder.clone());
        let inside = |project: &PathBuf| folder.starts_with(project) || real.starts_with(project);
        folder.is_absolute() && !projects.iter().any(inside)
    };
    let folders = env::split_paths(&path).filter(is_safe);
    let mut programs = folders.map(|folder| folder.join(name));
    programs.find(|program| is_program(program))
}

/// The folders whose programs are a project's: the outermost repository around the current folder,
/// which a submodule is a part of; the folder itself; and what npm installs in each above it. The
/// user's home is no project, whatever is in it.
fn projects_of(here: &Path) -> Vec<PathBuf> {
    let home = env::var_os("HOME").map(PathBuf::from);
    let is_home = |folder: &&Path| home.as_ref().is_some_and(|home| home.starts_with(folder));
    let above: Vec<&Path> = here
        .ancestors()
        .take_while(|folder| !is_home(folder))
        .collect();
    let repository = above.iter().rfind(|folder| folder.join(".git").exists());
    let own = above.first().into_iter().chain(repository);
    let own = own.map(|folder| folder.to_path_buf());
    let installed = above.iter().map(|folder| folder.join("node_modules"));
    own.chain(installed).collect()
}

pub(super) fn is_program(path: &Path) -> bool {
    let about = path.metadata();
    about.is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}

/// What a program answers to `--version`. It is not started in a project, whose files it might
/// read.
pub(in crate::commands) async fn version_line(program: &Path) -> anyhow::Result<String> {
    let name = shown_path(program);
    let mut command = Command::new(program);
    command
        .arg("--version")
        .current_dir("/")
        .stdin(Stdio::null());
    let output = timeout(VERSION_TIMEOUT, command.kill_on_drop(true).output()).await;
    let output = output.map_err(|_| anyhow!("{name} does not say its version"))?;
    let output = output.with_context(|| format!("{name} cannot be started"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    match text.lines().next().map(str::trim) {
        Some(line) if output.status.success() && !line.is_empty() => {
            Ok(line.chars().filter(print::harmless).take(80).collect())
        }
        _ => bail!(
            "{name} does not say its version: it ended with {}",
            output.status
        ),
    }
}
