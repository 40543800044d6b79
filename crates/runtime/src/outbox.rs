//! Delivers notices: retries each until it is in the parent's history, and never sends it twice.

use std::{sync::Arc, time::Duration};

use asyncagents_core::{
    id::OwnerId,
    moment::Moment,
    port::{Delivery, HostError, Journal, PendingNotice, Stored},
};
use tokio::time;

use crate::{Problem, shared::Shared};

/// The longest pause between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The pause after the store has failed.
const STORE_RETRY: Duration = Duration::from_secs(1);

/// What is to be done about a notice.
enum Verdict {
    /// Delivered: it is in the parent's history.
    Delivered,
    /// Undeliverable, for a reason; do not retry.
    Undeliverable(String),
    /// Retry then. `attempted` is when it may have been sent.
    Retry {
        at: Moment,
        attempted: Option<Moment>,
    },
    /// It was withdrawn, or another worker sends it.
    NotOurs,
}

/// Delivers the notices of one parent, one after the other.
pub(crate) async fn deliver(shared: Arc<Shared>, owner: OwnerId, notices: Vec<PendingNotice>) {
    for pending in notices {
        let id = pending.notice.id.clone();
        match settle(&shared, &owner, pending).await {
            Ok(()) => {}
            Err(problem) => {
                tracing::warn!(notice = %id, %problem, "store failed, retrying delivery");
                time::sleep(STORE_RETRY).await;
            }
        }
    }
    shared.written();
}

async fn settle(shared: &Shared, owner: &OwnerId, pending: PendingNotice) -> Result<(), Problem> {
    let id = pending.notice.id.clone();
    let verdict = attempt(shared, owner, pending).await?;
    let now = shared.now();
    match verdict {
        Verdict::Delivered => note(shared, move |journal| journal.delivered(&id, now)).await,
        Verdict::Undeliverable(why) => {
            tracing::warn!(notice = %id, why, "notice is undeliverable");
            note(shared, move |journal| journal.undelivered(&id, &why, now)).await
        }
        Verdict::Retry { at, attempted } => {
            note(shared, move |journal| journal.put_off(&id, at, attempted)).await
        }
        Verdict::NotOurs => Ok(()),
    }
}

/// One attempt. What may have been sent before is looked for before it is sent again, and
/// given the time it may take to show. Hosts can be slow, so the time is always taken anew.
async fn attempt(
    shared: &Shared,
    owner: &OwnerId,
    pending: PendingNotice,
) -> Result<Verdict, Problem> {
    let pause = Duration::from_millis(250).saturating_mul(1 << pending.attempts.min(10));
    let pause = pause.min(LONGEST_PAUSE);
    let id = pending.notice.id.clone();
    let retry = |error: &HostError, attempted: Option<Moment>| {
        tracing::warn!(notice = %id, %error, "host unavailable, retrying delivery");
        Verdict::Retry {
            at: shared
                .now()
                .after(pause.max(shared.settings.confirm_timeout)),
            attempted,
        }
    };
    let host = match shared.hosts.get(&pending.host) {
        Ok(host) => host,
        Err(error) => return Ok(verdict(error, |error| retry(error, pending.attempted))),
    };
    let parent = &pending.parent;
    let confirm = || host.ask(|host| host.confirm(parent, &id));
    if let Some(attempted) = pending.attempted {
        match confirm().await {
            Ok(true) => return Ok(Verdict::Delivered),
            Ok(false) => {
                let at = attempted.after(shared.settings.confirm_timeout);
                if shared.now() < at {
                    let attempted = Some(attempted);
                    return Ok(Verdict::Retry { at, attempted });
                }
            }
            Err(error) => return Ok(verdict(error, |error| retry(error, Some(attempted)))),
        }
    }
    if !mark(shared, owner, &pending).await? || !shared.has_own_lease() {
        return Ok(Verdict::NotOurs);
    }
    let delivered = host.ask(|host| host.deliver(parent, pending.notice));
    match delivered.await {
        Ok(Delivery::Taken) => match confirm().await {
            Ok(true) => Ok(Verdict::Delivered),
            Ok(false) | Err(_) => Ok(Verdict::Retry {
                at: shared
                    .now()
                    .after(pause.max(shared.settings.confirm_timeout)),
                attempted: Some(shared.now()),
            }),
        },
        Ok(Delivery::NotNow) => Ok(Verdict::Retry {
            at: shared.now().after(pause),
            attempted: None,
        }),
        Ok(Delivery::Gone) => Ok(Verdict::Undeliverable(
            "the parent's session is gone".to_owned(),
        )),
        Err(error) => Ok(verdict(error, |error| retry(error, Some(shared.now())))),
    }
}

/// A host that cannot be reached may be reached later; one that refuses will refuse again.
fn verdict(error: HostError, retry: impl FnOnce(&HostError) -> Verdict) -> Verdict {
    match error {
        HostError::Unreachable(_) => retry(&error),
        HostError::Refused(_) | HostError::NoSession(_) => {
            Verdict::Undeliverable(error.to_string())
        }
    }
}

/// Saves that the notice is about to be sent: from here on it may have been.
async fn mark(shared: &Shared, owner: &OwnerId, found: &PendingNotice) -> Result<bool, Problem> {
    let (owner, found, now) = (owner.clone(), found.clone(), shared.now());
    shared
        .write(move |journal| Ok(journal.sending(&found, &owner, now)?))
        .await
}

async fn note(
    shared: &Shared,
    what: impl Fn(&mut dyn Journal) -> Stored<()> + Send + 'static,
) -> Result<(), Problem> {
    shared.write(move |journal| Ok(what(journal)?)).await
}
