//! Where an agent's own files are on this machine.

use std::{
    ffi::OsString,
    fs::{self, DirBuilder, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use super::{
    apart,
    project_name::{claudes_name, our_name},
    table::{Folder, Needs, Own},
};

/// The folder beside an agent's own files in which each project has one.
const APART: &str = "asyncagents";

/// An agent's own files, which are kept from others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnFiles {
    /// What it writes while it works.
    pub writable: Vec<PathBuf>,
    /// What it only reads.
    pub readable: Vec<PathBuf>,
    /// What it neither writes nor reads, but for what of it is writable.
    pub closed: Vec<PathBuf>,
    /// The variables that lead it there.
    pub variables: Vec<(OsString, OsString)>,
}

impl Needs {
    /// Its own files in the sandbox, for a user with this home and these variables, in a project whose
    /// path is real.
    pub fn files(
        &self,
        home: &Path,
        project: &Path,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> OwnFiles {
        let mut files = OwnFiles::default();
        for (folder, own) in self.own(home, &variable) {
            match own {
                Own::WritesIn(path) | Own::Writes(path) | Own::Renews(path) => {
                    files.writable.push(below(&folder, path));
                }
                Own::ToldOf(path, name) => {
                    let path = below(&folder, path);
                    files.variables.push((name.into(), path.clone().into()));
                    files.writable.push(path);
                }
                Own::Reads(path) | Own::ReadsIn(path) => files.readable.push(below(&folder, path)),
                Own::Projects(path) => {
                    let all = below(&folder, path);
                    files
                        .writable
                        .extend(claudes_name(project).map(|own| all.join(own)));
                    files.closed.push(all);
                }
                Own::Apart(apart) => {
                    let place = apart_of(&folder, project);
                    let told = apart.told.iter();
                    let told = told.map(|(path, name)| (name.into(), below(&place, path).into()));
                    files.variables.extend(told);
                    files.writable.push(place);
                }
            }
        }
        files
    }

    /// Makes what it writes and what is missing, for this user alone: it may not do so itself.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn make_files(
        &self,
        home: &Path,
        project: &Path,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> io::Result<()> {
        for (folder, own) in self.own(home, &variable) {
            match own {
                Own::WritesIn(path) | Own::ToldOf(path, _) | Own::ReadsIn(path) => {
                    make_folder(&below(&folder, path))?;
                }
                Own::Writes(path) => {
                    make_folder(&folder)?;
                    make_file(&below(&folder, path))?;
                }
                Own::Projects(path) => {
                    let name = claudes_name(project).ok_or_else(|| {
                        let why = "it is not known what Claude Code calls the conversations of a folder \
                            with such a long or unusual path";
                        io::Error::new(io::ErrorKind::InvalidFilename, why)
                    })?;
                    make_folder(&below(&folder, path).join(name))?;
                }
                Own::Apart(apart) => {
                    let place = apart_of(&folder, project);
                    make_folder(&place)?;
                    let made = apart::make(&place, &folder, apart);
                    made.map_err(|error| named(&place, &error))?;
                }
                Own::Renews(_) | Own::Reads(_) => {}
            }
        }
        Ok(())
    }

    /// All that it has, with the folder that it is in.
    fn own(
        &self,
        home: &Path,
        variable: &impl Fn(&str) -> Option<OsString>,
    ) -> Vec<(PathBuf, &'static Own)> {
        let folders = self.folders.iter();
        let own = folders.flat_map(|folder| {
            let place = folder.place(home, variable);
            folder.own.iter().map(move |own| (place.clone(), own))
        });
        own.collect()
    }

    /// One of its folders.
    pub(super) fn folder(
        &self,
        home: &Path,
        variable: &impl Fn(&str) -> Option<OsString>,
    ) -> Option<PathBuf> {
        let first = self.folders.first();
        first.map(|folder| folder.place(home, variable))
    }
}

impl Folder {
    fn place(&self, home: &Path, variable: &impl Fn(&str) -> Option<OsString>) -> PathBuf {
        let moved = self.moved_by.and_then(|(name, path)| {
            let to = PathBuf::from(variable(name)?);
            to.is_absolute().then(|| below(&to, path))
        });
        moved.unwrap_or_else(|| below(home, self.path))
    }
}

/// What an agent with this folder has apart in a project.
fn apart_of(folder: &Path, project: &Path) -> PathBuf {
    folder.join(APART).join(our_name(project))
}

/// The folder itself, if there is nothing to add.
fn below(folder: &Path, path: &str) -> PathBuf {
    if path.is_empty() {
        folder.to_owned()
    } else {
        folder.join(path)
    }
}

fn make_folder(path: &Path) -> io::Result<()> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|error| named(path, &error))
}

fn make_file(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    match options.open(path) {
        Ok(_) => Ok(()),
        // What is there is not touched, wherever a link leads.
        Err(_) if fs::symlink_metadata(path).is_ok() => Ok(()),
        Err(error) => Err(named(path, &error)),
    }
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
