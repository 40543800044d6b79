//! A session's conversation, read newest first, and no more of it than needed.

use asyncagents_core::{
    fork::{Plan, Reach},
    id::SessionId,
    port::{HostError, Recent},
    read::Format,
    transcript::{Message, Outcome, Part, Skipped, Transcript},
};
use serde_json::value::RawValue;

use super::{
    api::{Api, Page},
    pages::{Pages, WIDEST},
    wire::Data,
};

/// The end of a conversation, and the messages of it as OpenCode wrote them.
pub(super) struct End {
    pub(super) recent: Recent,
    /// JSON lists of messages. Each is oldest first, the newest list comes first.
    pub(super) lists: Vec<String>,
}

/// The end of a conversation, as far back as a fork reaches.
pub(super) async fn end_of(
    api: &Api,
    session: &SessionId,
    plan: &Plan,
    prefix: &str,
) -> Result<End, HostError> {
    let read = read_back(api, session, plan, prefix, plan.asked_in.as_deref()).await?;
    match read {
        Some(end) => Ok(end),
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
) -> Result<Option<End>, HostError> {
    let mut reach = Reach::new(&plan.limits);
    let mut newest_first = Vec::new();
    let mut skipped = Skipped::default();
    let mut lists = Vec::new();
    let mut pages = Pages::new(api, session, WIDEST);
    let mut enough = false;
    while !enough && let Some(page) = pages.next().await? {
        let list = oldest_first(&page)?;
        let read = understood(&list)?;
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
        lists.push(list);
    }
    if asked_in.is_some() && newest_first.is_empty() {
        return Ok(None);
    }
    newest_first.reverse();
    let recent = Recent {
        transcript: Transcript::new(newest_first, skipped),
        unread: pages.has_more(),
    };
    Ok(Some(End { recent, lists }))
}

/// The message that asks for a fork, as it was then: by now its calls may have answers, among
/// them the launch of the very child that inherits it.
fn mark_pending(message: &mut Message, prefix: &str) {
    message.finished = false;
    for part in &mut message.parts {
        if let Part::Tool(call) = part
            && call.name.as_str().starts_with(prefix)
        {
            call.outcome = Outcome::Pending;
        }
    }
}

/// The whole conversation.
pub(super) async fn all(api: &Api, session: &SessionId) -> Result<Transcript<'static>, HostError> {
    let mut newest_first = Vec::new();
    let mut skipped = Skipped::default();
    let mut pages = Pages::new(api, session, WIDEST);
    while let Some(page) = pages.next().await? {
        let list = oldest_first(&page)?;
        let read = understood(&list)?;
        skipped.messages += read.skipped().messages;
        skipped.parts += read.skipped().parts;
        let messages = read.messages().iter().rev();
        newest_first.extend(messages.map(|message| message.clone().into_owned()));
    }
    newest_first.reverse();
    Ok(Transcript::new(newest_first, skipped))
}

/// The messages of a page as a list of their own. The order in which a page was asked for is known
/// here, so nobody has to guess it from the messages.
fn oldest_first(page: &Page) -> Result<String, HostError> {
    let messages: Data<Vec<&RawValue>> = serde_json::from_str(&page.text).map_err(unreadable)?;
    let mut list = String::with_capacity(page.text.len());
    list.push('[');
    for message in messages.data.iter().rev() {
        if list.len() > 1 {
            list.push(',');
        }
        list.push_str(message.get());
    }
    list.push(']');
    Ok(list)
}

fn understood(list: &str) -> Result<Transcript<'_>, HostError> {
    Format::OpenCode2.read(list).map_err(unreadable)
}

fn unreadable(error: impl std::fmt::Display) -> HostError {
    HostError::Refused(format!("its messages cannot be read: {error}"))
}
