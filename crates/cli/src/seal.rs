//! A key of the user's, and what is sealed with it: what a database says is obeyed only if this
//! user wrote it. The key is in the data folder, readable by the user alone; the sandbox keeps it
//! from commands.

use std::{
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::{Path, PathBuf},
};

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use uuid::Uuid;

use crate::{config::data_folder, own_file};

/// As long as a block of the hash: no part of it is filled in.
const LENGTH: usize = 64;

/// A key, which is never shown.
#[derive(Clone)]
pub(crate) struct SealKey([u8; LENGTH]);

/// Where the user's key is, if the user has a data folder.
pub(crate) fn key_file() -> Option<PathBuf> {
    data_folder().map(|folder| folder.join("seal.key"))
}

impl SealKey {
    /// The user's key, made if there is none.
    pub(crate) fn of_user(file: &Path) -> io::Result<Self> {
        match Self::read(file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Self::make(file)?;
                Self::read(file)
            }
            read => read,
        }
    }

    /// A key that no other process has.
    pub(crate) fn of_this_process() -> io::Result<Self> {
        let mut key = [0; LENGTH];
        getrandom::fill(&mut key).map_err(io::Error::other)?;
        Ok(Self(key))
    }

    fn read(file: &Path) -> io::Result<Self> {
        let mut opened = own_file::open(file, OpenOptions::new().read(true))?;
        if opened.metadata()?.mode() & 0o077 != 0 {
            return Err(io::Error::other(
                "other users can read it; `chmod 600` it if it was so for a moment only, else remove \
                 it, and adopt your databases anew",
            ));
        }
        let mut key = [0; LENGTH];
        let broken = |_| io::Error::other("it is no key; remove it, and a new one is made");
        opened.read_exact(&mut key).map_err(broken)?;
        Ok(Self(key))
    }

    /// Makes the file whole or not at all; of several processes, one makes it.
    fn make(file: &Path) -> io::Result<()> {
        let folder = file.parent().unwrap_or(Path::new(""));
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
        let draft = folder.join(format!("seal.key.{}", Uuid::new_v4().simple()));
        let write = |file: &Path| -> io::Result<()> {
            let mut options = OpenOptions::new();
            options.write(true).create_new(true);
            let mut written = own_file::open(file, &mut options)?;
            written.write_all(&Self::of_this_process()?.0)?;
            written.sync_all()
        };
        let made = || {
            write(&draft)?;
            let linked = fs::hard_link(&draft, file);
            // Some file systems have no links; then a reader that is too early fails.
            let made = linked.or_else(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => Err(error),
                _ => write(file),
            });
            made.or_else(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => Ok(()),
                _ => Err(error),
            })
        };
        let done = made();
        let _ = fs::remove_file(&draft);
        done
    }

    /// Proves that the holder of this key has sealed these words, in this order.
    pub(crate) fn seal(&self, words: &[&[u8]]) -> String {
        let seal = self.mac(words).finalize().into_bytes();
        seal.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Whether a seal is of this key and for these words.
    pub(crate) fn is_sealed(&self, words: &[&[u8]], seal: &str) -> bool {
        let digits = seal.as_bytes().chunks(2).map(|pair| {
            let pair = str::from_utf8(pair).ok().filter(|pair| pair.len() == 2)?;
            u8::from_str_radix(pair, 16).ok()
        });
        let Some(seal) = digits.collect::<Option<Vec<u8>>>() else {
            return false;
        };
        self.mac(words).verify_slice(&seal).is_ok()
    }

    /// Each word with its length, so that no two lists are the same bytes.
    fn mac(&self, words: &[&[u8]]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new((&self.0).into());
        for word in words {
            mac.update(&(word.len() as u64).to_le_bytes());
            mac.update(word);
        }
        mac
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::SealKey;

    #[test]
    fn a_seal_is_for_its_words_and_its_key() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("new/seal.key");
        let key = SealKey::of_user(&file).unwrap();
        let seal = key.seal(&[b"ab", b"c"]);
        let again = SealKey::of_user(&file).unwrap();
        assert!(again.is_sealed(&[b"ab", b"c"], &seal));
        assert!(!again.is_sealed(&[b"a", b"bc"], &seal));
        assert!(!again.is_sealed(&[b"abc"], &seal));
        assert!(!again.is_sealed(&[b"ab", b"c"], &seal[2..]));
        assert!(!again.is_sealed(&[b"ab", b"c"], ""));
        assert!(!again.is_sealed(&[b"ab", b"c"], "é"));
        let other = SealKey::of_this_process().unwrap();
        assert!(!other.is_sealed(&[b"ab", b"c"], &seal));
    }

    #[test]
    fn a_key_that_others_can_read_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("seal.key");
        SealKey::of_user(&file).unwrap();
        assert_eq!(
            fs::metadata(&file).unwrap().permissions().mode() & 0o777,
            0o600
        );
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(SealKey::of_user(&file).is_err());
    }
}
