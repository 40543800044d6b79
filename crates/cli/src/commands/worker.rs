//! `asyncagents worker`: work on tasks until there are none for a while.

use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use asyncagents_runtime::{Manager, Problem, Worker};
use asyncagents_store::FormatWatch;
use tokio::signal::unix::{SignalKind, signal};

use super::{CommandContext, prune};
use crate::{
    compose::{App, AppOptions},
    config::Config,
    exit::{Exit, Failure},
    own_file,
    worker_process::{Keys, WorkerLock},
};

/// Run a worker in the foreground.
///
/// Commands start a worker in the background when there is work and none is alive, so this is
/// for those who want to watch it or supervise it themselves. It ends after `worker.idle`
/// without work, and on Ctrl-C or SIGTERM, leaving every task resumable. A task whose key is not in its
/// environment stays queued, and says so.
#[derive(Debug, clap::Args)]
pub(super) struct WorkerArgs {
    /// Variables with keys, by their names, that the process had which has started this.
    #[arg(long, hide = true, value_delimiter = ',')]
    keys: Vec<String>,
}

/// Why a worker ends.
enum Reason {
    Idle,
    Signal,
    /// Another worker has the lock: this one was suspended, or hung, for longer than its lease.
    Displaced,
    /// The database was deleted or replaced: no other process would see what is written.
    DatabaseGone,
    /// A newer version has the database now, and starts a worker of its own.
    Outdated,
}

pub(super) fn run(context: &CommandContext, args: &WorkerArgs) -> Result<Exit, Failure> {
    let runtime = super::two_threads()?;
    runtime.block_on(work(context, args))
}

async fn work(context: &CommandContext, args: &WorkerArgs) -> Result<Exit, Failure> {
    let config = &context.config;
    let keys = Keys::here(config, &args.keys);
    let App { manager, hosts, .. } = context.open(AppOptions::default())?;
    let database = own_file::Found::at(&config.db).with_context(|| config.db.display().to_string());
    let database = database.map_err(Failure::Machine)?;
    let format = FormatWatch::open(&config.db).map_err(Problem::from)?;
    let mut lock = Some(take_lock(config, &manager, &keys).await?);
    tracing::info!(db = %config.db.display(), "worker started");
    let worker = Worker::start(&manager).await?;
    loop {
        let watched = Watched {
            database: &database,
            format: &format,
        };
        match wait(config, &manager, watched, &mut lock).await? {
            Reason::Displaced => {
                tracing::warn!("lost the lock to another worker");
                break;
            }
            Reason::DatabaseGone => {
                tracing::warn!(db = %config.db.display(), "the database was deleted or replaced");
                drop(lock.take());
                break;
            }
            Reason::Outdated => {
                tracing::warn!("a newer version of asyncagents has the database, ending");
                drop(lock.take());
                break;
            }
            Reason::Signal => {
                // From here on a command that launches starts another worker.
                drop(lock.take());
                break;
            }
            Reason::Idle => {
                if let Some(lock) = lock.take() {
                    lock.release();
                }
                // A task that was launched before the lock was released is ours; a later launch
                // sees that there is no worker.
                if manager.unfinished().await? == 0 {
                    if let Err(problem) = prune::retain(config, &manager).await {
                        tracing::warn!(%problem, "cannot delete what the settings do not keep");
                    }
                    break;
                }
                match WorkerLock::take(&config.db, &manager, &keys).await {
                    Ok(Some(again)) => lock = Some(again),
                    Ok(None) => break,
                    Err(error) => return Err(Failure::Machine(error)),
                }
            }
        }
    }
    // First the agents: what one of them is about to finish is not given to another worker.
    hosts.stop().await;
    worker.stop().await;
    tracing::info!("worker stopped");
    Ok(Exit::Done)
}

async fn take_lock(config: &Config, manager: &Manager, keys: &Keys) -> Result<WorkerLock, Failure> {
    let name = config.db.display();
    let taken = WorkerLock::take(&config.db, manager, keys).await;
    let taken = taken.with_context(|| format!("the worker's lock beside {name}"));
    match taken.map_err(Failure::Machine)? {
        Some(lock) => Ok(lock),
        None => Err(Failure::Input(anyhow!(
            "a worker for {name} is running already"
        ))),
    }
}

/// The database as it was found.
#[derive(Clone, Copy)]
struct Watched<'a> {
    database: &'a own_file::Found,
    format: &'a FormatWatch,
}

/// Waits until the worker is to end.
async fn wait(
    config: &Config,
    manager: &Manager,
    watched: Watched<'_>,
    lock: &mut Option<WorkerLock>,
) -> Result<Reason, Failure> {
    let machine = |error: std::io::Error| Failure::Machine(error.into());
    let mut interrupt = signal(SignalKind::interrupt()).map_err(machine)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(machine)?;
    // A terminal that is closed does not end the worker.
    let mut hang_up = signal(SignalKind::hangup()).map_err(machine)?;
    let poll_interval = (config.idle / 4).clamp(Duration::from_millis(50), Duration::from_secs(2));
    let mut busy = Instant::now();
    let (mut version, mut unfinished) = (None, None);
    loop {
        if watched.database.is_gone() {
            return Ok(Reason::DatabaseGone);
        }
        if watched.format.is_newer().unwrap_or(false) {
            return Ok(Reason::Outdated);
        }
        if let Some(lock) = lock {
            if let Err(error) = lock.sign(manager.owner()) {
                tracing::error!(%error, "cannot write the lock");
            }
            if !lock.is_in_place() {
                return Ok(Reason::Displaced);
            }
        }
        tokio::select! {
            _ = interrupt.recv() => return Ok(Reason::Signal),
            _ = terminate.recv() => return Ok(Reason::Signal),
            _ = hang_up.recv() => {}
            () = tokio::time::sleep(poll_interval) => {}
        }
        // The tasks are not counted again while nobody writes.
        let now = manager.written_since(None).await;
        let is_new = version.replace(now) != Some(now);
        if is_new || unfinished.is_none() {
            unfinished = manager
                .unfinished()
                .await
                .inspect_err(|problem| {
                    tracing::error!(%problem, "cannot read the store, retrying");
                })
                .ok();
        }
        match unfinished {
            Some(0) if busy.elapsed() >= config.idle => return Ok(Reason::Idle),
            Some(0) => {}
            Some(_) | None => busy = Instant::now(),
        }
    }
}
