//! Programs on the PATH that are the user's.

use std::{
    env,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

/// A program on the PATH. What a project has put there is not run: it is not the user's, and nobody
/// asked for it.
pub(crate) fn find_on_path(name: &str, here: &Path) -> Option<PathBuf> {
    let projects = projects_of(here);
    let is_projects = |program: &Path| {
        // A link may lead into it.
        let real = program
            .canonicalize()
            .unwrap_or_else(|_| program.to_owned());
        projects.iter().any(|project| real.starts_with(project))
    };
    let mut programs = folders(here).into_iter().map(|folder| folder.join(name));
    programs.find(|program| is_program(program) && !is_projects(program))
}

/// The folders of the PATH, but for what a project has put there, and what is relative.
pub(crate) fn folders(here: &Path) -> Vec<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let projects = projects_of(here);
    let is_safe = |folder: &PathBuf| {
        let real = folder.canonicalize().unwrap_or_else(|_| folder.clone());
        let inside = |project: &PathBuf| folder.starts_with(project) || real.starts_with(project);
        folder.is_absolute() && !projects.iter().any(inside)
    };
    env::split_paths(&path).filter(is_safe).collect()
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

pub(crate) fn is_program(path: &Path) -> bool {
    let about = path.metadata();
    about.is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}
