//! Which databases are worked for. What is in a database decides what runs, where, and on whose
//! account, so one is worked for only if this user made it, in this place: not one that came
//! with a project, not a copy, not one that others can write.

use std::{
    fmt, fs, io,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

use anyhow::anyhow;
use asyncagents_core::port::StoreError;
use asyncagents_store::{Identity, Options, Origin, Sqlite};
use uuid::Uuid;

use crate::{
    exit::Failure,
    seal::{SealKey, key_file},
};

/// A database, and whether it is worked for.
pub(crate) struct Database {
    pub(crate) store: Sqlite,
    pub(crate) standing: Standing,
}

/// Whether a database is worked for.
#[derive(Clone)]
pub(crate) enum Standing {
    /// This user made it, here.
    Ours(Launches),
    /// It can be looked at, and nothing more.
    Foreign(Foreign),
}

/// Why a database is not worked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Foreign {
    /// It has no seal of this user's.
    Unsealed,
    /// It is a copy of one that this user made.
    Copy { of: PathBuf },
}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Foreign::Unsealed => f.write_str("was not made by you, with the key that you have now"),
            Foreign::Copy { of } => write!(f, "is a copy of {}, or was put back", of.display()),
        }
    }
}

/// Seals what is said at launches, and knows it again.
#[derive(Clone)]
pub(crate) struct Launches {
    key: SealKey,
    database: String,
}

impl Launches {
    /// Proves that this user has launched something here in this way.
    pub(crate) fn seal(&self, folder: &str, said: &str) -> String {
        self.key.seal(&self.words(folder, said))
    }

    /// Whether this user has.
    pub(crate) fn is_sealed(&self, folder: &str, said: &str, seal: &str) -> bool {
        self.key.is_sealed(&self.words(folder, said), seal)
    }

    fn words<'a>(&'a self, folder: &'a str, said: &'a str) -> [&'a [u8]; 4] {
        [
            b"launch",
            self.database.as_bytes(),
            folder.as_bytes(),
            said.as_bytes(),
        ]
    }
}

/// Whose key a database is sealed with.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Sealed {
    /// The user's, which all processes of the user have.
    #[default]
    ByUser,
    /// That of this process: for a database that goes with it.
    ByProcess,
}

/// Opens a database and judges it. `own` says that the user's own file or the default names it.
pub(crate) fn open(path: &Path, own: bool, sealed: Sealed) -> Result<Database, Failure> {
    check_file(path).map_err(Failure::Input)?;
    let key = key(sealed)?;
    let introduce = |origin| {
        // One from before there were seals is believed where nobody but the user puts one.
        let believed = origin == Origin::New || own;
        let file = believed.then(|| which_file(path).ok())??;
        Some(sign(&key, path, file))
    };
    let store = Sqlite::open_as(path, Options::default(), &introduce).map_err(Failure::store)?;
    let standing = judge(&store, &key).map_err(Failure::store)?;
    Ok(Database { store, standing })
}

/// Makes a database this user's, here, as one that never was another.
pub(crate) fn adopt(store: &Sqlite) -> Result<(), Failure> {
    let key = key(Sealed::ByUser)?;
    let file = which_file(store.path()).map_err(|error| Failure::Machine(error.into()))?;
    let identity = sign(&key, store.path(), file);
    store.set_identity(&identity).map_err(Failure::store)
}

fn key(sealed: Sealed) -> Result<SealKey, Failure> {
    let machine = |error: io::Error| Failure::Machine(error.into());
    match (key_file(), sealed) {
        (_, Sealed::ByProcess) => SealKey::of_this_process().map_err(machine),
        (Some(file), Sealed::ByUser) => SealKey::of_user(&file)
            .map_err(|error| Failure::Input(anyhow!("{}: {error}", file.display()))),
        (None, Sealed::ByUser) => Err(Failure::Input(anyhow!(
            "HOME is not set, so there is no place for the key that tells your tasks from those \
             of others; set HOME or XDG_DATA_HOME"
        ))),
    }
}

fn judge(store: &Sqlite, key: &SealKey) -> Result<Standing, StoreError> {
    let Some(identity) = store.identity()? else {
        return Ok(Standing::Foreign(Foreign::Unsealed));
    };
    let Identity {
        id,
        path,
        file,
        seal,
    } = &identity;
    if !key.is_sealed(&words(id, path, file), seal) {
        return Ok(Standing::Foreign(Foreign::Unsealed));
    }
    let ours = Standing::Ours(Launches {
        key: key.clone(),
        database: id.clone(),
    });
    let here = store.path();
    match (path == here, which_file(here).ok().as_ref() == Some(file)) {
        (true, true) => Ok(ours),
        // The same file under another name, and only under that one: it was moved.
        (false, true) if fs::metadata(here).is_ok_and(|found| found.nlink() == 1) => {
            let moved = Identity {
                seal: key.seal(&words(id, here, file)),
                path: here.to_owned(),
                ..identity.clone()
            };
            store.set_identity(&moved)?;
            Ok(ours)
        }
        _ => Ok(Standing::Foreign(Foreign::Copy { of: path.clone() })),
    }
}

fn sign(key: &SealKey, path: &Path, file: String) -> Identity {
    let id = Uuid::new_v4().to_string();
    Identity {
        seal: key.seal(&words(&id, path, &file)),
        path: path.to_owned(),
        id,
        file,
    }
}

fn words<'a>(id: &'a str, path: &'a Path, file: &'a str) -> [&'a [u8]; 4] {
    [
        b"database",
        id.as_bytes(),
        path.as_os_str().as_bytes(),
        file.as_bytes(),
    ]
}

/// The number of a file and, where the system keeps it, when the file was made: numbers of files
/// that are gone are given to new ones.
fn which_file(path: &Path) -> io::Result<String> {
    let found = fs::metadata(path)?;
    let born = found.created().ok();
    let born = born.and_then(|born| born.duration_since(UNIX_EPOCH).ok());
    let born = born.map_or(0, |born| born.as_nanos());
    Ok(format!("{}/{born}", found.ino()))
}

/// Refuses a file that somebody else has made or can change, and one that could be exchanged.
fn check_file(path: &Path) -> anyhow::Result<()> {
    let user = rustix::process::geteuid().as_raw();
    for end in ["", "-wal", "-shm"] {
        let file = ending(path, end);
        let Ok(found) = fs::symlink_metadata(&file) else {
            continue;
        };
        let name = file.display();
        if found.uid() != user {
            anyhow::bail!(
                "{name} belongs to another user (number {}); it was left alone. Choose another file \
                 with --db",
                found.uid()
            );
        }
        if found.is_symlink() {
            anyhow::bail!("{name} is a link; it was left alone. Choose another file with --db");
        }
        if found.mode() & 0o022 != 0 {
            anyhow::bail!(
                "{name} can be written by other users; it was left alone. If you trust what is in \
                 it, `chmod 600` it, or choose another file with --db"
            );
        }
    }
    // We write ahead, so it is none of ours, and what is in it would be played into the file.
    let journal = ending(path, "-journal");
    if fs::symlink_metadata(&journal).is_ok() {
        anyhow::bail!(
            "{} is not from asyncagents, and would change the database; it was left alone. Remove \
             it, or choose another file with --db",
            journal.display()
        );
    }
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let found = folder.and_then(|folder| Some((folder, fs::metadata(folder).ok()?)));
    match found.filter(|(_, found)| is_open_to_others(found)) {
        None => Ok(()),
        Some((folder, _)) => Err(anyhow!(
            "other users can put files into {}, and so change the database; choose another place \
             with --db",
            folder.display()
        )),
    }
}

/// Whether others than the user can put files into a folder: all, another group, or its owner.
fn is_open_to_others(folder: &fs::Metadata) -> bool {
    let user = rustix::process::geteuid().as_raw();
    let group = rustix::process::getegid().as_raw();
    let theirs = ![user, 0].contains(&folder.uid());
    let groups = folder.mode() & 0o020 != 0 && folder.gid() != group;
    theirs || groups || folder.mode() & 0o002 != 0
}

/// A file beside the database, by the end of its name.
pub(crate) fn ending(db: &Path, ending: &str) -> PathBuf {
    let mut name = db.as_os_str().to_owned();
    name.push(ending);
    name.into()
}
