//! The API of an OpenCode 2 through the plugin in its process: where it has no port, or none that we
//! know. Requests become calls of what OpenCode gives to plugins; what that has not is put together
//! from events and from what models were shown, as far as that goes.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use asyncagents_core::{id::SessionId, lock::lock, port::HostError};
use serde_json::{Value, json};
use tokio::{sync::mpsc, task::JoinSet};

use super::{
    json::take,
    link::{Asked, PluginLink, Shown},
    relayed::{self, Relayed, Sessions},
    shown,
};
use crate::{
    connection::{Connection, Listeners, Method, Request, Response, Signal},
    opencode2::OUR_SESSIONS,
};

/// How many messages a page has if the request does not say.
const PAGE: usize = 50;

/// The API of an OpenCode 2 through the plugin in its process.
pub struct Relay {
    link: Arc<PluginLink>,
    sessions: Arc<Mutex<Sessions>>,
    listeners: Arc<Listeners>,
    /// Follows the events.
    _following: JoinSet<()>,
}

impl Relay {
    /// Relays through this plugin. `events` are the types of event that listeners want.
    ///
    /// # Errors
    /// [`HostError::Unreachable`] if it is gone.
    pub fn new(link: Arc<PluginLink>, events: &[&str]) -> Result<Self, HostError> {
        let more = events.iter().filter(|kind| !relayed::EVENTS.contains(kind));
        let all: Vec<&str> = relayed::EVENTS.iter().chain(more).copied().collect();
        let signals = link.listen(&all)?;
        let (sessions, listeners) = (Arc::default(), Arc::default());
        let mut following = JoinSet::new();
        following.spawn(follow(
            signals,
            Arc::clone(&sessions),
            Arc::clone(&listeners),
        ));
        Ok(Self {
            link,
            sessions,
            listeners,
            _following: following,
        })
    }

    async fn answer(&self, request: Request) -> Result<Response, HostError> {
        let path: Vec<&str> = request.path.trim_matches('/').split('/').collect();
        match (request.method, path.as_slice()) {
            (Method::Get, ["api", "health"]) => {
                // Plugins are not told more; nobody decides by it.
                done(&json!({"healthy": true, "version": "unknown", "pid": self.link.pid()}))
            }
            (Method::Get, ["api", "agent"]) => self.agents(&request).await,
            // An empty list says nothing about a model.
            (Method::Get, ["api", "model"]) => data(&json!([])),
            (Method::Get, ["api", "model", "default"]) => Ok(missing()),
            (Method::Post, ["api", "session"]) => {
                self.call("session.create", body(&request), None).await
            }
            (Method::Get, ["api", "session", "active"]) => self.active().await,
            (_, ["api", "session", session, rest @ ..]) => {
                self.of_session(session, rest, &request).await
            }
            // What is not described is not used.
            (Method::Get, ["openapi.json"]) => Ok(missing()),
            _ => Err(impossible(&request)),
        }
    }

    async fn of_session(
        &self,
        session: &str,
        rest: &[&str],
        request: &Request,
    ) -> Result<Response, HostError> {
        let of = || with(body(request), session);
        match (request.method, rest) {
            (Method::Get, []) => self.call("session.get", of(), None).await,
            (Method::Delete, []) => self.call("session.remove", of(), None).await,
            (Method::Post, ["prompt"]) => self.send_to(session, "session.prompt", of()).await,
            (Method::Post, ["synthetic"]) => self.send_to(session, "session.synthetic", of()).await,
            (Method::Post, ["interrupt"]) => self.call("session.interrupt", of(), None).await,
            (Method::Post, ["agent"]) => self.call("session.switchAgent", of(), None).await,
            (Method::Post, ["model"]) => self.call("session.switchModel", of(), None).await,
            (Method::Get, ["message"]) => self.page(session, request).await,
            (Method::Get, ["message", id]) => self.message(session, id).await,
            (Method::Get, ["inbox"]) => self.known(session, Relayed::inbox),
            (Method::Get, ["permission"]) => self.known(session, Relayed::permissions),
            (Method::Get, ["form"]) => self.known(session, Relayed::forms),
            _ => Err(impossible(request)),
        }
    }

    /// Calls one of OpenCode's methods, as its API would answer.
    async fn call(
        &self,
        method: &str,
        args: Value,
        folder: Option<&str>,
    ) -> Result<Response, HostError> {
        match self.link.ask(method, &args, folder).await? {
            Asked::Done(value) => data(&value),
            Asked::Failed { tag, message } => {
                let status = match tag.as_str() {
                    tag if tag.contains("NotFound") => 404,
                    tag if tag.contains("Conflict") => 409,
                    tag if tag.contains("Invalid") => 400,
                    _ => 500,
                };
                let body = json!({"_tag": tag, "message": message});
                Ok(response(status, &body))
            }
        }
    }

    /// The agents of a folder, which are listed together with it.
    async fn agents(&self, request: &Request) -> Result<Response, HostError> {
        let mut query = request.query.iter();
        let folder = query.find(|(key, _)| *key == "location[directory]");
        let folder = folder.map(|(_, folder)| folder.as_str());
        match self.link.ask("agent.list", &json!({}), folder).await? {
            Asked::Done(mut value) => {
                let listed = match take(&mut value, "data") {
                    Value::Null => value,
                    listed => listed,
                };
                data(&listed)
            }
            Asked::Failed { message, .. } => Err(HostError::Unreachable(message)),
        }
    }

    async fn send_to(
        &self,
        session: &str,
        method: &str,
        args: Value,
    ) -> Result<Response, HostError> {
        let response = self.call(method, args, None).await?;
        if response.status < 300 {
            let mut item: Value = serde_json::from_str(&response.body).unwrap_or_default();
            lock(&self.sessions).sent(session, take(&mut item, "data"));
        }
        Ok(response)
    }

    /// The sessions that are at work.
    async fn active(&self) -> Result<Response, HostError> {
        let busy = self.link.busy().await?;
        let running = json!({"type": "running"});
        let busy = busy.into_iter().map(|session| (session, running.clone()));
        data(&busy.collect())
    }

    fn known(
        &self,
        session: &str,
        what: fn(&Relayed) -> Vec<&Value>,
    ) -> Result<Response, HostError> {
        let sessions = lock(&self.sessions);
        let known = sessions.get(session).map(what);
        data(&json!(known.unwrap_or_default()))
    }

    /// A page of messages, newest first. The name of its oldest one is where the next begins.
    async fn page(&self, session: &str, request: &Request) -> Result<Response, HostError> {
        let asked = |key: &str| {
            let mut query = request.query.iter();
            query
                .find(|(name, _)| *name == key)
                .map(|(_, value)| value.as_str())
        };
        let limit = asked("limit").and_then(|limit| limit.parse().ok());
        let limit: usize = limit.unwrap_or(PAGE).max(1);
        let Some(messages) = self.messages(session).await? else {
            return Ok(missing());
        };
        let mut older = messages.into_iter().rev().peekable();
        if let Some(cursor) = asked("cursor") {
            while older.next().is_some_and(|message| message["id"] != cursor) {}
        }
        let page: Vec<Value> = older.by_ref().take(limit).collect();
        let last = page.last().map(|message| message["id"].clone());
        let next = last.filter(|_| older.peek().is_some());
        done(&json!({"data": page, "cursor": {"next": next}}))
    }

    async fn message(&self, session: &str, id: &str) -> Result<Response, HostError> {
        let known = lock(&self.sessions)
            .get(session)
            .and_then(|it| it.message(id).cloned());
        if let Some(message) = known {
            return data(&message);
        }
        let messages = self.messages(session).await?.unwrap_or_default();
        match messages.into_iter().find(|message| message["id"] == id) {
            Some(message) => data(&message),
            None => Ok(missing()),
        }
    }

    /// The messages of a session, oldest first; nothing if there is no such session.
    async fn messages(&self, session: &str) -> Result<Option<Vec<Value>>, HostError> {
        let heard = lock(&self.sessions)
            .get(session)
            .map(|it| (it.whole, it.before_gap, it.messages.clone()));
        let (whole, before_gap, heard) = heard.unwrap_or_default();
        if whole {
            return Ok(Some(heard));
        }
        if let Some(before) = self.shown(session).await? {
            let messages = joined(before, heard, before_gap);
            return Ok(Some(self.with_delivered(session, messages).await));
        }
        let there = self
            .call("session.get", with(json!({}), session), None)
            .await?;
        if there.status == 404 {
            return Ok(None);
        }
        // A person's session that nobody has used since OpenCode began has nothing new to say. What
        // became of a task is another matter.
        if !heard.is_empty() || !session.starts_with(OUR_SESSIONS) {
            return Ok(Some(self.with_delivered(session, heard).await));
        }
        if self.link.busy().await?.iter().any(|busy| busy == session) {
            let why = format!("{session} is at work, and what it does is not known yet");
            return Err(HostError::Unreachable(why));
        }
        Err(HostError::Refused(format!(
            "OpenCode shows plugins no messages of the past, and nothing was said in {session} \
             since asyncagents was started; start OpenCode with its background server instead"
        )))
    }

    /// What OpenCode itself says of a session's messages, or what its model was shown last.
    async fn shown(&self, session: &str) -> Result<Option<Vec<Value>>, HostError> {
        let args = with(json!({}), session);
        match self.link.ask("session.context", &args, None).await {
            Ok(Asked::Done(Value::Array(messages))) => return Ok(Some(messages)),
            Ok(Asked::Done(mut value)) => {
                if let Value::Array(messages) = take(&mut value, "data") {
                    return Ok(Some(messages));
                }
            }
            // Not every OpenCode has it.
            Ok(Asked::Failed { .. }) | Err(HostError::Refused(_)) => {}
            Err(error) => return Err(error),
        }
        let shown = self.link.shown(&SessionId::from(session)).await?;
        Ok(shown.map(|Shown { messages, events }| {
            let since = Sessions::messages_of(session, events);
            let mut messages = shown::messages(messages);
            if let Some(began) = self.link.began() {
                shown::date(&mut messages, began);
            }
            joined(messages, since, 0)
        }))
    }

    /// With what was delivered to a task and a compaction has taken away since: it stood before
    /// everything that models are shown. That it was there is all that is known of it.
    async fn with_delivered(&self, session: &str, messages: Vec<Value>) -> Vec<Value> {
        if !session.starts_with(OUR_SESSIONS) {
            return messages;
        }
        // An older plugin does not say.
        let delivered = self.link.delivered(&SessionId::from(session)).await;
        let is_here = |id: &String| messages.iter().any(|message| message["id"] == **id);
        let delivered = delivered.unwrap_or_default().into_iter();
        let older = delivered.filter(|id| !is_here(id));
        let older = older.map(|id| json!({"id": id, "type": "user", "text": ""}));
        let older: Vec<Value> = older.collect();
        older.into_iter().chain(messages).collect()
    }
}

#[async_trait]
impl Connection for Relay {
    async fn send(&self, request: Request) -> Result<Response, HostError> {
        self.answer(request).await
    }

    fn signals(&self) -> mpsc::UnboundedReceiver<Signal> {
        self.listeners.add()
    }
}

/// Keeps the sessions up to date; listeners hear of an event after that.
async fn follow(
    mut signals: mpsc::UnboundedReceiver<Signal>,
    sessions: Arc<Mutex<Sessions>>,
    listeners: Arc<Listeners>,
) {
    while let Some(signal) = signals.recv().await {
        match &signal {
            Signal::Missed => lock(&sessions).missed(),
            Signal::Event(event) => match serde_json::from_str(event.get()) {
                Ok(event) => lock(&sessions).apply(event),
                Err(error) => tracing::warn!(%error, "ignoring malformed event"),
            },
        }
        listeners.send(&signal);
    }
    listeners.end();
}

/// What is known otherwise and what was heard of, in order; of the latter, so many were heard of
/// before something was missed. What was only heard of stands before the next one that is in both.
/// Behind the last of these, what was heard of before the gap comes first, and the rest is the newest.
fn joined(before: Vec<Value>, heard: Vec<Value>, before_gap: usize) -> Vec<Value> {
    let places = before.iter().enumerate();
    let places = places.filter_map(|(place, it)| Some((it["id"].as_str()?.to_owned(), place)));
    let places: HashMap<String, usize> = places.collect();
    let place = |message: &Value| places.get(message["id"].as_str()?).copied();
    let last = heard.iter().rev().find_map(place);
    let (behind_last, newest) = (last.map_or(0, |last| last + 1), before.len());
    // Each of what is known, behind what was only heard of; and the newest.
    let known = before.into_iter().map(|message| VecDeque::from([message]));
    let mut slots: Vec<VecDeque<Value>> = known.chain([VecDeque::new()]).collect();
    let mut next = None;
    for (number, message) in heard.into_iter().enumerate().rev() {
        let was_missed = number < before_gap;
        let in_both = place(&message);
        next = in_both.or(next);
        let end = if was_missed { behind_last } else { newest };
        let Some(slot) = slots.get_mut(next.unwrap_or(end)) else {
            continue;
        };
        match slot.back_mut().filter(|_| in_both.is_some()) {
            Some(known) if is_whole(&message, was_missed) => *known = message,
            Some(_) => {}
            None => slot.push_front(message),
        }
    }
    slots.into_iter().flatten().collect()
}

/// Whether its beginning was heard of too, and its end, if something was missed since. Events tell
/// more then than what is known otherwise.
fn is_whole(message: &Value, was_missed: bool) -> bool {
    match message["type"].as_str() {
        Some("assistant") => {
            message["agent"].is_string() && (!was_missed || message["finish"].is_string())
        }
        Some("compaction") => !was_missed || message["status"] != "running",
        _ => message["text"]
            .as_str()
            .is_some_and(|text| !text.is_empty()),
    }
}

fn body(request: &Request) -> Value {
    request.body.clone().unwrap_or_else(|| json!({}))
}

/// OpenCode's methods take the session and the body in one.
fn with(mut args: Value, session: &str) -> Value {
    if let Some(args) = args.as_object_mut() {
        args.insert("sessionID".to_owned(), session.into());
    }
    args
}

fn impossible(request: &Request) -> HostError {
    let (method, path) = (request.method.as_str(), &request.path);
    HostError::Refused(format!(
        "OpenCode does not let plugins do this ({method} {path}); it works with OpenCode's \
         background server"
    ))
}

/// Answers of the API have what was asked for in `data`.
fn data(value: &Value) -> Result<Response, HostError> {
    done(&json!({"data": value}))
}

fn done(body: &Value) -> Result<Response, HostError> {
    Ok(response(200, body))
}

fn missing() -> Response {
    response(404, &json!({"message": "not found"}))
}

fn response(status: u16, body: &Value) -> Response {
    Response {
        status,
        body: body.to_string(),
        next: None,
    }
}
