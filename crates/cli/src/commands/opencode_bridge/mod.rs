//! `asyncagents opencode-bridge`: the process that the plugin in OpenCode talks to. It works on the
//! tasks of that OpenCode until OpenCode ends.

mod agents;
mod handler;
mod toasts;

use std::{sync::Arc, time::Duration};

use asyncagents_hosts::{
    opencode::{EVENTS, process},
    plugin,
};
use asyncagents_runtime::{Problem, Worker};
use asyncagents_store::FormatWatch;
use tokio::{
    io::{stdin, stdout},
    signal::unix::{SignalKind, signal},
    task::JoinSet,
    time,
};

use self::{handler::PluginHandler, toasts::toast};
use super::CommandContext;
use crate::{
    compose::{App, AppOptions},
    exit::{Exit, Failure},
    hosts::{Bridges, HostOptions},
};

/// Why tasks fail whose OpenCode has ended.
const ENDED: &str = "OpenCode ended while it worked; resume it to go on from there";
/// How often it is looked whether a newer version has changed the database.
const FORMAT_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How long a process may live on after its pipes were closed.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

pub(super) fn run(context: &CommandContext) -> Result<Exit, Failure> {
    let runtime = super::two_threads()?;
    let done = runtime.block_on(bridge(context));
    // A blocked read of standard input must not keep the process.
    runtime.shutdown_background();
    done
}

async fn bridge(context: &CommandContext) -> Result<Exit, Failure> {
    let machine = |error: std::io::Error| Failure::Machine(error.into());
    let bridges = Arc::new(Bridges::default());
    let options = AppOptions {
        hosts: HostOptions {
            bridges: Some(bridges.clone()),
            ..HostOptions::default()
        },
        ..AppOptions::default()
    };
    let App { manager, hosts, .. } = context.open(options)?;
    let format = FormatWatch::open(&context.config.db).map_err(Problem::from)?;
    let worker = Worker::start(&manager).await?;
    tracing::info!(db = %context.config.db.display(), "bridge started");
    let handler = Arc::new(PluginHandler::new(
        manager.clone(),
        hosts,
        context.overrides.clone(),
        bridges.clone(),
    ));
    let mut toasts = JoinSet::new();
    toasts.spawn(toast(manager.clone(), bridges.clone()));
    // Ctrl-C in OpenCode's terminal is meant for OpenCode; the bridge ends when it does.
    let mut interrupt = signal(SignalKind::interrupt()).map_err(machine)?;
    let mut hang_up = signal(SignalKind::hangup()).map_err(machine)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(machine)?;
    let served = {
        let mut served = std::pin::pin!(plugin::serve(stdin(), stdout(), EVENTS, handler));
        loop {
            tokio::select! {
                served = &mut served => break served,
                _ = interrupt.recv() => {}
                _ = hang_up.recv() => {}
                _ = terminate.recv() => break Ok(()),
                () = outdated(&format) => {
                    tracing::warn!("a newer version of asyncagents has the database, ending");
                    break Ok(());
                }
            }
        }
    };
    toasts.shutdown().await;
    if let Err(error) = served {
        tracing::warn!(%error, "lost the connection to the plugin");
    }
    // Another bridge takes the tasks over if OpenCode lives, or goes on with them by itself.
    if let Some(process) = bridges.process_to_end_with()
        && is_gone(&process).await
    {
        manager.host_ended(ENDED).await?;
    }
    worker.stop().await;
    tracing::info!("bridge stopped");
    Ok(Exit::Done)
}

/// Returns when a newer version has changed the database. The plugin starts another bridge, of the
/// program that is installed by then.
async fn outdated(format: &FormatWatch) {
    while !format.is_newer().unwrap_or(false) {
        time::sleep(FORMAT_POLL_INTERVAL).await;
    }
}

/// Whether a process has ended, or does so within the timeout.
async fn is_gone(identity: &str) -> bool {
    let gone = async {
        while process::is_alive(identity) {
            time::sleep(Duration::from_millis(20)).await;
        }
    };
    time::timeout(EXIT_TIMEOUT, gone).await.is_ok()
}
