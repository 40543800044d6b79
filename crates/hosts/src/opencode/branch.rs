//! A fork as messages: a copy of the parent's session, with results cut and messages removed.

use std::collections::{HashMap, HashSet};

use asyncagents_core::{
    fork::{Edits, Plan, edits},
    id::SessionId,
    port::{HostError, NewSession},
    tokens,
    transcript::Transcript,
};
use serde_json::{Value, json};
use tokio::task::spawn_blocking;

use crate::both::{
    conversation,
    pages::{PAGE, Pages},
};

use super::{api::Api, history, session_rules::SessionRules, wire};

/// Among how many of the newest sessions one of ours is looked for.
pub(super) const SEARCHED: usize = 100;
/// How many messages of a parent are asked for at first. A fork seldom needs more, and each request
/// waits for the parent's next turn, which OpenCode prepares at the same time.
pub(super) const FORK_PAGE: usize = 250;
/// More edits than this take too long, one request each.
const MOST_EDITS: usize = 500;

/// A session with the parent's own messages, and what the child has to know about them. Nothing
/// where that would take too long; then the conversation is passed on as text.
pub(super) async fn branch(
    api: &Api,
    new: &NewSession,
    plan: &Plan,
    prefix: &str,
    rules: SessionRules,
) -> Result<Option<(SessionId, String)>, HostError> {
    let made = if new.first_attempt {
        None
    } else {
        wire::made_for(&new.task, api.newest_sessions(SEARCHED).await?)
    };
    if let Some(made) = &made
        && history::find(api, made, &new.task.inheritance(), None).await?
    {
        // Another attempt finished it and ended before that was saved.
        return Ok(Some((made.clone(), String::new())));
    }
    let Some(Work {
        until,
        parent,
        edits,
    }) = work_out(api, new, plan, prefix).await?
    else {
        return Ok(None);
    };
    if edits.cut.len() + edits.removed.len() > MOST_EDITS {
        tracing::info!(task = %new.task, "too many edits for a fork as messages, falling back to text");
        return Ok(None);
    }
    if let Some(unfinished) = made {
        // It is not known which of its messages were changed already.
        api.delete(&unfinished).await?;
    }
    let session = copy(api, new, until, rules).await?;
    edit(api, &session, &parent, &edits).await?;
    Ok(Some((session, edits.preamble)))
}

/// How the copy is made.
struct Work {
    /// The message before which the copy ends, if there is one.
    until: Option<String>,
    /// The parent's messages that the copy holds, newest first, as far as they were read.
    parent: Vec<String>,
    edits: Edits,
}

/// What of the parent is inherited, and the changes to a copy of it.
async fn work_out(
    api: &Api,
    new: &NewSession,
    plan: &Plan,
    prefix: &str,
) -> Result<Option<Work>, HostError> {
    let pages = Pages::new(api, &new.parent, FORK_PAGE);
    let mut recent = conversation::end_of(pages, plan, prefix).await?.recent;
    // What cannot be read would be missing in the count of messages.
    if recent.transcript.skipped().messages > 0 {
        return Ok(None);
    }
    let newest = recent.transcript.messages().last();
    let newest = newest.and_then(|message| Some(message.id.as_ref()?.as_str().to_owned()));
    // The message may have been removed since.
    let until = plan.asked_in.clone().filter(|_| plan.asked_in == newest);
    if let Some(asked_in) = &until {
        recent.transcript = before(&recent.transcript, asked_in);
    }
    let messages = recent.transcript.messages().iter().rev();
    let ids: Option<Vec<String>> = messages
        .map(|message| Some(message.id.as_ref()?.as_str().to_owned()))
        .collect();
    let Some(ids) = ids else { return Ok(None) };
    let limits = plan.limits.clone();
    let worked_out = spawn_blocking(move || {
        let parent = recent.into_parent();
        edits(&parent, &limits, tokens::o200k)
    });
    let worked_out = worked_out
        .await
        .map_err(|error| HostError::Refused(error.to_string()))?
        .map_err(|error| HostError::Refused(error.to_string()))?;
    Ok(worked_out.map(|edits| Work {
        until,
        parent: ids,
        edits,
    }))
}

/// The copy holds what came before the message that asked.
fn before(transcript: &Transcript<'static>, asked_in: &str) -> Transcript<'static> {
    let is_it = |message: &&asyncagents_core::transcript::Message| {
        message
            .id
            .as_ref()
            .is_some_and(|id| id.as_str() == asked_in)
    };
    let messages = transcript
        .messages()
        .iter()
        .take_while(|message| !is_it(message));
    Transcript::new(messages.cloned().collect(), transcript.skipped())
}

async fn copy(
    api: &Api,
    new: &NewSession,
    until: Option<String>,
    rules: SessionRules,
) -> Result<SessionId, HostError> {
    let copy = api.fork(&new.parent, until.as_deref()).await?;
    let session: SessionId = copy.id.as_str().into();
    let about = json!({
        "title": format!("{} (@{} in the background)", new.title, new.agent),
        "metadata": rules.metadata,
        "permission": rules.rules,
    });
    api.change(&session, about).await?;
    Ok(session)
}

/// Changes the copy. Its messages have other names than the parent's, but the same order.
async fn edit(
    api: &Api,
    session: &SessionId,
    parent: &[String],
    edits: &Edits,
) -> Result<(), HostError> {
    let cut = edits.cut.iter().map(|cut| {
        let name = (cut.message.as_str(), cut.call.as_str());
        (name, cut.text.as_str())
    });
    let cut: HashMap<(&str, &str), &str> = cut.collect();
    let removed: HashSet<&str> = edits.removed.iter().map(|id| id.as_str()).collect();
    let mut originals = parent.iter();
    let mut pages = Pages::new(api, session, PAGE);
    let mut changes = Vec::new();
    'read: while let Some(page) = pages.next().await? {
        for message in page.newest_first::<Value>()? {
            let Some(original) = originals.next() else {
                break 'read;
            };
            changes.push((message, original.as_str()));
        }
    }
    for (mut message, original) in changes {
        let id = message["info"]["id"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        if removed.contains(original) {
            api.delete_message(session, &id).await?;
            continue;
        }
        let parts = message["parts"].as_array_mut().map(std::mem::take);
        for mut part in parts.unwrap_or_default() {
            let call = part["callID"].as_str().filter(|_| part["type"] == "tool");
            let Some(stays) = call.and_then(|call| cut.get(&(original, call))) else {
                continue;
            };
            let kind = match part["state"]["status"].as_str() {
                Some("error") => "error",
                _ => "output",
            };
            part["state"][kind] = json!(stays);
            let name = part["id"].as_str().unwrap_or_default().to_owned();
            api.change_part(session, &id, &name, part).await?;
        }
    }
    Ok(())
}
