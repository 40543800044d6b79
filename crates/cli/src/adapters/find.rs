//! Where the program is that speaks for an agent.

use std::{
    ffi::OsString,
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use anyhow::anyhow;

use super::{AgentProgram, Node};
use crate::{make_visible::shown_path, on_path::find_on_path};

/// A program that speaks for an agent, and how it is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Adapter {
    /// What is started.
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<OsString>,
    /// The file that was found.
    pub(crate) file: PathBuf,
    pub(crate) origin: Origin,
    /// Folders with the files that it consists of, beside those of the system: where it is shut in,
    /// it has to be able to read them.
    pub(crate) folders: Vec<PathBuf>,
}

/// Whose copy it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The user's.
    Path,
    /// The one that `asyncagents setup agents` installed.
    Ours,
}

/// How a script begins that Node.js runs, at most.
const FIRST_LINE: usize = 200;

/// The program for an agent: the user's own on the PATH, or the one that was installed for the user.
/// What is in a project is not taken, nor what the PATH names relative to a folder.
///
/// # Errors
/// With a sentence that says what to do.
pub(crate) async fn find_adapter(agent: &AgentProgram, project: &Path) -> anyhow::Result<Adapter> {
    let (file, origin) = find_file(agent, project)?;
    let real = file.canonicalize().unwrap_or_else(|_| file.clone());
    let arguments = agent.arguments.iter().map(OsString::from);
    if !is_script_of_node(&real) {
        return Ok(Adapter {
            folders: folder_of(&real).into_iter().collect(),
            arguments: arguments.collect(),
            program: file.clone(),
            file,
            origin,
        });
    }
    let node = Node::find(project).await;
    let node =
        node.map_err(|error| error.context(format!("{} needs Node.js", shown_path(&file))))?;
    let path = node.path.canonicalize().unwrap_or(node.path);
    let folders = [package_of(&real), folder_of(&path)];
    Ok(Adapter {
        folders: folders.into_iter().flatten().collect(),
        // By its own name, so that the script's first line, which asks the PATH, does not decide.
        arguments: [real.into_os_string()]
            .into_iter()
            .chain(arguments)
            .collect(),
        program: path,
        file,
        origin,
    })
}

/// The agent itself, if it is there and can do without its adapter.
pub(crate) fn find_own_program(agent: &AgentProgram, project: &Path) -> Option<PathBuf> {
    let own = agent.own.filter(|_| agent.own_is_enough)?;
    find_on_path(own, project)
}

fn find_file(agent: &AgentProgram, project: &Path) -> anyhow::Result<(PathBuf, Origin)> {
    if let Some(file) = find_on_path(agent.program, project) {
        return Ok((file, Origin::Path));
    }
    let AgentProgram {
        name,
        shown,
        program,
        ..
    } = agent;
    let Some(package) = agent.package else {
        return Err(anyhow!(
            "there is no `{program}` on the PATH, which {shown} is driven by; install {shown}"
        ));
    };
    let ours = package.installed().map(|file| (file, Origin::Ours));
    ours.ok_or_else(|| {
        anyhow!(
            "there is no `{program}` on the PATH, which {shown} is driven by; `asyncagents setup \
             agents {name}` installs it"
        )
    })
}

/// Whether Node.js runs a file, by how it begins.
fn is_script_of_node(file: &Path) -> bool {
    let mut begins = Vec::new();
    let read = File::open(file).map(|file| file.take(FIRST_LINE as u64).read_to_end(&mut begins));
    let first = begins
        .split(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    let first = String::from_utf8_lossy(first);
    read.is_ok() && first.starts_with("#!") && first.split([' ', '/']).any(|word| word == "node")
}

/// The folder with all that npm installed beside a script.
fn package_of(script: &Path) -> Option<PathBuf> {
    let mut above = script.ancestors();
    let modules = above.find(|folder| {
        folder
            .file_name()
            .is_some_and(|name| name == "node_modules")
    });
    modules.map(Path::to_owned).or_else(|| folder_of(script))
}

fn folder_of(file: &Path) -> Option<PathBuf> {
    file.parent().map(Path::to_owned)
}
