//! The private temporary folder of a toolbox. It goes with its process; one whose process was killed
//! is removed by the next.

use std::{
    fs::{self, DirEntry, File, Permissions},
    io,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::Path,
    time::Duration,
};

use rustix::process::geteuid;
use tempfile::TempDir;

/// How the names of such folders begin. No other program calls one so: it may be removed.
const PREFIX: &str = "asyncagents-of-commands-";

/// How many random letters follow.
const RANDOM: usize = 10;

/// A folder that is younger may not be locked yet.
const YOUNG: Duration = Duration::from_secs(60);

/// How many entries of the system's folder are looked at: starting must not take long.
const MOST: usize = 10_000;

/// A folder of this process alone, locked as long as the process lives.
pub(crate) struct Temporary {
    folder: TempDir,
    _lock: Option<File>,
}

impl Temporary {
    /// Makes one, and removes those that were left behind.
    pub(crate) fn new() -> io::Result<Self> {
        Self::below(&std::env::temp_dir())
    }

    fn below(above: &Path) -> io::Result<Self> {
        remove_abandoned(above);
        let folder = tempfile::Builder::new()
            .prefix(PREFIX)
            .rand_bytes(RANDOM)
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(above)?;
        // Where folders cannot be locked no other process can lock this one either, and it stays.
        let lock = locked(folder.path());
        Ok(Self {
            folder,
            _lock: lock,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// The folder's lock, unless another process has it. The kernel takes it back when that ends.
fn locked(folder: &Path) -> Option<File> {
    let opened = File::open(folder).ok()?;
    opened.try_lock().ok()?;
    Some(opened)
}

/// Removes folders of this user whose process is gone.
fn remove_abandoned(above: &Path) {
    let entries = fs::read_dir(above).into_iter().flatten().flatten();
    for entry in entries.take(MOST) {
        if is_ours(&entry) && locked(&entry.path()).is_some() {
            // Whatever cannot be removed is for the system to remove.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn is_ours(entry: &DirEntry) -> bool {
    let name = entry.file_name();
    let random = name.as_encoded_bytes().strip_prefix(PREFIX.as_bytes());
    let named = random.is_some_and(|random| random.len() == RANDOM);
    // Of the entry itself, not of what a link leads to.
    named
        && fs::symlink_metadata(entry.path()).is_ok_and(|about| {
            let age = about.modified().ok().and_then(|at| at.elapsed().ok());
            about.is_dir()
                && about.uid() == geteuid().as_raw()
                && about.mode() & 0o777 == 0o700
                && age.is_some_and(|age| age > YOUNG)
        })
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{self, File, FileTimes},
        os::unix::fs::{PermissionsExt, symlink},
        path::{Path, PathBuf},
        time::{Duration, SystemTime},
    };

    use super::Temporary;

    /// A folder as a process leaves it that is killed, so many minutes ago.
    fn left(above: &Path, name: &str, minutes: u64) -> PathBuf {
        let folder = above.join(name);
        fs::create_dir(&folder).expect("made");
        fs::write(folder.join("file"), "x").expect("written");
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).expect("a mode");
        age(&folder, minutes);
        folder
    }

    fn age(folder: &Path, minutes: u64) {
        let then = SystemTime::now() - Duration::from_secs(60 * minutes);
        let opened = File::open(folder).expect("opened");
        let times = FileTimes::new().set_modified(then);
        opened.set_times(times).expect("a time");
    }

    #[test]
    fn what_a_killed_process_has_left_is_removed_and_nothing_else() {
        let above = tempfile::tempdir().expect("a folder");
        let above = above.path();
        let abandoned = left(above, "asyncagents-of-commands-0123456789", 5);
        let kept = [
            left(above, "asyncagents-of-commands-young56789", 0),
            left(above, "somebody-elses", 5),
            left(above, "asyncagents-of-the-user", 5),
            left(above, "asyncagents-of-commands-", 5),
        ];
        let open_to_others = left(above, "asyncagents-of-commands-shared6789", 5);
        fs::set_permissions(&open_to_others, fs::Permissions::from_mode(0o755)).expect("a mode");
        let elsewhere = left(above, "elsewhere", 5);
        symlink(&elsewhere, above.join("asyncagents-of-commands-linked6789")).expect("a link");
        let alive = Temporary::below(above).expect("made");
        age(alive.path(), 5);

        let next = Temporary::below(above).expect("made");
        assert!(!abandoned.exists());
        assert!(kept.iter().all(|folder| folder.join("file").exists()));
        assert!(open_to_others.exists() && elsewhere.join("file").exists());
        assert!(alive.path().exists(), "its process lives");
        assert!(next.path().exists());
    }
}
