//! Reads the files that instruct agents. In a project another user may have put them there.

use std::{
    fs::OpenOptions,
    io::{self, Read},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::Path,
};

use asyncagents_core::owner_rule::may_instruct;
use rustix::fs::OFlags;

/// How large such a file may be.
const LARGEST: u64 = 1_000_000;

/// Why a file is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unread {
    Missing,
    /// Not a regular file of reasonable size that is really in the project: a link could lead to
    /// anything, a private key, or a device without an end.
    NotAFile,
    Foreign,
}

impl Unread {
    /// The reason, for people.
    pub(crate) fn why(self) -> &'static str {
        match self {
            Unread::Missing => "it is not there",
            Unread::NotAFile => "it is not a file of reasonable size",
            Unread::Foreign => "it belongs to another user",
        }
    }
}

impl From<io::Error> for Unread {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Unread::Missing,
            _ => Unread::NotAFile,
        }
    }
}

/// A file of the user's, which may be a link to anywhere.
pub(crate) fn read_users(file: &Path) -> Result<String, Unread> {
    read(&file.canonicalize()?, |_| true)
}

/// A file of a project.
pub(crate) fn read_projects(project: &Path, file: &Path) -> Result<String, Unread> {
    let real = file.canonicalize()?;
    if !real.starts_with(project.canonicalize()?) {
        return Err(Unread::NotAFile);
    }
    let user = rustix::process::geteuid().as_raw();
    read(&real, |owner| may_instruct(owner, user))
}

fn read(real: &Path, is_trusted: impl Fn(u32) -> bool) -> Result<String, Unread> {
    // By now it may have become a link, or a pipe that waits for a writer.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(real)?;
    let about = file.metadata()?;
    if !about.is_file() || about.len() > LARGEST {
        return Err(Unread::NotAFile);
    }
    if !is_trusted(about.uid()) {
        return Err(Unread::Foreign);
    }
    let mut bytes = Vec::new();
    file.take(LARGEST).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
