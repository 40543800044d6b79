//! Reads the files that tell agents what to do. In a project somebody else may have put them there.

use std::{fs, io, os::unix::fs::MetadataExt, path::Path};

/// How large such a file may be.
const LARGEST: u64 = 1_000_000;

/// Why a file is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unread {
    /// There is none.
    Missing,
    /// It is no regular file of reasonable size that is really in the project: a link could lead
    /// to anything, a private key, or a device without an end.
    NotAFile,
    /// Neither the user's nor root's.
    Foreign,
}

impl Unread {
    /// What to say about it.
    pub(crate) fn why(self) -> &'static str {
        match self {
            Unread::Missing => "it is not there",
            Unread::NotAFile => "it is not a file of reasonable size",
            Unread::Foreign => "it belongs to another user",
        }
    }
}

/// A file of the user's, which may be a link to anywhere.
pub(crate) fn read_users(file: &Path) -> Result<String, Unread> {
    let about = fs::metadata(file).map_err(|error| unread(&error))?;
    read(file, &about)
}

/// A file of a project.
pub(crate) fn read_projects(project: &Path, file: &Path) -> Result<String, Unread> {
    let real = |path: &Path| path.canonicalize().map_err(|error| unread(&error));
    let (real, project) = (real(file)?, real(project)?);
    let about = fs::metadata(&real).map_err(|error| unread(&error))?;
    let user = rustix::process::geteuid().as_raw();
    match real.starts_with(&project) {
        false => Err(Unread::NotAFile),
        true if ![user, 0].contains(&about.uid()) => Err(Unread::Foreign),
        true => read(&real, &about),
    }
}

fn read(file: &Path, about: &fs::Metadata) -> Result<String, Unread> {
    if !about.is_file() || about.len() > LARGEST {
        return Err(Unread::NotAFile);
    }
    let bytes = fs::read(file).map_err(|error| unread(&error))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn unread(error: &io::Error) -> Unread {
    match error.kind() {
        io::ErrorKind::NotFound => Unread::Missing,
        _ => Unread::NotAFile,
    }
}
