//! What became of a prompt and whether something of ours is there, by a session's messages.

use asyncagents_core::{
    id::{PostId, SessionId},
    lifecycle::{Standing, Unavailable},
    moment::Moment,
    port::HostError,
    task::Outcome,
};

use crate::both::{pages::Pages, run};

use super::{
    api::Api,
    wire::{Message, RunEnd},
};

/// What was put into a session lately is among this many messages.
const RECENT_MESSAGES: usize = 20;
/// How many messages are searched for one of ours if it is not known when it was sent.
const SEARCHED: usize = 2_000;

/// A run of a session, as it stands in its history.
pub(super) type Run = run::Run<Message>;

impl Run {
    /// What became of the prompt, by the last message of the agent. `reported` is how the run ended
    /// by an event: OpenCode sends that before it writes it into the message, and also when there is
    /// no message.
    pub(super) fn standing(&self, reported: Option<RunEnd>, is_starting: bool) -> Standing {
        let without_message = |otherwise| match reported.clone() {
            Some(end) => end.standing(None, None),
            None if is_starting => Standing::Working,
            None => otherwise,
        };
        let Some(messages) = &self.since else {
            return without_message(Standing::Unprompted);
        };
        let mut of_agent = messages.iter().filter(|message| message.is_of_agent());
        let answer = of_agent.clone().find_map(Message::text);
        let Some(last) = of_agent.next() else {
            return without_message(Standing::Interrupted);
        };
        // A notice came, and the agent has not begun to answer it.
        if is_starting && !messages.first().is_some_and(Message::is_of_agent) {
            return Standing::Working;
        }
        match (&last.info.error, last.info.finish.as_deref()) {
            (Some(problem), _) => problem.end().standing(last.info.model(), answer),
            // The agent was to go on and did not. After a refusal of the user it does not.
            (None, None | Some("tool-calls" | "unknown")) => {
                let refused = || {
                    let why = last.refusal()?.to_owned();
                    Some(Outcome::Failed { why }.into())
                };
                let end = reported.or_else(refused);
                end.map_or(Standing::Interrupted, |end: RunEnd| {
                    end.standing(last.info.model(), answer)
                })
            }
            (None, Some(_)) => Standing::Done {
                outcome: Outcome::Completed,
                answer,
            },
        }
    }

    /// What is known of a run whose model is not to be asked for a long time.
    pub(super) fn waits(&self, why: String) -> Unavailable {
        let since = self.since.iter().flatten();
        let mut of_agent = since.filter(|message| message.is_of_agent());
        let model = of_agent.clone().find_map(|message| message.info.model());
        Unavailable {
            model,
            why,
            answer: of_agent.find_map(Message::text),
            retrying: true,
        }
    }
}

/// Whether something of ours is in a session. `since` is a moment before which it was not sent.
pub(super) async fn find(
    api: &Api,
    session: &SessionId,
    post: &PostId,
    since: Option<Moment>,
) -> Result<bool, HostError> {
    let mut looked = 0;
    let mut pages = Pages::new(api, session, RECENT_MESSAGES);
    while let Some(page) = pages.next().await? {
        for message in page.newest_first::<Message>()? {
            if message.post() == Some(post.as_str()) {
                return Ok(true);
            }
            looked += 1;
            let too_old = |since: Moment| message.info.created() < since;
            if since.is_some_and(too_old) || looked >= SEARCHED {
                return Ok(false);
            }
        }
    }
    Ok(false)
}

/// Whether a recent message of a session, other than ours, is not older than a moment.
pub(super) async fn has_worked(
    api: &Api,
    session: &SessionId,
    since: Moment,
) -> Result<bool, HostError> {
    let mut pages = Pages::new(api, session, RECENT_MESSAGES);
    let Some(page) = pages.next().await? else {
        return Ok(false);
    };
    let mut messages = page.newest_first::<Message>()?.into_iter();
    Ok(messages.any(|message| message.post().is_none() && message.info.created() >= since))
}
