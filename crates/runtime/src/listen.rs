//! Hears what happens in a host, and passes it on.

use std::sync::Arc;

use asyncagents_core::{
    id::SessionId,
    port::{HostEvents, Report, SessionEvent},
};

use crate::{hosts::OpenHost, manager::clear, shared::Shared};

/// Passes on what happens in a host.
pub(crate) async fn listen(
    shared: Arc<Shared>,
    host: Arc<OpenHost>,
    mut events: Box<dyn HostEvents>,
) {
    while let Some(report) = events.next().await {
        match report {
            Report::Missed => host.tell_missed(),
            Report::Session(session, event) => {
                let deleted = event == SessionEvent::Deleted;
                let idle = event == SessionEvent::Idle;
                let has_runner = host.tell(&session, event);
                if deleted {
                    // Everyone who could ask for its tasks is gone.
                    if let Err(problem) = clear(&shared, &session).await {
                        tracing::error!(%problem, "cannot stop the tasks of a deleted session");
                    }
                } else if idle && !has_runner {
                    hurry_notices(&shared, session).await;
                }
            }
        }
    }
    host.tell_missed();
}

/// A session is idle, and may be able to take what it could not take before.
async fn hurry_notices(shared: &Arc<Shared>, parent: SessionId) {
    let now = shared.now();
    let any = shared.read({
        let parent = parent.clone();
        move |journal| Ok(journal.any_pending(&parent)?)
    });
    if !any.await.unwrap_or(false) {
        return;
    }
    let hurried = shared.write(move |journal| Ok(journal.hurry(&parent, now)?));
    if hurried.await.unwrap_or(false) {
        shared.written();
    }
}
