//! The worker process: one for each database, started when there is work and none is alive.
//!
//! A worker holds a lock on a file beside the database for as long as it lives, and writes into
//! it who it is. Leases say who looks after which task; the lock says whether to start a worker.
//! A worker that is stopped or hangs keeps its lock and loses its lease: then the next one puts a
//! file of its own in the place of the lock, and the other, should it wake up, finds that and
//! ends.

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
    /// Somebody who has only begun, or of whom no more is known.
    Beginning,
    /// A worker, by the name that its lease has.
    Worker(OwnerId),
    /// A worker of a version that wrote only its process there.
    Older { process: String },
    /// Somebody who began long ago and never said who it is.
    Nobody,
}

/// How long a worker may take from the lock to its name in it.
const BEGINNING: Duration = Duration::from_secs(10);

impl WorkerLock {
    /// The lock, or nothing if another worker has it and is alive.
    pub(crate) async fn take(db: &Path, manager: &Manager) -> anyhow::Result<Option<Self>> {
        let path = beside(db, "worker.lock");
        if let Some(taken) = Self::try_take(&path, &path)? {
            return Ok(Some(taken));
        }
        if is_alive(&path, manager).await? {
            return Ok(None);
        }
        tracing::warn!("the worker that has the lock has no lease; it is stopped, or hangs");
        Ok(Self::displace(&path)?)
    }

    /// Puts a lock of our own in the place of one whose holder does not move. Of several who do
    /// so, the last one has it.
    fn displace(path: &Path) -> io::Result<Option<Self>> {
        let mut draft = path.as_os_str().to_owned();
        draft.push(format!(".{}", process::id()));
        let draft = PathBuf::from(draft);
        let Some(mut taken) = Self::try_take(&draft, path)? else {
            return Ok(None);
        };
        if let Err(error) = fs::rename(&draft, path) {
            let _ = fs::remove_file(&draft);
            return Err(error);
        }
        taken.path = path.to_owned();
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

    /// Writes down who has it: for whoever started this process and waits for that, and for those
    /// who want to know whether it is alive. A worker that lost its lease has another name.
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

    /// Whether it is still the lock: another worker may have put one of its own in its place.
    pub(crate) fn is_in_place(&self) -> bool {
        let which = |found: fs::Metadata| (found.dev(), found.ino());
        let there = fs::metadata(&self.path).map(which).ok();
        // If there is none, nobody else has it.
        there.is_none() || there == self.file.metadata().map(which).ok()
    }

    /// Lets others see that no worker is alive.
    pub(crate) fn release(self) {
        // Closing the file does it too.
        let _ = self.file.unlock();
    }
}

/// Whether the holder of a lock is alive. Who only begins is believed for a while.
async fn is_alive(lock: &Path, manager: &Manager) -> anyhow::Result<bool> {
    Ok(match holder(lock)? {
        Holder::Beginning => true,
        // It lives as long as it has the lock, and cannot read what this version launches.
        Holder::Older { process } => anyhow::bail!(
            "a worker of an older version, process {process}, has this database; end it with `kill \
             {process}`, and its tasks go on with a new one"
        ),
        Holder::Worker(owner) => manager.has_lease(&owner).await?,
        Holder::Nobody => false,
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
    Ok(if age.is_ok_and(|age| age > BEGINNING) {
        Holder::Nobody
    } else {
        Holder::Beginning
    })
}

/// A process of ours that has this database open and does not go on: a worker, or a run that
/// somebody has put aside with Ctrl-Z.
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

fn has_open(process: &Path, file: &Path) -> bool {
    let files = fs::read_dir(process.join("fd")).into_iter().flatten();
    let mut files = files.flatten().map(|fd| fs::read_link(fd.path()));
    files.any(|open| open.is_ok_and(|open| open == file))
}

/// Starts a worker if there is something to do and nobody to do it. What was asked for has
/// been saved already, so a failure here is a remark, not an error.
pub(crate) async fn ensure(config: &Config, flags: &[(String, String)], manager: &Manager) {
    if !config.autostart || !matches!(manager.unfinished().await, Ok(1..)) {
        return;
    }
    let started = match is_attended(&config.db, manager).await {
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

/// Whether a worker is alive.
async fn is_attended(db: &Path, manager: &Manager) -> anyhow::Result<bool> {
    let path = beside(db, "worker.lock");
    match WorkerLock::try_take(&path, &path)? {
        Some(free) => {
            free.release();
            Ok(false)
        }
        None => is_alive(&path, manager).await,
    }
}

/// How long a worker may take to begin.
const PATIENCE: Duration = Duration::from_secs(3);

fn start(config: &Config, flags: &[(String, String)]) -> anyhow::Result<()> {
    let mut command = Command::new(env::current_exe()?);
    let log = config.log_file.clone();
    let log = log.unwrap_or_else(|| beside(&config.db, "worker.log"));
    let log = std::path::absolute(log)?;
    // What is said about agents goes with their tasks. Here all users of the machine could read it.
    for (key, value) in flags.iter().filter(|(key, _)| !is_of_agent(key)) {
        command.arg("-c").arg(format!("{key}={value}"));
    }
    command.arg("-c").arg(format!("db={}", config.db.display()));
    command.arg("-c").arg(format!("log.file={}", log.display()));
    command.arg("worker");
    command
        // It serves all folders; in one of them it would find what a project put there.
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // Ctrl-C in this terminal is not meant for it.
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut worker = command.spawn()?;
    let begun = Instant::now();
    let lock = beside(&config.db, "worker.lock");
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
        if begun.elapsed() > PATIENCE {
            return Err(anyhow!("it does not begin; see {}", log.display()));
        }
        thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}
