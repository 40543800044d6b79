//! Which OpenCode programs there are, and of which generation.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use anyhow::anyhow;
use asyncagents_core::port::HostError;
use asyncagents_hosts::opencode::version::{self, Generation};

use crate::{
    exit::Failure,
    make_visible::shown_path,
    on_path::{find_on_path, is_program},
    version_line::version_line,
};

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
