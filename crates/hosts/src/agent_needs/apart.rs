//! Makes what an agent has apart. It may have left anything there, also links in the place of folders,
//! so nothing is reached by a path: a link that it made would be followed outside of its sandbox.

use std::{
    fs::{self, File},
    io::{self, Write},
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::Path,
};

use rustix::{
    fs::{AtFlags, Mode, OFlags, mkdirat, openat, readlinkat, renameat, symlinkat, unlinkat},
    io::Errno,
};
use uuid::Uuid;

use super::table::Apart;

const FOLDER: OFlags = OFlags::DIRECTORY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Makes the folders and the links in this place, with links to files in the user's folder. What is
/// something else is replaced.
pub(super) fn make(place: &Path, users: &Path, apart: &Apart) -> io::Result<()> {
    let place = rustix::fs::open(place, FOLDER, Mode::empty())?;
    for folder in apart.folders {
        folder_in(&place, folder)?;
    }
    for (at, to) in apart.links {
        let (folder, name) = at.rsplit_once('/').unwrap_or(("", at));
        link_in(&folder_in(&place, folder)?, name, &users.join(to))?;
    }
    if let Some(made) = &apart.made {
        let (folder, name) = made.at.rsplit_once('/').unwrap_or(("", made.at));
        let of = fs::read_to_string(users.join(made.of)).unwrap_or_default();
        file_in(&folder_in(&place, folder)?, name, &(made.by)(&of))?;
    }
    Ok(())
}

/// Puts a file in place in one step: others may be reading it.
fn file_in(folder: &OwnedFd, name: &str, text: &str) -> io::Result<()> {
    let new = format!("{name}.{}", Uuid::new_v4().simple());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let mut file = File::from(openat(folder, &new, flags, Mode::RUSR | Mode::WUSR)?);
    file.write_all(text.as_bytes())?;
    let put = renameat(folder, &new, folder, name).or_else(|error| match error {
        // A folder that it has left there.
        Errno::ISDIR => {
            unlinkat(folder, name, AtFlags::REMOVEDIR)?;
            renameat(folder, &new, folder, name)
        }
        error => Err(error),
    });
    Ok(put?)
}

/// Opens a folder in this place, and makes what is missing of it.
fn folder_in(place: &OwnedFd, path: &str) -> io::Result<OwnedFd> {
    let mut parts = path.split('/').filter(|part| !part.is_empty());
    parts.try_fold(place.try_clone()?, |above, part| {
        let opened = match openat(&above, part, FOLDER, Mode::empty()) {
            Err(Errno::NOENT) => None,
            Err(Errno::NOTDIR | Errno::LOOP) => {
                unlinkat(&above, part, AtFlags::empty())?;
                None
            }
            opened => Some(opened?),
        };
        let make = || {
            match mkdirat(&above, part, Mode::RWXU) {
                // Another process makes the same.
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error),
            }
            openat(&above, part, FOLDER, Mode::empty())
        };
        Ok(opened.map_or_else(make, Ok)?)
    })
}

fn link_in(folder: &OwnedFd, name: &str, to: &Path) -> io::Result<()> {
    let is_there = || {
        let found = readlinkat(folder, name, Vec::new());
        found.is_ok_and(|found| found.as_bytes() == to.as_os_str().as_bytes())
    };
    if is_there() {
        return Ok(());
    }
    match unlinkat(folder, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(Errno::ISDIR) => unlinkat(folder, name, AtFlags::REMOVEDIR)?,
        Err(error) => return Err(error.into()),
    }
    match symlinkat(to, folder, name) {
        // Another process makes the same.
        Err(Errno::EXIST) if is_there() => Ok(()),
        made => Ok(made?),
    }
}
