//! Which databases are worked for. What is in a database decides what runs, where, and on whose
//! account, so one is worked for only if this user made it, in this place: not one that came
//! with a project, not a copy, not one that others can write.

use std::{
    fmt,
    fs::{self, File},
    io::{self, Read},
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant, UNIX_EPOCH},
};

use anyhow::anyhow;
use asyncagents_core::{
    host_ref::{HostRef, HostSetup, LaunchSettings},
    port::StoreError,
};
use asyncagents_store::{Identity, Introduction, Options, Origin, Sqlite};
use uuid::Uuid;

use crate::{
    config::no_home,
    exit::{Failure, adopting},
    folders::beside,
    own_file::is_ours,
    seal::{SealKey, key_file},
};

pub(crate) struct Database {
    pub(crate) store: Sqlite,
    pub(crate) ownership: Ownership,
}

/// Whose a database is, and so whether it is worked for.
#[derive(Clone)]
pub(crate) enum Ownership {
    /// This user made it, here.
    Ours(Launches),
    /// It can only be read.
    Foreign(Foreign),
}

/// Why a database is not worked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Foreign {
    /// It has no seal of this user's.
    Unsealed,
    /// It is a copy of one that this user made.
    Copy { of: PathBuf },
    /// It cannot be written.
    ReadOnly,
}

impl Foreign {
    /// What to do to work with it.
    pub(crate) fn hint(&self, database: &Path) -> String {
        let adopt = adopting(database);
        match self {
            Foreign::Unsealed => adopt,
            Foreign::ReadOnly => "Make it writable to work with it".to_owned(),
            Foreign::Copy { .. } => format!(
                "`asyncagents db adopt --db {}` makes it yours",
                database.display()
            ),
        }
    }
}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Foreign::Unsealed => {
                let key = key_file().unwrap_or_default();
                write!(f, "has no seal of your key ({})", key.display())
            }
            Foreign::Copy { of } => {
                write!(f, "is a copy of {}, or was put back there", of.display())
            }
            Foreign::ReadOnly => f.write_str("cannot be written"),
        }
    }
}

/// Seals hosts as they are set up at launches, and knows them again.
#[derive(Clone)]
pub(crate) struct Launches {
    key: SealKey,
    database: String,
}

impl Launches {
    /// With a key that nobody keeps.
    #[cfg(test)]
    pub(crate) fn of_this_process() -> io::Result<Self> {
        Ok(Self {
            key: SealKey::of_this_process()?,
            database: "test".to_owned(),
        })
    }

    /// A host with the settings of a launch, and the proof that this user has launched it so.
    pub(crate) fn seal(&self, host: HostRef, settings: String) -> HostSetup {
        let mut setup = HostSetup {
            host,
            settings: LaunchSettings {
                json: settings.into(),
                seal: Box::default(),
            },
        };
        let seal = self.sealing(&setup, |words| self.key.seal(words));
        setup.settings.seal = seal.into();
        setup
    }

    /// Refuses a host that this user has not launched so.
    pub(crate) fn check(&self, setup: &HostSetup) -> anyhow::Result<()> {
        let seal = &setup.settings.seal;
        if !self.sealing(setup, |words| self.key.is_sealed(words, seal)) {
            anyhow::bail!(
                "where and how it runs is not sealed with your key: an older version launched it, \
                 or somebody else did, or its database was another. Launch it anew"
            );
        }
        Ok(())
    }

    /// A name for a text that tells nothing about it without the key.
    pub(crate) fn name_of(&self, text: &str) -> String {
        self.key.seal(&[b"setting", text.as_bytes()])
    }

    /// What is sealed has stayed the same since hosts have seals: the name of the host, and its
    /// details and settings. Each is one object of JSON or nothing, and the kind of host says
    /// whether it has details, so one text is never another pair of them.
    fn sealing<T>(&self, setup: &HostSetup, seal: impl FnOnce(&[&[u8]]) -> T) -> T {
        let HostSetup { host, settings } = setup;
        let rest = host.details() + &settings.json;
        seal(&[
            b"launch",
            self.database.as_bytes(),
            host.name().as_bytes(),
            rest.as_bytes(),
        ])
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

/// What becomes of a database from before there were seals.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Older {
    /// It is left alone.
    #[default]
    Refused,
    /// It becomes the user's: it is where the user's own file says, or in the usual place, where
    /// only the user puts one.
    Believed,
    /// It is opened without becoming the user's.
    Opened,
}

/// Opens a database and judges it.
pub(crate) fn open(
    path: &Path,
    options: Options,
    older: Older,
    sealed: Sealed,
) -> Result<Database, Failure> {
    check_file(path).map_err(Failure::Input)?;
    let key = key(sealed)?;
    let introduce = |origin| match (origin, older) {
        (Origin::New, _) | (Origin::Older, Older::Believed) => match which_file(path) {
            Ok(file) => Introduction::As(sign(&key, path, file)),
            Err(_) => Introduction::Keep,
        },
        (Origin::Older, Older::Refused) => Introduction::Refuse,
        (Origin::Older | Origin::Known(_), Older::Opened) => Introduction::Keep,
        // What is only read is not changed.
        (Origin::Known(identity), Older::Refused | Older::Believed) => {
            match compare(identity.as_ref(), &key, path) {
                Match::Here | Match::Moved => Introduction::Keep,
                Match::Foreign(_) => Introduction::Refuse,
            }
        }
    };
    let store = Sqlite::open_as(path, options, &introduce).map_err(Failure::store)?;
    let ownership = judge(&store, &key).map_err(Failure::store)?;
    Ok(Database { store, ownership })
}

/// Why a database in the newest format is not this user's, if it is not. Nothing in it is changed.
pub(crate) fn look(path: &Path) -> Result<Option<Foreign>, Failure> {
    check_file(path).map_err(Failure::Input)?;
    let store = Sqlite::open_to_read(path).map_err(Failure::store)?;
    let identity = store.identity().map_err(Failure::store)?;
    let key = key(Sealed::ByUser)?;
    Ok(match compare(identity.as_ref(), &key, path) {
        Match::Foreign(why) => Some(why),
        Match::Here | Match::Moved if identity.is_none() => Some(Foreign::Unsealed),
        Match::Here | Match::Moved => None,
    })
}

/// Opens a database that cannot be written, to read it.
pub(crate) fn open_read_only(path: &Path) -> Result<Database, Failure> {
    check_file(path).map_err(Failure::Input)?;
    let store = Sqlite::open_to_read(path).map_err(Failure::store)?;
    let ownership = Ownership::Foreign(Foreign::ReadOnly);
    Ok(Database { store, ownership })
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
            "{}, so there is no place for the key that tells your tasks from those of others; set \
             HOME or XDG_DATA_HOME",
            no_home()
        ))),
    }
}

fn judge(store: &Sqlite, key: &SealKey) -> Result<Ownership, StoreError> {
    let identity = store.identity()?;
    let here = store.path();
    let found = compare(identity.as_ref(), key, here);
    let identity = match (found, identity) {
        (Match::Foreign(why), _) => return Ok(Ownership::Foreign(why)),
        (_, None) => return Ok(Ownership::Foreign(Foreign::Unsealed)),
        (Match::Here, Some(identity)) => identity,
        (Match::Moved, Some(identity)) => {
            let moved = Identity {
                seal: key.seal(&words(&identity.id, here, &identity.file)),
                path: here.to_owned(),
                ..identity
            };
            store.set_identity(&moved)?;
            moved
        }
    };
    Ok(Ownership::Ours(Launches {
        key: key.clone(),
        database: identity.id,
    }))
}

/// Whether a database is the one that this user made.
enum Match {
    /// It is, where it was made.
    Here,
    /// It is, under another name.
    Moved,
    Foreign(Foreign),
}

fn compare(identity: Option<&Identity>, key: &SealKey, here: &Path) -> Match {
    let Some(identity) = identity else {
        return Match::Foreign(Foreign::Unsealed);
    };
    let Identity {
        id,
        path,
        file,
        seal,
    } = identity;
    if !key.is_sealed(&words(id, path, file), seal) {
        return Match::Foreign(Foreign::Unsealed);
    }
    let same = which_file(here).is_ok_and(|now| is_same_file(&now, file));
    match (path == here, same) {
        (true, true) => Match::Here,
        // The same file under another name, and only under that one: it was moved.
        (false, true) if has_one_name(here) && !is_there_too(path, file, here) => Match::Moved,
        _ => Match::Foreign(Foreign::Copy { of: path.clone() }),
    }
}

fn has_one_name(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|found| found.nlink() == 1)
}

/// Whether the place that a file came from still has it, on another disk: then this disk is a
/// snapshot of that one, or the other way round. On the same disk it is one file, reached in two ways.
fn is_there_too(before: &Path, file: &str, here: &Path) -> bool {
    let disk = |path: &Path| fs::metadata(path).map(|found| found.dev()).ok();
    which_file(before).is_ok_and(|found| is_same_file(&found, file)) && disk(before) != disk(here)
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

/// Whether two such names are of one file. Not every system tells when a file was made.
fn is_same_file(one: &str, other: &str) -> bool {
    let parts = |name: &str| {
        name.split_once('/')
            .map(|(a, b)| (a.to_owned(), b.to_owned()))
    };
    let (Some((one, born)), Some((other, other_born))) = (parts(one), parts(other)) else {
        return false;
    };
    one == other && (born == other_born || born == "0" || other_born == "0")
}

/// Refuses a file that another user has made, can change or could replace.
pub(crate) fn check_file(path: &Path) -> anyhow::Result<()> {
    if path.is_dir() {
        // Opening it says so.
        return Ok(());
    }
    for end in ["", "-wal", "-shm"] {
        let file = beside(path, end);
        let Ok(found) = fs::symlink_metadata(&file) else {
            continue;
        };
        let name = file.display();
        if !found.is_file() && !found.is_symlink() {
            anyhow::bail!(
                "{name} is not a plain file; it was left alone. Choose another with --db"
            );
        }
        if !is_ours(&found) {
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
    let journal = beside(path, "-journal");
    if is_foreign_journal(path, &journal) {
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

/// A new database has a journal for a moment, until it is told to write ahead.
fn is_foreign_journal(db: &Path, journal: &Path) -> bool {
    let begun = Instant::now();
    while fs::symlink_metadata(journal).is_ok() {
        if !writes_ahead(db) {
            return false;
        }
        if begun.elapsed() > CREATION_TIMEOUT {
            return true;
        }
        thread::sleep(Duration::from_millis(10));
    }
    false
}

/// How long another process may take to make a database.
const CREATION_TIMEOUT: Duration = Duration::from_secs(1);

/// Whether a database writes ahead, as all of ours do: its head says so.
fn writes_ahead(db: &Path) -> bool {
    let mut head = [0; 20];
    let read = File::open(db).and_then(|mut file| file.read_exact(&mut head));
    read.is_ok() && head.ends_with(&[2, 2])
}

/// Whether others than the user can put files into a folder: all, another group, or its owner.
fn is_open_to_others(folder: &fs::Metadata) -> bool {
    let user = rustix::process::geteuid().as_raw();
    let group = rustix::process::getegid().as_raw();
    let theirs = ![user, 0].contains(&folder.uid());
    let groups = folder.mode() & 0o020 != 0 && folder.gid() != group;
    theirs || groups || folder.mode() & 0o002 != 0
}
