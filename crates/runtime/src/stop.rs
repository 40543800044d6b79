//! Tells a host to stop working for a run that has ended, until it has.

use std::{sync::Arc, time::Duration};

use asyncagents_core::{
    id::OwnerId, lifecycle::Command, port::HostError, progress::Totals, task::Task,
};
use tokio::time;

use crate::{Problem, sent_messages::SentMessages, shared::Shared};

/// The pause after the store has failed.
const STORE_RETRY: Duration = Duration::from_secs(1);

/// How often it is looked whether messages have settled.
const SETTLE_POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Stops the host, and frees the task's slot when that is done.
pub(crate) async fn stop(shared: Arc<Shared>, owner: OwnerId, task: Task) {
    let mut has_stopped = stop_host(&shared, &task).await;
    if outlast_messages(&shared, &task).await {
        has_stopped = stop_host(&shared, &task).await;
    }
    let totals = if has_stopped {
        used(&shared, &task).await
    } else {
        None
    };
    let (id, handle) = (task.id.clone(), shared.clone());
    let stopped = shared.write(move |journal| match journal.task(&id)? {
        Some(mut task) if task.owner.as_ref() == Some(&owner) => handle.carry_out(
            journal,
            &mut task,
            Command::Stopped {
                totals: totals.clone(),
            },
        ),
        _ => Err(Problem::NotOurs),
    });
    match stopped.await {
        Ok(_) | Err(Problem::NotOurs) => {}
        Err(problem) => {
            tracing::error!(task = %task.id, %problem, "could not save that the host has stopped");
            // The next round finds the task again; a store that fails is not helped by haste.
            time::sleep(STORE_RETRY).await;
        }
    }
    shared.written();
}

/// Returns whether the host says that it has stopped.
async fn stop_host(shared: &Shared, task: &Task) -> bool {
    let mut pause = Duration::from_millis(100);
    let begun = time::Instant::now();
    while let Err(error) = try_stop(shared, task).await {
        tracing::warn!(task = %task.id, %error, "host did not stop, retrying");
        // One that refuses will refuse again, and one that is gone for so long has stopped.
        let gone = begun.elapsed() >= shared.settings.limits.stall;
        if gone || !matches!(error, HostError::Unreachable(_)) {
            return false;
        }
        time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_secs(30));
    }
    true
}

/// What the session of a task that was stopped has used. The host is asked once: what was reported
/// is counted already.
async fn used(shared: &Shared, task: &Task) -> Option<Totals> {
    let session = task.session.as_ref()?;
    let prompt = task.prompt();
    let host = shared.hosts.get(&task.brief.host).ok()?;
    if !host.host.counts_at_the_end() {
        return None;
    }
    let asked = host.ask(|host| host.inspect(session, &prompt)).await;
    match asked {
        Ok(inspection) => inspection.totals,
        Err(error) => {
            tracing::info!(task = %task.id, %error, "what it has used at its end is not known");
            None
        }
    }
}

/// Waits until no message to the child is on its way any more. Returns whether one was, which may
/// have set a session that had stopped to work again.
async fn outlast_messages(shared: &Shared, task: &Task) -> bool {
    let host = shared.hosts.get(&task.brief.host);
    if !host.is_ok_and(|host| host.host.notices_wake()) {
        return false;
    }
    let begun = time::Instant::now();
    let mut waited = false;
    while begun.elapsed() < shared.settings.limits.stall {
        let task = task.clone();
        let sent = shared.read(move |journal| Ok(SentMessages::of(journal, &task)?));
        match sent.await {
            Ok(sent) if sent.on_their_way == 0 => break,
            Ok(_) => waited = true,
            Err(problem) => {
                tracing::warn!(%problem, "store failed, retrying");
            }
        }
        time::sleep(SETTLE_POLL_INTERVAL).await;
    }
    waited
}

async fn try_stop(shared: &Shared, task: &Task) -> Result<(), HostError> {
    let Some(session) = &task.session else {
        return Ok(());
    };
    let host = shared.hosts.get(&task.brief.host)?;
    host.ask(|host| host.abort(session)).await
}
