//! The worker process: one for each database, started when there is work and none is alive.
//!
//! A worker holds a lock on a file beside the database for as long as it lives, whatever
//! ends it. Leases say who looks after which task; the lock only says whether to start one.

use std::{
    env,
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Write},
    path::Path,
    process::{self, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use asyncagents_runtime::Manager;

use crate::{config::Config, print, wire::beside};

/// The lock that a worker holds.
pub(crate) struct WorkerLock(File);

impl WorkerLock {
    /// The lock, or nothing if another worker has it.
    pub(crate) fn take(db: &Path) -> io::Result<Option<Self>> {
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).write(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(beside(db, "worker.lock"))?;
        match file.try_lock() {
            Ok(()) => {
                file.set_len(0)?;
                Ok(Some(Self(file)))
            }
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Writes down who has it, for whoever started this process and waits for that.
    pub(crate) fn sign(&mut self) -> io::Result<()> {
        self.0.write_all(process::id().to_string().as_bytes())
    }

    /// Lets others see that no worker is alive.
    pub(crate) fn release(self) {
        // Closing the file does it too.
        let _ = self.0.unlock();
    }
}

/// Starts a worker if there is something to do and nobody to do it. What was asked for has
/// been saved already, so a failure here is a remark, not an error.
pub(crate) async fn ensure(config: &Config, flags: &[(String, String)], manager: &Manager) {
    if !config.autostart || !matches!(manager.unfinished().await, Ok(1..)) {
        return;
    }
    let started = match WorkerLock::take(&config.db) {
        Ok(None) => return,
        Ok(Some(free)) => {
            free.release();
            start(config, flags)
        }
        Err(error) => Err(error),
    };
    if let Err(error) = started {
        print::remark(&format!(
            "asyncagents: no worker could be started: {error}; `asyncagents worker` runs one\n"
        ));
    }
}

/// How long a worker may take to begin.
const PATIENCE: Duration = Duration::from_secs(3);

fn start(config: &Config, flags: &[(String, String)]) -> io::Result<()> {
    let mut command = Command::new(env::current_exe()?);
    let log = config.log_file.clone();
    let log = log.unwrap_or_else(|| beside(&config.db, "worker.log"));
    for (key, value) in flags {
        command.arg("-c").arg(format!("{key}={value}"));
    }
    command.arg("-c").arg(format!("db={}", config.db.display()));
    command.arg("-c").arg(format!("log.file={}", log.display()));
    command.arg("worker");
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // Ctrl-C in this terminal is not meant for it.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut worker = command.spawn()?;
    let begun = Instant::now();
    let lock = beside(&config.db, "worker.lock");
    while fs::read_to_string(&lock).ok() != Some(worker.id().to_string()) {
        if let Some(status) = worker.try_wait()? {
            // Another command may have been faster.
            return match WorkerLock::take(&config.db)? {
                None => Ok(()),
                Some(_) => Err(io::Error::other(format!(
                    "it ended at once ({status}); see {}",
                    log.display()
                ))),
            };
        }
        if begun.elapsed() > PATIENCE {
            return Err(io::Error::other(format!(
                "it does not begin; see {}",
                log.display()
            )));
        }
        thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}
