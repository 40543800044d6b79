//! Tells a session something: one message under a name of ours, which OpenCode keeps once however
//! often it is sent.
//!
//! What is admitted waits in the inbox until the session takes it, and survives everything there. But
//! after an interrupt nobody takes it, until it is sent again. So a notice is told when it is in the
//! history; before, it is sent again, which does no harm. Only in a session that is not to be woken it
//! is told as soon as it is admitted.

use std::time::Duration;

use asyncagents_core::{
    id::{PostId, SessionId},
    notify::Message,
    port::{Delivery, HostError, Notice},
};
use serde_json::json;
use tokio::time;

use crate::both::{
    metadata,
    response::{absent, transient},
};

use super::{
    api::Told,
    host::OpenCode2,
    id::{self, is_session},
    run,
};

/// How long an idle session may take to take what it is told.
const TAKE_TIMEOUT: Duration = Duration::from_secs(2);
/// How much of a notice people are shown.
const LONGEST_LINE: usize = 300;
const FIRST_PAUSE: Duration = Duration::from_millis(20);

impl OpenCode2 {
    pub(super) async fn send_notice(
        &self,
        session: &SessionId,
        notice: Notice,
    ) -> Result<Delivery, HostError> {
        if !is_session(session) {
            return Ok(Delivery::Gone);
        }
        let Some(is_awake) = absent(self.is_awake(session).await).map_err(transient)? else {
            return Ok(Delivery::Gone);
        };
        let mut body = json!({
            "id": id::message(&notice.id),
            "text": for_model(&notice.message),
            "description": for_people(&notice.message),
            "metadata": metadata::posted(&notice.id),
        });
        if is_awake {
            self.activity.notified(session, self.clock.now());
        } else {
            body["resume"] = json!(false);
        }
        match self.api.tell(session, body).await {
            Ok(Told::Taken) => {}
            // It will not be given up, so this is not tried again.
            Ok(Told::NameTaken(why)) => return Err(HostError::Refused(why)),
            Err(HostError::NoSession(_)) => return Ok(Delivery::Gone),
            Err(error) => return Err(transient(error)),
        }
        if is_awake && !self.activity.is_busy(session, self.clock.now()) {
            self.wait_until_taken(session, &notice.id).await?;
        }
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
        let found = self.looked_for(session, notice).await;
        Ok(absent(found).map_err(transient)?.unwrap_or(false))
    }

    async fn looked_for(&self, session: &SessionId, notice: &PostId) -> Result<bool, HostError> {
        if self.api.is_delivered(session, notice).await? {
            return Ok(true);
        }
        if self.is_awake(session).await? {
            return Ok(false);
        }
        self.is_admitted(session, notice).await
    }

    /// Whether something of ours is in a session, delivered or not.
    pub(super) async fn is_there(
        &self,
        session: &SessionId,
        post: &PostId,
    ) -> Result<bool, HostError> {
        Ok(self.api.is_delivered(session, post).await? || self.is_admitted(session, post).await?)
    }

    async fn is_admitted(&self, session: &SessionId, post: &PostId) -> Result<bool, HostError> {
        let message = id::message(post);
        let inbox = self.api.inbox(session).await?;
        Ok(inbox.iter().any(|item| item.id == message))
    }

    /// An idle session takes it at once, so that the first time it is asked for it is there.
    async fn wait_until_taken(&self, session: &SessionId, post: &PostId) -> Result<(), HostError> {
        let taken = async {
            let mut pause = FIRST_PAUSE;
            while !self.api.is_delivered(session, post).await? {
                time::sleep(pause).await;
                pause *= 2;
            }
            Ok(())
        };
        time::timeout(TAKE_TIMEOUT, taken).await.unwrap_or(Ok(()))
    }

    /// Whether a session was used since OpenCode was started. A child is at work for a task, so it
    /// is not for a person to open it first.
    async fn is_awake(&self, session: &SessionId) -> Result<bool, HostError> {
        match self.settings.began {
            None => Ok(true),
            Some(_) if session.as_str().starts_with(id::OUR_SESSIONS) => Ok(true),
            Some(_) if self.activity.is_awake(session) => Ok(true),
            Some(began) => run::has_worked(&self.api, session, began).await,
        }
    }
}

fn for_model(message: &Message) -> String {
    let texts = [message.visible.as_str(), message.hidden.as_str()];
    let texts: Vec<&str> = texts.into_iter().filter(|text| !text.is_empty()).collect();
    texts.join("\n\n")
}

/// One line: OpenCode shows it as it is, without Markdown.
fn for_people(message: &Message) -> String {
    let lines = message.visible.lines().map(str::trim);
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    let line = lines.join(" · ").replace("**", "");
    match line.char_indices().nth(LONGEST_LINE) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
