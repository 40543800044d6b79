//! Delivers notices, each until it is in the parent's history, and never twice.

use std::{sync::Arc, time::Duration};

use asyncagents_core::{
    id::{OwnerId, PostId},
    moment::Moment,
    port::{Delivery, HostError, Journal, PendingNotice, Stored},
};
use tokio::time;

use crate::{Problem, manager::Desk, runner::in_time, transact};

/// The longest pause between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The pause after the store has failed.
const BREATH: Duration = Duration::from_secs(1);

/// What is to be done about a notice.
enum Verdict {
    /// It is in the parent's history.
    Told,
    /// It will never be.
    Never(&'static str),
    /// Not now.
    Later(Moment),
    /// It was withdrawn, or another worker sends it.
    NotOurs,
}

/// Delivers the notices of one parent, one after the other.
pub(crate) async fn deliver(desk: Arc<Desk>, owner: OwnerId, notices: Vec<PendingNotice>) {
    for pending in notices {
        let id = pending.notice.id.clone();
        match settle(&desk, &owner, pending).await {
            Ok(()) => {}
            Err(problem) => {
                tracing::warn!(notice = %id, %problem, "a notice waits");
                time::sleep(BREATH).await;
            }
        }
    }
    desk.written();
}

async fn settle(desk: &Desk, owner: &OwnerId, pending: PendingNotice) -> Result<(), Problem> {
    let id = pending.notice.id.clone();
    let verdict = attempt(desk, owner, pending).await?;
    let now = desk.now();
    match verdict {
        Verdict::Told => note(desk, move |journal| journal.told(&id, now)).await,
        Verdict::Never(why) => note(desk, move |journal| journal.untold(&id, why, now)).await,
        Verdict::Later(at) => note(desk, move |journal| journal.put_off(&id, at)).await,
        Verdict::NotOurs => Ok(()),
    }
}

/// One attempt. What may have been sent before is looked for before it is sent again, and
/// given the time it may take to show.
async fn attempt(desk: &Desk, owner: &OwnerId, pending: PendingNotice) -> Result<Verdict, Problem> {
    let PendingNotice {
        notice,
        parent,
        host,
        attempted,
        attempts,
    } = pending;
    let now = desk.now();
    let pause = Duration::from_millis(250).saturating_mul(1 << attempts.min(10));
    let later = Verdict::Later(now.after(pause.min(LONGEST_PAUSE)));
    let Ok(host) = desk.hosts.get(&host) else {
        return Ok(later);
    };
    let host = &host.host;
    if let Some(attempted) = attempted {
        match in_time(host.confirm(&parent, &notice.id)).await {
            Ok(true) => return Ok(Verdict::Told),
            Ok(false) => {
                let shows = attempted.after(desk.settings.settle);
                if now < shows {
                    return Ok(Verdict::Later(shows));
                }
            }
            Err(HostError::NoSession(_)) => return Ok(GONE),
            Err(_) => return Ok(later),
        }
    }
    if !mark(desk, owner, &notice.id).await? {
        return Ok(Verdict::NotOurs);
    }
    let id = notice.id.clone();
    match in_time(host.deliver(&parent, notice)).await {
        Ok(Delivery::Taken) => match in_time(host.confirm(&parent, &id)).await {
            Ok(true) => Ok(Verdict::Told),
            Ok(false) | Err(_) => Ok(Verdict::Later(now.after(desk.settings.settle))),
        },
        Ok(Delivery::NotNow) => Ok(later),
        Ok(Delivery::Gone) | Err(HostError::NoSession(_)) => Ok(GONE),
        Err(HostError::Unreachable(_) | HostError::Refused(_)) => Ok(later),
    }
}

const GONE: Verdict = Verdict::Never("the parent's session no longer exists");

/// Saves that the notice is about to be sent: from here on it may have been.
async fn mark(desk: &Desk, owner: &OwnerId, notice: &PostId) -> Result<bool, Problem> {
    let (owner, notice, now) = (owner.clone(), notice.clone(), desk.now());
    let marked = transact::write(&*desk.store, move |journal| {
        journal.sending(&notice, &owner, now).map_err(Problem::from)
    });
    marked.await
}

async fn note(
    desk: &Desk,
    what: impl FnOnce(&mut dyn Journal) -> Stored<()> + Send + 'static,
) -> Result<(), Problem> {
    let noted = transact::write(&*desk.store, |journal| what(journal).map_err(Problem::from));
    noted.await
}
