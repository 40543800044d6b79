//! A fork as messages: a session that begins with the parent's own, results cut and the oldest left
//! out, made by one call.

use std::collections::{HashMap, HashSet};

use asyncagents_core::{
    fork::{Excerpt, Mode, Plan, excerpt},
    id::{SessionId, TaskId},
    port::{HostError, NewSession},
    tokens,
    transcript::{Message, Outcome, Part},
};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};
use tokio::task::spawn_blocking;

use crate::{
    both::{
        conversation::End,
        metadata,
        pages::MessagePages,
        response::{CONFLICT, answered, parse},
    },
    connection::Request,
};

use super::{
    api::Api,
    capabilities::Offer,
    copied_message::{self, Changes},
    host::OpenCode2,
    id::{self, is_session},
    session_rules,
    wire::{Data, Session},
};

/// What a person sees of the message that tells the child whose conversation it has.
const DESCRIPTION: &str = "the conversation above was inherited";
/// Stands before an agent's message that was not the first, for models that begin with the user's.
const LEFT_OUT: &str = "[What came before was left out.]";

impl OpenCode2 {
    /// A session with the parent's own messages, or the one that was made for the task before.
    /// Nothing where that was not asked for or cannot be done; then the conversation is passed on
    /// as text.
    pub(super) async fn make_branch(
        &self,
        new: &NewSession,
        plan: &Plan,
    ) -> Result<Option<SessionId>, HostError> {
        if plan.mode != Mode::Messages || !is_session(&new.parent) {
            return Ok(None);
        }
        let parent = self.existing(&new.parent).await?;
        let asked = self.new_session(new, Some(&parent)).await?;
        let session = id::child_session(&new.task);
        if let Some(made) = self.api.session(&session).await? {
            return self.made_before(&asked, made, &new.task).await;
        }
        let offered = self.capabilities.path(&self.api, Offer::Import).await?;
        let Some(path) = offered.filter(|_| !asked["location"].is_null()) else {
            tracing::debug!("this OpenCode imports no sessions, falling back to text");
            return Ok(None);
        };
        let Some(messages) = self.inherited_messages(new, plan).await? else {
            return Ok(None);
        };
        let body = with_messages(&asked, messages, self.clock.now().as_millis());
        match import(&self.api, path, body).await? {
            Imported::Made(made) => self.if_bound(&asked, *made).await,
            Imported::Existing => {
                let made = self.existing(&session).await?;
                self.made_before(&asked, made, &new.task).await
            }
            Imported::Not(why) => {
                let task = &new.task;
                tracing::warn!(%task, why, "cannot import a session, falling back to text");
                Ok(None)
            }
        }
    }

    /// A session that is there already. It was made in one step; but it may have been made without
    /// messages, by an attempt that fell back to text. Then this one does too.
    async fn made_before(
        &self,
        asked: &Value,
        made: Session,
        task: &TaskId,
    ) -> Result<Option<SessionId>, HostError> {
        let session = made.id.as_str().into();
        let told = task.inheritance();
        if self.api.is_delivered(&session, &told).await? {
            self.if_bound(asked, made).await
        } else {
            Ok(None)
        }
    }

    /// The session, unless an import has not kept the rules that bind it. One that is made without a
    /// history may keep them.
    async fn if_bound(&self, asked: &Value, made: Session) -> Result<Option<SessionId>, HostError> {
        let session = made.id.as_str().into();
        let unbound = session_rules::are_missing(asked, &made, &self.settings.prefix);
        if unbound && !self.settings.plugin_binds {
            self.api.delete(&session).await?;
            return Ok(None);
        }
        Ok(Some(session))
    }

    /// What the session begins with: messages of the parent, and what the child has to know about
    /// them.
    async fn inherited_messages(
        &self,
        new: &NewSession,
        plan: &Plan,
    ) -> Result<Option<Vec<Value>>, HostError> {
        let End { recent, lists } = self.end_of(&new.parent, plan).await?;
        let (limits, task) = (plan.limits.clone(), new.task.clone());
        let worked_out = spawn_blocking(move || {
            let parent = recent.into_parent();
            let made =
                excerpt(&parent, &limits, tokens::o200k).map_err(|error| error.to_string())?;
            Ok(made.and_then(|made| copies(&made, parent.transcript().messages(), &lists, &task)))
        });
        let worked_out = worked_out.await.map_err(|error| error.to_string());
        worked_out.flatten().map_err(HostError::Refused)
    }
}

/// The copies of all messages that are kept. Nothing if one of them cannot be found.
fn copies(
    excerpt: &Excerpt,
    messages: &[Message],
    lists: &[String],
    task: &TaskId,
) -> Option<Vec<Value>> {
    let originals = originals(excerpt, lists);
    let mut changes = changes(excerpt, messages);
    let mut copies = Vec::with_capacity(excerpt.kept.len() + 2);
    for (number, id) in excerpt.kept.iter().enumerate() {
        let original: Value = serde_json::from_str(originals.get(id.as_str())?.get()).ok()?;
        if number == 0 && original["type"] == "assistant" {
            copies.push(json!({
                "id": copied(task, "head"), "type": "synthetic", "text": LEFT_OUT,
                "time": original["time"],
            }));
        }
        let changes = changes.remove(id.as_str()).unwrap_or_default();
        let id = copied(task, &number.to_string());
        copies.push(copied_message::copy(&original, id, &changes));
    }
    let post = task.inheritance();
    let newest = copies.last().map(|copy| copy["time"]["created"].clone());
    copies.push(json!({
        "id": id::message(&post), "type": "synthetic", "text": excerpt.preamble,
        "description": DESCRIPTION, "metadata": metadata::posted(&post),
        "time": {"created": newest.unwrap_or_else(|| json!(0))},
    }));
    Some(copies)
}

/// The name of a copied message. Names that are used anywhere in OpenCode cannot be used again.
fn copied(task: &TaskId, which: &str) -> String {
    id::message(&format!("{task}.copy.{which}").into())
}

/// The messages that are kept, as OpenCode wrote them.
fn originals<'l>(excerpt: &Excerpt, lists: &'l [String]) -> HashMap<String, &'l RawValue> {
    #[derive(Deserialize)]
    struct Named {
        id: String,
    }
    let kept: HashSet<&str> = excerpt.kept.iter().map(|id| id.as_str()).collect();
    let lists = lists.iter().map(|list| serde_json::from_str(list));
    let messages = lists.flat_map(|list: Result<Vec<&RawValue>, _>| list.unwrap_or_default());
    let named = messages.filter_map(|message| {
        let Named { id } = serde_json::from_str(message.get()).ok()?;
        kept.contains(id.as_str()).then_some((id, message))
    });
    named.collect()
}

/// What is different in the copies, by the names of the originals.
fn changes<'e>(excerpt: &'e Excerpt, messages: &'e [Message]) -> HashMap<&'e str, Changes<'e>> {
    let mut changes: HashMap<&str, Changes> = HashMap::new();
    for cut in &excerpt.cut {
        let of_message = changes.entry(cut.message.as_str()).or_default();
        of_message.cut.insert(cut.call.as_str(), &cut.text);
    }
    // The message that asks for the fork, or is being written: its open calls are not for the child.
    for message in messages.iter().filter(|message| !message.finished) {
        let Some(id) = &message.id else { continue };
        let calls = message.parts.iter().filter_map(|part| match part {
            Part::Tool(call) if call.outcome == Outcome::Pending => call.id.as_ref(),
            Part::Tool(_) | Part::Text(_) => None,
        });
        let of_message = changes.entry(id.as_str()).or_default();
        of_message.hidden.extend(calls.map(|call| call.as_str()));
    }
    changes
}

/// The session that was asked for, with its messages.
fn with_messages(asked: &Value, messages: Vec<Value>, now: i64) -> Value {
    let mut info = asked.clone();
    // OpenCode works out the project itself, from the folder.
    info["projectID"] = json!("global");
    info["cost"] = json!(0);
    info["tokens"] = json!({
        "input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0},
    });
    info["time"] = json!({"created": now, "updated": now});
    json!({"info": info, "messages": messages, "location": asked["location"]})
}

/// What came of an import. It is made as a whole or not at all.
enum Imported {
    Made(Box<Session>),
    /// Another attempt has made it.
    Existing,
    Not(String),
}

async fn import(api: &Api, path: &str, body: Value) -> Result<Imported, HostError> {
    let response = api.connection().send(Request::post(path, body)).await?;
    match response.status {
        200..300 => {
            let made: Data<Session> = parse(&response.body)?;
            Ok(Imported::Made(Box::new(made.data)))
        }
        CONFLICT => Ok(Imported::Existing),
        429 | 502..=504 => Err(HostError::Unreachable(answered(&response))),
        // 500 is what it answers if the name of a message is used elsewhere.
        _ => Ok(Imported::Not(answered(&response))),
    }
}
