//! The worker process: one for each database, started when there is work and none is alive.
//!
//! A worker holds a lock on a file beside the database for as long as it lives, and writes its name
//! into it. Leases say which worker has which task; the lock says whether to start a worker. A worker
//! that is suspended or hangs keeps its lock and loses its lease: then the next one replaces the
//! lock's file, and the first, should it go on, finds that and ends.

use std::{
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
use asyncagents_runtime::Manager;

use crate::{
    config::{Config, is_of_agent},
    folders::beside,
    live_processes::has_open,
    own_file, print,
};

/// The lock that a worker holds.
pub(crate) struct WorkerLock {
    path: PathBuf,
    file: File,
    signed: Option<OwnerId>,
}

/// Who has the lock.
#[derive(Debug, PartialEq, Eq)]
enum Holder {
    /// A process that has not written its name yet.
    Starting,
    /// A worker, by the name of its lease.
    Worker(OwnerId),
    /// A worker of a version that wrote only its process there.
    Older { process: String },
    /// A process that did not write its name in time.
    Unknown,
}

/// How long a worker may take from taking the lock to writing its name.
const SIGN_TIMEOUT: Duration = Duration::from_secs(10);

impl WorkerLock {
    /// The lock, or nothing if another worker has it and is alive.
    pub(crate) async fn take(db: &Path, manager: &Manager) -> anyhow::Result<Option<Self>> {
        let path = beside(db, ".worker.lock");
        if let Some(taken) = Self::try_take(&path, &path)? {
            return Ok(Some(taken));
        }
        if is_alive(&path, manager).await? {
            return Ok(None);
        }
        tracing::warn!("lease of the worker with the lock expired, taking over");
        Ok(Self::displace(&path)?)
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
        let text = format!("{} {owner}", process::id());
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

/// Whether the holder of a lock is alive. One that is starting counts as alive for a while.
async fn is_alive(lock: &Path, manager: &Manager) -> anyhow::Result<bool> {
    Ok(match holder(lock)? {
        Holder::Starting => true,
        // It lives as long as it has the lock, and cannot read what this version launches.
        Holder::Older { process } => anyhow::bail!(
            "a worker of an older version, process {process}, has this database; end it with `kill \
             {process}`, and its tasks go on with a new one"
        ),
        Holder::Worker(owner) => manager.has_lease(&owner).await?,
        Holder::Unknown => false,
    })
}

fn holder(lock: &Path) -> io::Result<Holder> {
    let text = fs::read_to_string(lock)?;
    if let Some((_, owner)) = text.split_once(' ') {
        return Ok(Holder::Worker(owner.into()));
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
    let started = match has_worker(&config.db, manager).await {
        Ok(true) => return,
        Ok(false) => start(config, flags),
        Err(error) => Err(error),
    };
    if let Err(error) = started {
        print::remark(&format!(
            "asyncagents: no worker could be started: {error:#}; `asyncagents worker` runs one\n"
        ));
    }
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

async fn has_worker(db: &Path, manager: &Manager) -> anyhow::Result<bool> {
    let path = beside(db, ".worker.lock");
    match WorkerLock::try_take(&path, &path)? {
        Some(free) => {
            free.release();
            Ok(false)
        }
        None => is_alive(&path, manager).await,
    }
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
    let lock = beside(&config.db, ".worker.lock");
    let signature = format!("{} ", worker.id());
    while !fs::read_to_string(&lock).is_ok_and(|text| text.starts_with(&signature)) {
        if let Some(status) = worker.try_wait()? {
            // Another command may have been faster.
            return match WorkerLock::try_take(&lock, &lock)? {
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
