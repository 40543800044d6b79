//! Reading a session's messages, newest first, and no more of them than needed.

use asyncagents_core::{
    fork::{Plan, Reach},
    id::{PostId, SessionId},
    lifecycle::{Standing, Unavailable},
    moment::Moment,
    port::{HostError, Recent},
    progress::Totals,
    read::Format,
    task::Outcome,
    transcript::{self, Part, Skipped, Transcript},
};

use super::{
    api::{Api, Page},
    wire::{Message, RunEnd},
};

/// How many messages the first page has. A request takes OpenCode longer than the messages do, so
/// each page has twice as many as the one before.
const PAGE: usize = 100;
/// How many messages are asked for at most.
const WIDEST: usize = 400;
/// What was put into a session lately is among this many messages.
const RECENT_MESSAGES: usize = 20;
/// How many messages are searched for one of ours if it is not known when it was sent.
const SEARCHED: usize = 2_000;

/// A run of a session, as it stands in its history.
pub(super) struct Run {
    /// What came after the prompt, newest first; nothing if the prompt is not there.
    pub(super) since: Option<Vec<Message>>,
    /// What the session has used since its first prompt.
    pub(super) totals: Totals,
}

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
}

impl Run {
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

/// What became of a prompt.
pub(super) async fn run(api: &Api, session: &SessionId, prompt: &PostId) -> Result<Run, HostError> {
    // What a forked session was given before its first prompt is not its own doing.
    let first = prompt.as_str().rsplit_once('.');
    let first = first.map_or_else(String::new, |(task, _)| format!("{task}.0"));
    let mut since = Vec::new();
    let mut found = false;
    let mut totals = Totals::default();
    let mut pages = Pages::new(api, session, PAGE);
    'read: while let Some(page) = pages.next().await? {
        for message in page.newest_first()? {
            let post = message.post();
            let is_first = post == Some(first.as_str());
            found |= post == Some(prompt.as_str());
            message.add_to(&mut totals);
            if is_first {
                break 'read;
            }
            if !found {
                since.push(message);
            }
        }
    }
    Ok(Run {
        since: found.then_some(since),
        totals,
    })
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
        for message in page.newest_first()? {
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
    let page = api.page(session, &mut { RECENT_MESSAGES }, None).await?;
    let mut messages = page.newest_first()?.into_iter();
    Ok(messages.any(|message| message.post().is_none() && message.info.created() >= since))
}

/// The end of a conversation, as far back as a fork reaches.
pub(super) async fn recent(
    api: &Api,
    session: &SessionId,
    plan: &Plan,
    prefix: &str,
) -> Result<Recent, HostError> {
    let read = read_back(api, session, plan, prefix, plan.asked_in.as_deref()).await?;
    match read {
        Some(recent) => Ok(recent),
        // The message that asked was removed: the conversation without it is inherited.
        None => {
            let read = read_back(api, session, plan, prefix, None).await?;
            read.ok_or_else(|| HostError::NoSession(session.clone()))
        }
    }
}

/// Reads until it is enough. Nothing if the message that asked is not there.
async fn read_back(
    api: &Api,
    session: &SessionId,
    plan: &Plan,
    prefix: &str,
    asked_in: Option<&str>,
) -> Result<Option<Recent>, HostError> {
    let mut reach = Reach::new(&plan.limits);
    let mut newest_first = Vec::new();
    let mut skipped = Skipped::default();
    let mut pages = Pages::new(api, session, PAGE);
    let mut enough = false;
    while !enough && let Some(page) = pages.next().await? {
        let read = understood(&page)?;
        skipped.messages += read.skipped().messages;
        skipped.parts += read.skipped().parts;
        for message in read.messages().iter().rev() {
            let mut message = message.clone().into_owned();
            let id = message.id.as_ref().map(|id| id.as_str());
            if newest_first.is_empty() && asked_in.is_some() {
                if id != asked_in {
                    continue;
                }
                mark_pending(&mut message, prefix);
            }
            newest_first.push(message);
        }
        enough = reach.is_enough(&newest_first);
    }
    if asked_in.is_some() && newest_first.is_empty() {
        return Ok(None);
    }
    newest_first.reverse();
    Ok(Some(Recent {
        transcript: Transcript::new(newest_first, skipped),
        unread: pages.has_more(),
    }))
}

/// The message that asks for a fork, as it was then: by now its calls may have answers, among
/// them the launch of the very child that inherits it.
fn mark_pending(message: &mut transcript::Message, prefix: &str) {
    message.finished = false;
    for part in &mut message.parts {
        if let Part::Tool(call) = part
            && call.name.as_str().starts_with(prefix)
        {
            call.outcome = transcript::Outcome::Pending;
        }
    }
}

/// The whole conversation.
pub(super) async fn all(api: &Api, session: &SessionId) -> Result<Transcript<'static>, HostError> {
    let mut newest_first = Vec::new();
    let mut skipped = Skipped::default();
    let mut pages = Pages::new(api, session, PAGE);
    while let Some(page) = pages.next().await? {
        let read = understood(&page)?;
        skipped.messages += read.skipped().messages;
        skipped.parts += read.skipped().parts;
        let messages = read.messages().iter().rev();
        newest_first.extend(messages.map(|message| message.clone().into_owned()));
    }
    newest_first.reverse();
    Ok(Transcript::new(newest_first, skipped))
}

fn understood(page: &Page) -> Result<Transcript<'_>, HostError> {
    let read = Format::OpenCode.read(&page.text);
    read.map_err(|error| HostError::Refused(format!("its messages cannot be read: {error}")))
}

/// The pages of a session's messages, newest first.
pub(super) struct Pages<'a> {
    api: &'a Api,
    session: &'a SessionId,
    size: usize,
    widest: usize,
    next: Next,
}

enum Next {
    Newest,
    Before(String),
    Nothing,
}

impl<'a> Pages<'a> {
    pub(super) fn new(api: &'a Api, session: &'a SessionId, size: usize) -> Self {
        Self {
            api,
            session,
            size,
            widest: WIDEST,
            next: Next::Newest,
        }
    }

    pub(super) async fn next(&mut self) -> Result<Option<Page>, HostError> {
        let before = match &self.next {
            Next::Newest => None,
            Next::Before(cursor) => Some(cursor.as_str()),
            Next::Nothing => return Ok(None),
        };
        let asked = self.size;
        let page = self.api.page(self.session, &mut self.size, before).await?;
        if self.size < asked {
            self.widest = self.size;
        }
        self.size = (self.size * 2).min(self.widest);
        self.next = match &page.older {
            Some(cursor) => Next::Before(cursor.clone()),
            None => Next::Nothing,
        };
        Ok(Some(page))
    }

    /// Whether there is something that was not read.
    pub(super) fn has_more(&self) -> bool {
        !matches!(self.next, Next::Nothing)
    }
}
