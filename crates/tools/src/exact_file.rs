//! Opening and replacing the very file that was checked. A command that runs at the same time
//! could put a link in its place, so the kernel is asked to follow none.

use std::{
    fs::{self, File, Permissions},
    io::{self, Write},
    os::unix::fs::{MetadataExt, PermissionsExt, fchown},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{Mode, OFlags},
    io::Errno,
};

use crate::memory::Stamp;

/// Opens a regular file for reading. A pipe or device is refused without waiting for it.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(open_exactly(path, flags)?);
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::other("it is not a regular file"))
    }
}

/// Names a file or folder for the kernel, whatever it is, without opening it.
#[cfg(target_os = "linux")]
pub(crate) fn name(path: &Path) -> io::Result<rustix::fd::OwnedFd> {
    open_exactly(path, OFlags::PATH | OFlags::CLOEXEC)
}

/// Makes the folders of a path that are missing. Each is made in the one above it, which is open, so a
/// link that is put in their way meanwhile is an error and leads nowhere.
pub(crate) fn make_folders(path: &Path) -> io::Result<()> {
    let is_there = |path: &&Path| fs::symlink_metadata(path).is_ok();
    let Some(above) = path.ancestors().find(is_there) else {
        return Err(io::ErrorKind::NotFound.into());
    };
    let missing = path.strip_prefix(above).map_err(io::Error::other)?;
    let mut folder = open_exactly(above, FOLDER)?;
    for part in missing.components() {
        let name = Path::new(part.as_os_str());
        match rustix::fs::mkdirat(&folder, name, Mode::from_raw_mode(0o777)) {
            // Another process was faster.
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        let flags = FOLDER | OFlags::NOFOLLOW;
        folder = rustix::fs::openat(&folder, name, flags, Mode::empty())?;
    }
    Ok(())
}

/// How a folder is opened in which others are found or made.
#[cfg(target_os = "linux")]
const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);

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
        let handle = open_exactly(path, FOLDER)?;
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
    use rustix::fs::{CWD, ResolveFlags, openat2};
    match openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        // An old kernel, or a container that does not know the call.
        Err(Errno::NOSYS | Errno::PERM) => open_step_by_step(path, flags),
        Err(error) => Err(error.into()),
        Ok(file) => Ok(file),
    }
}

/// The same without the kernel's help: each folder is opened in the one above it.
#[cfg(target_os = "linux")]
fn open_step_by_step(path: &Path, flags: OFlags) -> io::Result<rustix::fd::OwnedFd> {
    use rustix::fs::{FileType, fstat, openat};
    let mut folder = rustix::fs::open("/", FOLDER, Mode::empty())?;
    let mut parts = path
        .strip_prefix("/")
        .map_err(io::Error::other)?
        .iter()
        .peekable();
    while let Some(part) = parts.next() {
        let flags = match parts.peek() {
            Some(_) => FOLDER,
            None => flags,
        };
        folder = openat(&folder, part, flags | OFlags::NOFOLLOW, Mode::empty())?;
    }
    // A link can be named without being followed.
    match FileType::from_raw_mode(fstat(&folder)?.st_mode) {
        FileType::Symlink => Err(Errno::LOOP.into()),
        _ => Ok(folder),
    }
}

#[cfg(not(target_os = "linux"))]
fn open_exactly(path: &Path, flags: OFlags) -> io::Result<rustix::fd::OwnedFd> {
    Ok(rustix::fs::open(
        path,
        flags | OFlags::NOFOLLOW,
        Mode::empty(),
    )?)
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::symlink,
        sync::atomic::{AtomicBool, Ordering},
        thread,
    };

    use super::{make_folders, open, replace};

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

    #[cfg(target_os = "linux")]
    #[test]
    fn nor_where_the_kernel_does_not_help() {
        use rustix::fs::OFlags;

        use super::{FOLDER, open_step_by_step};
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("it is there");
        fs::create_dir(root.join("folder")).expect("a folder");
        fs::write(root.join("folder/file"), "").expect("a file");
        symlink("folder", root.join("link")).expect("a link");
        for (path, flags, opens) in [
            ("folder", FOLDER, true),
            ("folder/file", OFlags::RDONLY, true),
            ("link", FOLDER, false),
            ("link", OFlags::PATH, false),
            ("link/file", OFlags::RDONLY, false),
        ] {
            let opened = open_step_by_step(&root.join(path), flags);
            assert_eq!(opened.is_ok(), opens, "{path}");
        }
        assert!(open_step_by_step("/".as_ref(), FOLDER).is_ok());
    }

    #[test]
    fn folders_are_not_made_through_links() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("it is there");
        fs::create_dir_all(root.join("outside")).expect("a folder");
        symlink("outside", root.join("link")).expect("a link");
        assert!(make_folders(&root.join("link/new/deep")).is_err());
        assert!(make_folders(&root.join("link/new")).is_err());
        assert_eq!(
            fs::read_dir(root.join("outside"))
                .expect("a folder")
                .count(),
            0
        );
        make_folders(&root.join("a/b/c")).expect("made");
        make_folders(&root.join("a/b/c")).expect("there already");
        assert!(root.join("a/b/c").is_dir());
        fs::write(root.join("a/file"), "").expect("a file");
        assert!(make_folders(&root.join("a/file/b")).is_err());
    }

    /// A command may exchange a folder for a link at any moment; nothing is made where that leads.
    #[test]
    fn no_folder_is_made_behind_a_link_that_comes_and_goes() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("it is there");
        let [outside, a, aside] = ["outside", "a", "aside"].map(|name| root.join(name));
        fs::create_dir(&outside).expect("a folder");
        fs::create_dir(&a).expect("a folder");
        let done = AtomicBool::new(false);
        thread::scope(|threads| {
            threads.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    // Between two of these the other thread may have made the folder.
                    let _ = fs::rename(&a, &aside);
                    let _ = symlink(&outside, &a);
                    let _ = fs::remove_file(&a);
                    let _ = fs::rename(&aside, &a);
                }
            });
            for number in 0..5_000 {
                // While the link is there it is refused.
                let _ = make_folders(&a.join(format!("{number}/deep")));
            }
            done.store(true, Ordering::Relaxed);
        });
        assert_eq!(fs::read_dir(&outside).expect("a folder").count(), 0);
    }
}
