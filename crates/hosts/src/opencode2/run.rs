//! What became of a prompt, by what stands after it in the session's history.

use std::time::Duration;

use asyncagents_core::{
    id::{ModelName, SessionId},
    lifecycle::{Standing, Unavailable},
    moment::Moment,
    port::HostError,
    task::Outcome,
};

use crate::both::{pages::Pages, run};

use super::{
    activity::End,
    api::Api,
    id,
    wire::{Message, Said},
};

/// What was put into a session lately is among this many messages.
const RECENT_MESSAGES: usize = 20;
/// How long a server that has started may take until it goes on with a run. It takes a tenth of a
/// second, but there may be many runs, and the machine may be busy.
const RESUME_TIMEOUT: Duration = Duration::from_secs(60);

/// A run of a session, as it stands in its history.
pub(super) type Run = run::Run<Message>;

/// How a run ended, and whether that is certain.
#[derive(Debug, PartialEq)]
pub(super) enum Verdict {
    Certain(Standing),
    /// It may be that the server is about to end, or has just started and goes on with the run by
    /// itself: to be looked at again.
    Unsettled(Standing),
    /// The prompt is there and nothing came of it. Its model may not be known.
    Unanswered,
    /// The prompt is not in the history. It may be in the inbox.
    NotThere,
}

/// What is known beside the history.
pub(super) struct Known {
    /// How the newest execution ended by its event, if it did not go well.
    pub(super) end: Option<End>,
    /// How the session's last turn ended, where OpenCode keeps that.
    pub(super) outcome: Option<String>,
    /// Something was sent a moment ago that sets the session to work.
    pub(super) is_starting: bool,
    pub(super) now: Moment,
}

impl Run {
    /// What became of the prompt.
    pub(super) fn verdict(&self, known: &Known) -> Verdict {
        let Some(messages) = &self.since else {
            return Verdict::NotThere;
        };
        if known.is_resuming(messages) {
            return Verdict::Certain(Standing::Working);
        }
        let Some(last) = messages.iter().position(Message::is_of_agent) else {
            return without_answer(messages, known);
        };
        let (after, last) = (&messages[..last], &messages[last]);
        let answer = messages.iter().find_map(Message::text);
        // A notice came, and the agent has not begun to answer it.
        let is_told = after.iter().any(Message::is_input);
        if is_told && known.is_starting {
            return Verdict::Certain(Standing::Working);
        }
        let done = |outcome| {
            let answer = answer.clone();
            Verdict::Certain(Standing::Done { outcome, answer })
        };
        if let Some(refusal) = last.refusal() {
            return done(failed(refusal));
        }
        if last.has_completed() {
            return done(Outcome::Completed);
        }
        if let Some(problem) = last.problem() {
            if last.failed_by_model() {
                let standing = unavailable(last.model(), problem, answer);
                return Verdict::Certain(standing);
            }
            return done(failed(&problem));
        }
        // It was stopped in the middle.
        match known.stop(after) {
            _ if is_told => Verdict::Unsettled(Standing::Interrupted),
            Some(Stop::With(outcome)) => done(outcome),
            Some(Stop::ByModel(why)) => Verdict::Certain(unavailable(last.model(), why, answer)),
            Some(Stop::OfServer) => Verdict::Unsettled(Standing::Interrupted),
            None if last.is_aborted() => Verdict::Unsettled(Standing::Done {
                outcome: Outcome::Cancelled,
                answer,
            }),
            None => Verdict::Unsettled(Standing::Interrupted),
        }
    }
}

/// The prompt is there, and the agent has written nothing since.
fn without_answer(messages: &[Message], known: &Known) -> Verdict {
    match known.stop(messages) {
        Some(Stop::With(outcome)) => Verdict::Certain(Standing::Done {
            outcome,
            answer: None,
        }),
        Some(Stop::ByModel(why)) => Verdict::Certain(unavailable(None, why, None)),
        Some(Stop::OfServer) => Verdict::Unsettled(Standing::Interrupted),
        None if known.is_starting => Verdict::Certain(Standing::Working),
        None => Verdict::Unanswered,
    }
}

/// Why an execution stopped before it was done.
enum Stop {
    With(Outcome),
    /// Its model cannot be asked, for this reason.
    ByModel(String),
    /// The server was stopped, or so it seems.
    OfServer,
}

impl Stop {
    fn of_failure(why: &str, by_model: bool) -> Self {
        if by_model {
            Self::ByModel(why.to_owned())
        } else {
            Self::With(failed(why))
        }
    }
}

impl Known {
    /// Whether a server has started that goes on with the run in a moment: it writes so before it
    /// does. `messages` are what came after the prompt, newest first.
    fn is_resuming(&self, messages: &[Message]) -> bool {
        let mut since = messages.iter().take_while(|it| !it.is_of_agent());
        let announced = since.find(|it| it.announces_resumption());
        let at = announced.and_then(Message::created);
        at.is_some_and(|at| self.now.since(at) < RESUME_TIMEOUT)
    }

    /// Why the newest execution stopped: by its event, or by the message that some releases write
    /// at the end of a turn.
    fn stop(&self, messages: &[Message]) -> Option<Stop> {
        match &self.end {
            Some(End::Failed { why, by_model }) => Some(Stop::of_failure(why, *by_model)),
            Some(End::Interrupted { reason }) => Some(match reason.as_str() {
                "user" => Stop::With(Outcome::Cancelled),
                "inactivity" => Stop::With(failed(
                    "OpenCode stopped it because nothing happened for long",
                )),
                _ => Stop::OfServer,
            }),
            None => self.said(messages),
        }
    }

    fn said(&self, messages: &[Message]) -> Option<Stop> {
        match messages.iter().find_map(Message::said_end) {
            Some(Said::Failed { why, by_model }) => Some(Stop::of_failure(&why, by_model)),
            Some(Said::Interrupted) => None,
            None if self.outcome.as_deref() == Some("failed") => {
                Some(Stop::With(failed("OpenCode does not say why")))
            }
            None => None,
        }
    }
}

/// Its model cannot be asked.
pub(super) fn unavailable(
    model: Option<ModelName>,
    why: String,
    answer: Option<String>,
) -> Standing {
    Standing::ModelUnavailable(Unavailable {
        model,
        why,
        answer,
        retrying: false,
    })
}

pub(super) fn failed(why: &str) -> Outcome {
    Outcome::Failed {
        why: why.to_owned(),
    }
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
    Ok(messages.any(|message| !id::is_ours(&message.id) && message.created() >= Some(since)))
}
