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

/// One line: OpenCode shows it as it is, without Markdown. Of many ends some are left out, and how
/// many there are is said; the last line of that paragraph sums all of them up.
fn for_people(message: &Message) -> String {
    let (ends, after) = match message.visible.split_once("\n\n") {
        Some((ends, after)) => (ends, after),
        None => (message.visible.as_str(), ""),
    };
    let plain = |text: &str| -> Vec<String> {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        lines.map(|line| line.replace("**", "")).collect()
    };
    let mut lines = plain(ends);
    if lines.join(BETWEEN).chars().count() > LONGEST_LINE {
        lines = some_of(lines);
    }
    lines.extend(plain(after));
    let line = lines.join(BETWEEN);
    match line.char_indices().nth(LONGEST_LINE) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

const BETWEEN: &str = " · ";

/// The first lines that fit beside the last one, how many are left out, and the last one.
fn some_of(mut lines: Vec<String>) -> Vec<String> {
    /// For how many are left out.
    const ROOM: usize = 20;
    let Some(last) = lines.pop() else {
        return lines;
    };
    let mut left = LONGEST_LINE.saturating_sub(last.chars().count() + ROOM);
    let fits = |line: &&String| {
        let room = left.checked_sub(line.chars().count() + BETWEEN.len());
        left = room.unwrap_or_default();
        room.is_some()
    };
    // One that is too long on its own is cut, not left out.
    let shown = lines
        .iter()
        .take_while(fits)
        .count()
        .max(1)
        .min(lines.len());
    let left_out = lines.len() - shown;
    lines.truncate(shown);
    if left_out > 0 {
        lines.push(format!("… {left_out} more"));
    }
    lines.push(last);
    lines
}

#[cfg(test)]
mod tests {
    use super::{LONGEST_LINE, Message, for_people};

    fn shown(visible: &str) -> String {
        let (visible, hidden) = (visible.to_owned(), String::new());
        for_people(&Message { visible, hidden })
    }

    #[test]
    fn people_see_one_line_with_how_far_the_tasks_are() {
        assert_eq!(
            shown("✓ **Agent \"a\" finished in 1s.**\nTask Progress: 1/2"),
            "✓ Agent \"a\" finished in 1s. · Task Progress: 1/2"
        );
        let mut many: Vec<String> = (1..=12)
            .map(|number| format!("✓ **Agent \"shelf {number}\" finished in 1.8s.**"))
            .collect();
        many.push("Task Progress: 12/12".to_owned());
        let line = shown(&many.join("\n"));
        let ending = "✓ Agent \"shelf 6\" finished in 1.8s. · … 6 more · Task Progress: 12/12";
        assert!(line.ends_with(ending), "{line}");
        assert!(line.chars().count() <= LONGEST_LINE, "{line}");
    }

    #[test]
    fn a_long_line_is_cut() {
        let long = "é".repeat(1_000);
        for visible in [
            long.clone(),
            format!("{long}\nTask Progress: 1/1"),
            format!("✓ **done**\nTask Progress: 1/1\n\n{long}"),
        ] {
            let line = shown(&visible);
            assert_eq!(line.chars().count(), LONGEST_LINE + 1, "{line}");
            assert!(line.ends_with('…'), "{line}");
        }
        assert_eq!(shown(""), "");
    }
}
