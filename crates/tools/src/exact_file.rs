//! Opening and replacing the very file that was checked. A command that runs at the same time
//! could put a link in its place, so the kernel is asked to follow none.

use std::{
    fs::{self, File, Permissions},
    io::{self, Write},
    os::unix::fs::{MetadataExt, PermissionsExt, fchown},
    path::{Path, PathBuf},
};

use rustix::fs::{Mode, OFlags};

use crate::memory::Stamp;

/// Opens a regular file for reading. A pipe or device is refused without waiting for it.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(open_exactly(path, flags)?);
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is not a regular file")),
    }
}

/// Names a file or folder for the kernel, whatever it is, without opening it.
#[cfg(target_os = "linux")]
pub(crate) fn name(path: &Path) -> io::Result<rustix::fd::OwnedFd> {
    open_exactly(path, OFlags::PATH | OFlags::CLOEXEC)
}

/// Puts a file in place in one step: readers see the old content or the new one. Permissions
/// and owner stay.
pub(crate) fn replace(path: &Path, content: &[u8]) -> io::Result<Stamp> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::Error::other("it is not a file"));
    };
    let folder = Folder::open(folder)?;
    let target = folder.path().join(name);
    let before = match fs::symlink_metadata(&target) {
        Ok(before) if before.is_file() => Some(before),
        Ok(_) => return Err(io::Error::other("it is not a regular file")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };

    let mut builder = tempfile::Builder::new();
    builder.prefix(".asyncagents-");
    // Less what the umask takes.
    builder.permissions(Permissions::from_mode(0o666));
    let mut fresh = builder.tempfile_in(folder.path())?;
    fresh.write_all(content)?;
    if let Some(before) = before {
        // Only root may give a file away; for others it is theirs already.
        fchown(fresh.as_file(), Some(before.uid()), Some(before.gid())).ok();
        fresh.as_file().set_permissions(before.permissions())?;
    }
    fresh.as_file().sync_all()?;
    let file = fresh.persist(&target).map_err(|error| error.error)?;
    Ok(Stamp::of(&file.metadata()?))
}

/// A folder that stays the same even if its name leads elsewhere meanwhile.
struct Folder {
    #[cfg(target_os = "linux")]
    handle: rustix::fd::OwnedFd,
    #[cfg(not(target_os = "linux"))]
    path: PathBuf,
}

#[cfg(target_os = "linux")]
impl Folder {
    fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = open_exactly(path, flags)?;
        Ok(Self { handle })
    }

    fn path(&self) -> PathBuf {
        use std::os::fd::AsRawFd;
        PathBuf::from(format!("/proc/self/fd/{}", self.handle.as_raw_fd()))
    }
}

#[cfg(not(target_os = "linux"))]
impl Folder {
    fn open(path: &Path) -> io::Result<Self> {
        Ok(Self {
            path: path.to_owned(),
        })
    }

    fn path(&self) -> PathBuf {
        self.path.clone()
    }
}

#[cfg(target_os = "linux")]
fn open_exactly(path: &Path, flags: OFlags) -> io::Result<rustix::fd::OwnedFd> {
    use rustix::{
        fs::{CWD, ResolveFlags, openat2},
        io::Errno,
    };
    match openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        // An old kernel, or a container that does not know the call.
        Err(Errno::NOSYS | Errno::PERM) => open_unlinked(path, flags),
        Err(error) => Err(error.into()),
        Ok(file) => Ok(file),
    }
}

#[cfg(not(target_os = "linux"))]
fn open_exactly(path: &Path, flags: OFlags) -> io::Result<rustix::fd::OwnedFd> {
    open_unlinked(path, flags)
}

fn open_unlinked(path: &Path, flags: OFlags) -> io::Result<rustix::fd::OwnedFd> {
    Ok(rustix::fs::open(
        path,
        flags | OFlags::NOFOLLOW,
        Mode::empty(),
    )?)
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::{open, replace};

    /// A command may put a link in the place of what was checked.
    #[test]
    fn links_are_not_followed() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("it is there");
        fs::create_dir(root.join("outside")).expect("a folder");
        fs::write(root.join("outside/file"), "precious").expect("a file");
        symlink("outside", root.join("folder")).expect("a link");
        symlink("outside/file", root.join("file")).expect("a link");
        for path in ["folder/file", "file"] {
            assert!(open(&root.join(path)).is_err(), "{path}");
            #[cfg(target_os = "linux")]
            assert!(super::name(&root.join(path)).is_err(), "{path}");
            assert!(replace(&root.join(path), b"changed").is_err(), "{path}");
        }
        assert!(replace(&root.join("folder/new"), b"new").is_err());
        assert!(!root.join("outside/new").exists());
        let precious = fs::read_to_string(root.join("outside/file"));
        assert_eq!(precious.expect("it is there"), "precious");
    }
}
