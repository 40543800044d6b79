//! Puts the program together: which store, which hosts, which clock.

use std::{
    fs,
    sync::{Arc, OnceLock},
    time::Duration,
};

use anyhow::anyhow;
use asyncagents_core::port::{Clock, Store};
use asyncagents_runtime::{Manager, SystemClock};
use asyncagents_store::{FormatWatch, Options as StoreOptions, Sqlite, newest_format};

use crate::{
    config::Config,
    exit::Failure,
    folders::beside,
    hosts::{ExtraHostKind, HostContext, HostOptions, KnownHosts},
    live_processes::end_older,
    own_file::can_write,
    print,
    trust::{self, Database, Launches, Older, Ownership, Sealed},
};

/// How often a bridge polls for writes of other processes where the kernel does not tell. Nearly everything about its
/// tasks comes through itself, and it is there for as long as OpenCode is.
const POLL_INTERVAL_OF_BRIDGES: Duration = Duration::from_millis(500);

/// Everything that a command works with.
pub(crate) struct App {
    pub(crate) manager: Manager,
    pub(crate) hosts: Arc<KnownHosts>,
    /// Workers and bridges of an older version were ended, because the database has got a new
    /// format.
    pub(crate) ended_older: bool,
}

/// What is different for one command or another.
#[derive(Default)]
pub(crate) struct AppOptions {
    pub(crate) hosts: HostOptions,
    /// Tasks are only read, so the database may be another user's.
    pub(crate) read_only: bool,
    /// A database of another user is not remarked on.
    pub(crate) quiet: bool,
    /// What becomes of a database from before there were seals.
    pub(crate) older: Older,
    /// Whose key the database is sealed with.
    pub(crate) sealed: Sealed,
    /// Kinds of host that this program brings.
    pub(crate) extra: &'static [ExtraHostKind],
}

/// Opens the configured database. Must be called inside a tokio runtime.
pub(crate) fn open(config: &Config, options: AppOptions) -> Result<App, Failure> {
    let ended_older = is_to_be_migrated(config) && end_older(&config.db) > 0;
    let (store, launches) = open_store(config, &options)?;
    let store: Arc<dyn Store> = Arc::new(store);
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let settings = config.runtime();
    let context = HostContext {
        config: config.clone(),
        store: store.clone(),
        clock: clock.clone(),
        launches,
        options: options.hosts,
        manager: OnceLock::new(),
    };
    let hosts = Arc::new(KnownHosts::new(context, options.extra));
    let manager = Manager::new(store, hosts.clone(), clock, settings);
    hosts.set_manager(&manager);
    Ok(App {
        manager,
        hosts,
        ended_older,
    })
}

/// Whether the database gets a new format when it is opened. Workers and bridges of the version that
/// made it have to end first: they could not read what is written then.
fn is_to_be_migrated(config: &Config) -> bool {
    let format = || FormatWatch::open(&config.db)?.format();
    // One that is not to be opened is not opened for this either.
    config.db.is_file()
        && can_write(&config.db)
        && trust::check_file(&config.db).is_ok()
        && format().is_ok_and(|format| (1..newest_format()).contains(&format))
}

/// The database, and what this user has launched there if it is this user's.
fn open_store(
    config: &Config,
    options: &AppOptions,
) -> Result<(Sqlite, Option<Launches>), Failure> {
    let is_empty = fs::metadata(&config.db).is_ok_and(|file| file.len() == 0);
    if is_empty && beside(&config.db, ".worker.lock").exists() {
        return Err(Failure::Machine(anyhow!(
            "{} is empty, though it has been in use; it was left as it is. Bring back a copy, or \
             choose another file with --db",
            config.db.display()
        )));
    }
    let opened = if options.read_only && !can_write(&config.db) {
        trust::open_read_only(&config.db)
    } else {
        let mut store = StoreOptions::default();
        if options.hosts.bridges.is_some() {
            store.poll_interval = POLL_INTERVAL_OF_BRIDGES;
        }
        trust::open(&config.db, store, options.older, options.sealed)
    };
    let Database { store, ownership } = opened?;
    match ownership {
        Ownership::Ours(launches) => Ok((store, Some(launches))),
        Ownership::Foreign(why) => {
            let foreign = format!("{} {why}", config.db.display());
            let hint = why.hint(&config.db);
            if !options.read_only {
                return Err(Failure::Input(anyhow!(
                    "{foreign}: nothing in it is run or changed. {hint}"
                )));
            }
            if !options.quiet {
                print::remark(&format!(
                    "asyncagents: {foreign}: it is only looked at. {hint}\n"
                ));
            }
            Ok((store, None))
        }
    }
}
