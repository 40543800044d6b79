//! Tells a session something, and finds out whether it was told.

use std::time::Duration;

use asyncagents_core::{
    id::{PostId, SessionId},
    port::{Delivery, HostError, Notice},
};
use serde_json::json;
use tokio::time;

use super::{api::is_session, history, host::OpenCode, wire};

/// How long OpenCode may take to store a message that it has accepted.
const STORE_TIMEOUT: Duration = Duration::from_secs(30);
/// Clocks of two machines may differ by this much.
const CLOCK_SKEW: Duration = Duration::from_secs(10 * 60);

impl OpenCode {
    pub(super) async fn send_notice(
        &self,
        session: &SessionId,
        notice: Notice,
    ) -> Result<Delivery, HostError> {
        self.check_version().await?;
        let Some(there) = self.api.session(session).await? else {
            return Ok(Delivery::Gone);
        };
        let parts = json!([
            wire::text(&notice.message.visible, &notice.id, false),
            wire::text(&notice.message.hidden, &notice.id, true),
        ]);
        let body = self.message_for(&there, parts).await?;
        self.activity.sending(&notice.id, self.clock.now());
        if !self.is_awake(session).await? {
            self.api.store(session, body).await?;
            return Ok(Delivery::Taken);
        }
        self.activity.notified(session, self.clock.now());
        self.api.prompt(session, body).await?;
        self.wait_until_stored(session, &notice.id).await?;
        Ok(Delivery::Taken)
    }

    pub(super) async fn has_notice(
        &self,
        session: &SessionId,
        notice: &PostId,
    ) -> Result<bool, HostError> {
        if !is_session(session) {
            return Ok(false);
        }
        let sent = self.activity.sent_at(notice);
        let since = sent.map(|at| at.before(CLOCK_SKEW));
        let found = match history::find(&self.api, session, notice, since).await {
            Err(HostError::NoSession(_)) => false,
            found => found?,
        };
        if found {
            self.activity.arrived(notice);
        }
        Ok(found)
    }

    /// OpenCode accepts a message before it stores it, and other plugins may look at it first. Until
    /// it is in the history, another attempt could not tell that it was sent.
    async fn wait_until_stored(&self, session: &SessionId, post: &PostId) -> Result<(), HostError> {
        let since = self.activity.sent_at(post).map(|at| at.before(CLOCK_SKEW));
        let stored = async {
            let mut pause = Duration::from_millis(20);
            while !history::find(&self.api, session, post, since).await? {
                time::sleep(pause).await;
                pause = (pause * 2).min(Duration::from_secs(1));
            }
            Ok(())
        };
        time::timeout(STORE_TIMEOUT, stored).await.unwrap_or(Ok(()))
    }

    /// Whether a session was used since OpenCode was started.
    async fn is_awake(&self, session: &SessionId) -> Result<bool, HostError> {
        match self.settings.began {
            None => Ok(true),
            Some(_) if self.activity.is_awake(session) => Ok(true),
            Some(began) => history::has_worked(&self.api, session, began).await,
        }
    }
}
