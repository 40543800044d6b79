//! A file that may grow while it is read.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::Path,
};

use rustix::fs::OFlags;

/// A file, as long as it was when it was opened: what is written later is not read.
pub(super) struct Opened {
    file: File,
    pub(super) length: u64,
}

impl Opened {
    /// Opens a file, and does not wait for what is none.
    pub(super) fn new(path: &Path) -> io::Result<Self> {
        let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(flags)
            .open(path)?;
        let about = file.metadata()?;
        if !about.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "is not a file"));
        }
        Ok(Self {
            file,
            length: about.len(),
        })
    }

    /// The bytes from one place to another, followed by those that are known already.
    pub(super) fn before(&self, from: u64, to: u64, known: &[u8]) -> io::Result<Vec<u8>> {
        let unknown = usize::try_from(to.saturating_sub(from)).map_err(io::Error::other)?;
        let mut bytes = Vec::with_capacity(unknown + known.len());
        bytes.resize(unknown, 0);
        self.file.read_exact_at(&mut bytes, from)?;
        bytes.extend_from_slice(known);
        Ok(bytes)
    }
}
