//! Delivers notices, each until it is in the parent's history, and never twice.

use std::{sync::Arc, time::Duration};

use asyncagents_core::{
    id::OwnerId,
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
    Never(String),
    /// Not now. It may have been sent at a moment, or certainly not.
    Later {
        at: Moment,
        attempted: Option<Moment>,
    },
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
        Verdict::Never(why) => {
            tracing::warn!(notice = %id, why, "a notice cannot be delivered");
            note(desk, move |journal| journal.untold(&id, &why, now)).await
        }
        Verdict::Later { at, attempted } => {
            note(desk, move |journal| journal.put_off(&id, at, attempted)).await
        }
        Verdict::NotOurs => Ok(()),
    }
}

/// One attempt. What may have been sent before is looked for before it is sent again, and
/// given the time it may take to show. Hosts can be slow, so the time is always taken anew.
async fn attempt(desk: &Desk, owner: &OwnerId, pending: PendingNotice) -> Result<Verdict, Problem> {
    let pause = Duration::from_millis(250).saturating_mul(1 << pending.attempts.min(10));
    let pause = pause.min(LONGEST_PAUSE);
    let id = pending.notice.id.clone();
    let later = |error: &HostError, attempted: Option<Moment>| {
        tracing::warn!(notice = %id, %error, "a notice waits for its host");
        Verdict::Later {
            at: desk.now().after(pause.max(desk.settings.settle)),
            attempted,
        }
    };
    let host = match desk.hosts.get(&pending.host) {
        Ok(host) => host,
        Err(error) => return Ok(verdict(error, |error| later(error, pending.attempted))),
    };
    let (host, parent) = (&host.host, &pending.parent);
    if let Some(attempted) = pending.attempted {
        match in_time(host.confirm(parent, &id)).await {
            Ok(true) => return Ok(Verdict::Told),
            Ok(false) => {
                let at = attempted.after(desk.settings.settle);
                if desk.now() < at {
                    let attempted = Some(attempted);
                    return Ok(Verdict::Later { at, attempted });
                }
            }
            Err(error) => return Ok(verdict(error, |error| later(error, Some(attempted)))),
        }
    }
    if !mark(desk, owner, &pending).await? || !desk.has_own_lease() {
        return Ok(Verdict::NotOurs);
    }
    match in_time(host.deliver(parent, pending.notice)).await {
        Ok(Delivery::Taken) => match in_time(host.confirm(parent, &id)).await {
            Ok(true) => Ok(Verdict::Told),
            Ok(false) | Err(_) => Ok(Verdict::Later {
                at: desk.now().after(pause.max(desk.settings.settle)),
                attempted: Some(desk.now()),
            }),
        },
        Ok(Delivery::NotNow) => Ok(Verdict::Later {
            at: desk.now().after(pause),
            attempted: None,
        }),
        Ok(Delivery::Gone) => Ok(Verdict::Never("the parent's session is gone".to_owned())),
        Err(error) => Ok(verdict(error, |error| later(error, Some(desk.now())))),
    }
}

/// A host that cannot be reached may be reached later; one that refuses will refuse again.
fn verdict(error: HostError, later: impl FnOnce(&HostError) -> Verdict) -> Verdict {
    match error {
        HostError::Unreachable(_) => later(&error),
        HostError::Refused(_) | HostError::NoSession(_) => Verdict::Never(error.to_string()),
    }
}

/// Saves that the notice is about to be sent: from here on it may have been.
async fn mark(desk: &Desk, owner: &OwnerId, found: &PendingNotice) -> Result<bool, Problem> {
    let (owner, found, now) = (owner.clone(), found.clone(), desk.now());
    let marked = transact::write(&*desk.store, move |journal| {
        journal.sending(&found, &owner, now).map_err(Problem::from)
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
