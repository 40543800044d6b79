//! Tells a client that waits how long it has waited: some give up on a silent call.

use std::{future::Future, time::Duration};

use rmcp::{RoleServer, model::ProgressNotificationParam, service::RequestContext};
use tokio::time::{self, MissedTickBehavior};

const INTERVAL: Duration = Duration::from_secs(5);

/// Runs something that may take long, and says so meanwhile.
pub(super) async fn with_progress<T>(
    context: &RequestContext<RoleServer>,
    work: impl Future<Output = T>,
) -> T {
    let Some(token) = context.meta.get_progress_token() else {
        return work.await;
    };
    let mut work = std::pin::pin!(work);
    let mut ticks = time::interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks.tick().await;
    let begun = time::Instant::now();
    loop {
        tokio::select! {
            done = &mut work => return done,
            _ = ticks.tick() => {
                let seconds = begun.elapsed().as_secs();
                let waited = ProgressNotificationParam::new(token.clone(), begun.elapsed().as_secs_f64())
                    .with_message(format!("waiting for {seconds} s"));
                // A client that does not want it is answered all the same.
                let _ = context.peer.notify_progress(waited).await;
            }
        }
    }
}
