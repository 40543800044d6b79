//! The worker process: one for each database, started when there is work and none is alive. A second one
//! is started beside it by a process that has keys which the first lacks: tasks for which it has no key
//! stay queued until then.
//!
//! A worker holds a lock on a file beside the database for as long as it lives, and writes its name
//! into it. Leases say which worker has which task; the lock says whether to start a worker. A worker
//! that is suspended or hangs keeps its lock and loses its lease: then the next one replaces the
//! lock's file, and the first, should it go on, finds that and ends.

use std::{
    collections::BTreeSet,
    env,
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Seek, Write},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::{self, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::anyhow;
use asyncagents_core::id::OwnerId;
use asyncagents_models::Models;
use asyncagents_runtime::Manager;

use crate::{
    config::{Config, is_of_agent},
    folders::beside,
    live_processes::has_open,
    own_file, print,
};

/// The locks, beside the database, in the order in which they are tried.
const LOCKS: [&str; 2] = [".worker.lock", ".worker2.lock"];

/// The lock that a worker holds.
pub(crate) struct WorkerLock {
    path: PathBuf,
    file: File,
    keys: Keys,
    signed: Option<OwnerId>,
}

/// The variables with keys that a process has, by their names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Keys(BTreeSet<String>);

impl Keys {
    /// Those of this process, of the variables that its settings name and of others.
    pub(crate) fn here(config: &Config, others: &[String]) -> Self {
        let models = config.agent_config.models().ok();
        let models = models.and_then(|settings| Models::new(settings).ok());
        let named = models.map(|models| models.secret_variables());
        let known = named.unwrap_or_default().into_iter();
        let is_set = |name: &String| env::var_os(name).is_some_and(|value| !value.is_empty());
        let all = known.chain(others.iter().cloned());
        Self(all.filter(is_set).collect())
    }

    fn text(&self) -> String {
        let names: Vec<&str> = self.0.iter().map(String::as_str).collect();
        names.join(",")
    }

    fn parse(text: &str) -> Self {
        let names = text.split(',').filter(|name| !name.is_empty());
        Self(names.map(str::to_owned).collect())
    }

    fn has_all(&self, others: &Self) -> bool {
        self.0.is_superset(&others.0)
    }
}

/// Who has the lock.
#[derive(Debug, PartialEq, Eq)]
enum Holder {
    /// A process that has not written its name yet.
    Starting,
    /// A worker, by the name of its lease. Those of earlier versions do not say which keys they have.
    Worker { owner: OwnerId, keys: Option<Keys> },
    /// A worker of a version that wrote only its process there.
    Older { process: String },
    /// A process that did not write its name in time.
    Unknown,
}

/// How long a worker may take from taking the lock to writing its name.
const SIGN_TIMEOUT: Duration = Duration::from_secs(10);

impl WorkerLock {
    /// A lock, or nothing if another worker has it, is alive, and has all keys that are here.
    pub(crate) async fn take(
        db: &Path,
        manager: &Manager,
        keys: &Keys,
    ) -> anyhow::Result<Option<Self>> {
        for name in LOCKS {
            let path = beside(db, name);
            let taken = Self::try_take(&path, &path)?;
            let taken = match taken {
                Some(taken) => Some(taken),
                None => match standing(&path, manager, keys).await? {
                    Standing::Serves => return Ok(None),
                    Standing::LacksKeys => continue,
                    Standing::Gone => {
                        tracing::warn!("lease of the worker with the lock expired, taking over");
                        Self::displace(&path)?
                    }
                },
            };
            let keys = keys.clone();
            return Ok(taken.map(|taken| Self { keys, ..taken }));
        }
        Ok(None)
    }

    /// Replaces the lock of a worker without a lease. Of several processes that do so, the last one
    /// has it.
    fn displace(path: &Path) -> io::Result<Option<Self>> {
        let mut draft = path.as_os_str().to_owned();
        draft.push(format!(".{}", process::id()));
        let draft = PathBuf::from(draft);
        let Some(taken) = Self::try_take(&draft, path)? else {
            return Ok(None);
        };
        if let Err(error) = fs::rename(&draft, path) {
            let _ = fs::remove_file(&draft);
            return Err(error);
        }
        Ok(taken.is_in_place().then_some(taken))
    }

    fn try_take(file: &Path, path: &Path) -> io::Result<Option<Self>> {
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).read(true).write(true);
        let file = own_file::open(file, &mut options)?;
        match file.try_lock() {
            Ok(()) => {
                file.set_len(0)?;
                Ok(Some(Self {
                    path: path.to_owned(),
                    file,
                    keys: Keys::default(),
                    signed: None,
                }))
            }
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Writes the worker's name into the lock: for the process that started this one and waits for
    /// that, and for those that check its lease. A worker that lost its lease gets another name.
    pub(crate) fn sign(&mut self, owner: Option<OwnerId>) -> io::Result<()> {
        if owner == self.signed {
            return Ok(());
        }
        let Some(owner) = owner else { return Ok(()) };
        let text = format!("{} {owner} {}", process::id(), self.keys.text());
        self.file.set_len(0)?;
        self.file.rewind()?;
        self.file.write_all(text.as_bytes())?;
        self.signed = Some(owner);
        Ok(())
    }

    /// Whether the file is still the lock: another worker may have replaced it.
    pub(crate) fn is_in_place(&self) -> bool {
        let which = |found: fs::Metadata| (found.dev(), found.ino());
        let there = fs::metadata(&self.path).map(which).ok();
        // Without a file, no other worker has the lock.
        there.is_none() || there == self.file.metadata().map(which).ok()
    }

    /// Lets other processes see that no worker is alive.
    pub(crate) fn release(self) {
        // Closing the file does it too.
        let _ = self.file.unlock();
    }
}

/// What is to be expected of the holder of a lock.
enum Standing {
    /// It is alive, and has the keys that are here.
    Serves,
    /// It is alive, and lacks some of them.
    LacksKeys,
    Gone,
}

/// One that is starting counts as alive for a while.
async fn standing(lock: &Path, manager: &Manager, keys: &Keys) -> anyhow::Result<Standing> {
    Ok(match holder(lock)? {
        Holder::Starting => Standing::Serves,
        // It lives as long as it has the lock, and cannot read what this version launches.
        Holder::Older { process } => anyhow::bail!(
            "a worker of an older version, process {process}, has this database; end it with `kill \
             {process}`, and its tasks go on with a new one"
        ),
        Holder::Worker { owner, .. } if !manager.has_lease(&owner).await? => Standing::Gone,
        Holder::Worker { keys: theirs, .. } => {
            let has_all = theirs.is_none_or(|theirs| theirs.has_all(keys));
            if has_all {
                Standing::Serves
            } else {
                Standing::LacksKeys
            }
        }
        Holder::Unknown => Standing::Gone,
    })
}

fn holder(lock: &Path) -> io::Result<Holder> {
    let text = fs::read_to_string(lock)?;
    if let Some((_, signed)) = text.split_once(' ') {
        let (owner, keys) = match signed.split_once(' ') {
            Some((owner, keys)) => (owner, Some(Keys::parse(keys))),
            None => (signed, None),
        };
        let owner = owner.into();
        return Ok(Holder::Worker { owner, keys });
    }
    if !text.is_empty() {
        return Ok(Holder::Older { process: text });
    }
    let age = fs::metadata(lock)?.modified()?.elapsed();
    Ok(if age.is_ok_and(|age| age > SIGN_TIMEOUT) {
        Holder::Unknown
    } else {
        Holder::Starting
    })
}

/// A suspended process of ours that has this database open: a worker, or a run after Ctrl-Z.
pub(crate) fn stopped_process(db: &Path) -> Option<u32> {
    let ours = fs::read_link("/proc/self/exe").ok()?;
    let processes = fs::read_dir("/proc").ok()?.flatten();
    processes
        .filter(|process| fs::read_link(process.path().join("exe")).is_ok_and(|exe| exe == ours))
        .filter(|process| is_stopped(&process.path()) && has_open(&process.path(), db))
        .find_map(|process| process.file_name().to_str()?.parse().ok())
}

fn is_stopped(process: &Path) -> bool {
    let stat = fs::read_to_string(process.join("stat")).unwrap_or_default();
    // The name is in parentheses and may contain anything; the state follows.
    let rest = stat.rsplit_once(')').map(|(_, rest)| rest.trim_start());
    rest.is_some_and(|rest| rest.starts_with(['T', 't']))
}

/// Starts a worker if there is work and no worker is alive. What was asked for has been saved
/// already, so a failure here is a remark, not an error.
pub(crate) async fn ensure(config: &Config, flags: &[(String, String)], manager: &Manager) {
    if !config.autostart || !matches!(manager.unfinished().await, Ok(1..)) {
        return;
    }
    if let Err(error) = start_if_missing(config, flags, manager).await {
        print::remark(&format!(
            "asyncagents: no worker could be started: {error:#}; `asyncagents worker` runs one\n"
        ));
    }
}

/// Starts a worker if none is alive, for a process that has launched tasks and looks after none.
pub(crate) async fn attend(config: &Config, flags: &[(String, String)], manager: &Manager) {
    if !config.autostart {
        return;
    }
    let started = match has_worker(config, manager).await {
        Ok(true) => return,
        Ok(false) => {
            // It is waited for, and others are answered meanwhile.
            let (config, flags) = (config.clone(), flags.to_vec());
            let started = tokio::task::spawn_blocking(move || start(&config, &flags)).await;
            started.map_err(Into::into).flatten()
        }
        Err(error) => Err(error),
    };
    if let Err(error) = started {
        tracing::warn!(error = format!("{error:#}"), "no worker could be started");
    }
}

/// Starts a worker whenever there is work and none is alive, for a process that waits: the worker may
/// be killed, or those that lack a key may end.
pub(crate) async fn keep(config: &Config, flags: &[(String, String)], manager: &Manager) {
    loop {
        // Sooner nobody knows that a worker is dead.
        tokio::time::sleep(config.lease).await;
        if !config.autostart || !matches!(manager.has_work().await, Ok(true)) {
            continue;
        }
        if let Err(error) = start_if_missing(config, flags, manager).await {
            tracing::warn!(error = format!("{error:#}"), "no worker could be started");
        }
    }
}

async fn start_if_missing(
    config: &Config,
    flags: &[(String, String)],
    manager: &Manager,
) -> anyhow::Result<()> {
    if has_worker(config, manager).await? {
        return Ok(());
    }
    start(config, flags)
}

/// Starts a worker in place of one that was ended; it ends by itself if there is no work.
pub(crate) fn replace(config: &Config, flags: &[(String, String)]) {
    if !config.autostart {
        return;
    }
    if let Err(error) = start(config, flags) {
        tracing::warn!(error = format!("{error:#}"), "no worker could be started");
    }
}

async fn has_worker(config: &Config, manager: &Manager) -> anyhow::Result<bool> {
    let keys = Keys::here(config, &[]);
    for name in LOCKS {
        let path = beside(&config.db, name);
        if let Some(free) = WorkerLock::try_take(&path, &path)? {
            free.release();
            return Ok(false);
        }
        match standing(&path, manager, &keys).await? {
            Standing::Serves => return Ok(true),
            Standing::LacksKeys => {}
            Standing::Gone => return Ok(false),
        }
    }
    // What no worker has a key for waits until one of them has ended.
    Ok(true)
}

const START_TIMEOUT: Duration = Duration::from_secs(3);

fn start(config: &Config, flags: &[(String, String)]) -> anyhow::Result<()> {
    let mut command = Command::new(env::current_exe()?);
    let log = config.log_file.clone();
    let log = log.unwrap_or_else(|| beside(&config.db, ".worker.log"));
    let log = std::path::absolute(log)?;
    // Settings of agents go with their tasks. Here all users of the machine could read them.
    for (key, value) in flags.iter().filter(|(key, _)| !is_of_agent(key)) {
        command.arg("-c").arg(format!("{key}={value}"));
    }
    command.arg("-c").arg(format!("db={}", config.db.display()));
    command.arg("-c").arg(format!("log.file={}", log.display()));
    command.arg("worker");
    // Its settings are not those of this process.
    let keys = Keys::here(config, &[]).text();
    if !keys.is_empty() {
        command.args(["--keys", &keys]);
    }
    command
        // A worker serves all folders; in one of them it would read that project's settings.
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let (memory, shared) = asyncagents_tools::WORKERS_MEMORY;
    if env::var_os(memory).is_none() {
        command.env(memory, shared);
    }
    // Ctrl-C in this terminal is not meant for the worker.
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut worker = command.spawn()?;
    let begun = Instant::now();
    let locks = LOCKS.map(|name| beside(&config.db, name));
    let signature = format!("{} ", worker.id());
    let is_signed =
        |lock: &PathBuf| fs::read_to_string(lock).is_ok_and(|text| text.starts_with(&signature));
    while !locks.iter().any(is_signed) {
        if let Some(status) = worker.try_wait()? {
            // Another command may have been faster.
            return match WorkerLock::try_take(&locks[0], &locks[0])? {
                None => Ok(()),
                Some(_) => Err(anyhow!(
                    "it ended at once ({status}); see {}",
                    log.display()
                )),
            };
        }
        if begun.elapsed() > START_TIMEOUT {
            return Err(anyhow!(
                "it did not start within {} s; see {}",
                START_TIMEOUT.as_secs(),
                log.display()
            ));
        }
        thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}
