//! How many hooks wait for one session. Claude Code starts one with each launch and each end of a turn,
//! and ends none: a task of an hour would have as many as there were turns.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use asyncagents_core::{digest::digest, id::SessionId};

use super::host_process::HostProcess;
use crate::{folders::beside, own_file};

/// One tells, and another waits for the next end meanwhile; one more in case of a hook that hangs.
const PLACES: usize = 3;

/// A place among the hooks that wait. It is free when this process ends, however it does.
pub(super) struct WaitingPlace {
    path: PathBuf,
    /// Locked.
    _file: File,
}

impl WaitingPlace {
    /// A free place beside the database, for a session that a process shows. Nothing if enough hooks
    /// wait there.
    pub(super) fn take(
        db: &Path,
        process: &HostProcess,
        session: &SessionId,
    ) -> io::Result<Option<Self>> {
        let folder = beside(db, ".waiting");
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder)?;
        let name = format!("{:016x}", digest(&[process.name(), session.as_str()]));
        tidy(&folder, &name)?;
        for place in 0..PLACES {
            let path = folder.join(format!("{name}-{place}"));
            if let Some(file) = lock(&path)? {
                return Ok(Some(Self { path, _file: file }));
            }
        }
        Ok(None)
    }
}

impl Drop for WaitingPlace {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Takes away what hooks left behind that were killed. One that is just taking its place may lose the
/// file to this: then one hook more waits, which harms nobody.
fn tidy(folder: &Path, ours: &str) -> io::Result<()> {
    for entry in fs::read_dir(folder)?.flatten() {
        let is_ours = entry.file_name().to_string_lossy().starts_with(ours);
        if !is_ours && let Ok(Some(_free)) = lock(&entry.path()) {
            let _ = fs::remove_file(entry.path());
        }
    }
    Ok(())
}

/// The file, locked; nothing if another process has it.
fn lock(path: &Path) -> io::Result<Option<File>> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true);
    let file = own_file::open(path, &mut options)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(fs::TryLockError::WouldBlock) => Ok(None),
        Err(fs::TryLockError::Error(error)) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_few_for_each_session_and_free_again_when_they_are_left() {
        let folder = tempfile::tempdir().unwrap();
        let db = folder.path().join("db");
        let process = HostProcess::parent().unwrap();
        let take = |session: &str| WaitingPlace::take(&db, &process, &session.into()).unwrap();
        let mut taken: Vec<_> = (0..PLACES).map(|_| take("one").unwrap()).collect();
        assert!(take("one").is_none());
        let other = take("another").unwrap();
        assert!(taken.iter().all(|place| place.path.exists()));
        taken.pop();
        assert!(take("one").is_some());
        drop((taken, other));
        let left = fs::read_dir(beside(&db, ".waiting")).unwrap();
        assert_eq!(left.count(), 0);
    }

    #[test]
    fn what_a_killed_hook_left_is_taken_away() {
        let folder = tempfile::tempdir().unwrap();
        let db = folder.path().join("db");
        let process = HostProcess::parent().unwrap();
        let take = |session: &str| WaitingPlace::take(&db, &process, &session.into()).unwrap();
        drop(take("one"));
        let left = beside(&db, ".waiting").join("0123456789abcdef-0");
        fs::write(&left, "").unwrap();
        let _taken = take("one");
        assert!(!left.exists());
    }
}
