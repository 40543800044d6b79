//! Files of our own beside the database and in the data folder. Another user who can put a link or a
//! pipe there must not make us write elsewhere, or wait.

use std::{
    fs::{self, File, Metadata, OpenOptions},
    io,
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use rustix::fs::{Access, OFlags, access};

/// Opens a file that is the user's, for the user alone if it is made now. Nothing in it has
/// changed when this fails.
pub(crate) fn open(file: &Path, options: &mut OpenOptions) -> io::Result<File> {
    // Opening a pipe would wait for a process at its other end.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    let opened = options.mode(0o600).custom_flags(flags).open(file)?;
    let found = opened.metadata()?;
    if found.is_file() && is_ours(&found) {
        Ok(opened)
    } else {
        Err(io::Error::other(
            "it is not a plain file of yours; it was left alone",
        ))
    }
}

/// Whether a file, and the folder it is in, can be written by this process.
pub(crate) fn can_write(file: &Path) -> bool {
    let may = |path: &Path| access(path, Access::WRITE_OK).is_ok();
    may(file) && file.parent().is_none_or(may)
}

/// Whether a file or folder belongs to the user.
pub(crate) fn is_ours(found: &Metadata) -> bool {
    found.uid() == rustix::process::geteuid().as_raw()
}

/// A file as it was found at a path.
pub(crate) struct Found {
    path: PathBuf,
    which: (u64, u64),
}

impl Found {
    pub(crate) fn at(path: &Path) -> io::Result<Self> {
        Ok(Self {
            which: which(&fs::metadata(path)?),
            path: path.to_owned(),
        })
    }

    /// Whether the file was deleted or replaced, which a process that has it open does not notice.
    pub(crate) fn is_gone(&self) -> bool {
        match fs::metadata(&self.path) {
            Ok(found) => which(&found) != self.which,
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        }
    }
}

fn which(found: &Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{self, OpenOptions},
        os::unix::fs::symlink,
    };

    use super::open;

    #[test]
    fn a_link_is_not_followed_and_what_it_leads_to_stays() {
        let folder = tempfile::tempdir().unwrap();
        let (precious, name) = (folder.path().join("precious"), folder.path().join("lock"));
        fs::write(&precious, "kept").unwrap();
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).write(true);
        symlink(&precious, &name).unwrap();
        assert!(open(&name, &mut options).is_err());
        assert_eq!(fs::read_to_string(&precious).unwrap(), "kept");
        fs::remove_file(&name).unwrap();
        assert!(open(&name, &mut options).is_ok());
    }
}
