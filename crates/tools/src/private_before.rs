//! Remembers which files were private: a list of paths in a file of the user's that commands cannot
//! reach. The user opens one of them again by naming it in `tools.readable`.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs,
    io::{self, Write},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard},
};

use asyncagents_core::lock::lock;

/// How many paths are remembered.
const MOST: usize = 20_000;

/// The files that were found to be private.
pub(crate) struct PrivateBefore {
    file: Option<PathBuf>,
    known: Mutex<Option<BTreeSet<PathBuf>>>,
}

impl PrivateBefore {
    /// Kept in this file; for this process only if there is none.
    pub(crate) fn new(file: Option<PathBuf>) -> Self {
        Self {
            file,
            known: Mutex::new(None),
        }
    }

    pub(crate) fn includes(&self, path: &Path) -> bool {
        self.known()
            .as_ref()
            .is_some_and(|known| known.contains(path))
    }

    pub(crate) fn all(&self) -> Vec<PathBuf> {
        self.known().iter().flatten().cloned().collect()
    }

    /// Remembers these too, in the file as well.
    pub(crate) fn add(&self, private: &[PathBuf]) {
        let mut known = self.known();
        let Some(known) = known.as_mut() else {
            return;
        };
        let before = known.len();
        // A line break in a name would make two of it.
        let news = private
            .iter()
            .filter(|path| !path.as_os_str().as_bytes().contains(&b'\n'));
        known.extend(news.take(MOST.saturating_sub(before)).cloned());
        if known.len() > before
            && let Some(file) = &self.file
        {
            // Another process may have added some; what is lost of them is found again.
            let _ = save(file, known);
        }
    }

    fn known(&self) -> MutexGuard<'_, Option<BTreeSet<PathBuf>>> {
        let mut known = lock(&self.known);
        known.get_or_insert_with(|| self.file.as_deref().map(load).unwrap_or_default());
        known
    }
}

fn load(file: &Path) -> BTreeSet<PathBuf> {
    let text = fs::read(file).unwrap_or_default();
    let lines = text
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty());
    let paths = lines.map(|line| PathBuf::from(OsStr::from_bytes(line)));
    paths.take(MOST).collect()
}

/// Whole or not at all, and readable for the user only.
fn save(file: &Path, known: &BTreeSet<PathBuf>) -> io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    let mut fresh = tempfile::NamedTempFile::new_in(folder)?;
    for path in known {
        fresh.write_all(path.as_os_str().as_bytes())?;
        fresh.write_all(b"\n")?;
    }
    fresh.persist(file)?;
    Ok(())
}
