//! Hears what happens in a host, and passes it on.

use std::sync::Arc;

use asyncagents_core::{
    id::SessionId,
    port::{HostEvents, Report, SessionEvent},
};

use crate::{
    Problem,
    hosts::OpenHost,
    manager::{Desk, clear},
    transact,
};

/// Passes on what happens in a host.
pub(crate) async fn listen(desk: Arc<Desk>, host: Arc<OpenHost>, mut events: Box<dyn HostEvents>) {
    while let Some(report) = events.next().await {
        match report {
            Report::Missed => host.tell_missed(),
            Report::Session(session, event) => {
                let deleted = event == SessionEvent::Deleted;
                let idle = event == SessionEvent::Idle;
                let heard = host.tell(&session, event);
                if deleted {
                    // Everyone who could ask for its tasks is gone.
                    if let Err(problem) = clear(&desk, &session).await {
                        tracing::error!(%problem, "the tasks of a deleted session go on");
                    }
                } else if idle && !heard {
                    hurry_notices(&desk, session).await;
                }
            }
        }
    }
    host.tell_missed();
}

/// A session is idle, and may be able to take what it could not take before.
async fn hurry_notices(desk: &Arc<Desk>, parent: SessionId) {
    let now = desk.now();
    let any = transact::read(&*desk.store, {
        let parent = parent.clone();
        move |journal| journal.any_pending(&parent).map_err(Problem::from)
    });
    if !any.await.unwrap_or(false) {
        return;
    }
    let hurried = transact::write(&*desk.store, move |journal| {
        journal.hurry(&parent, now).map_err(Problem::from)
    });
    if hurried.await.unwrap_or(false) {
        desk.written();
    }
}
