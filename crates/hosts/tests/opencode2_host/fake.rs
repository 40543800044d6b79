//! A small OpenCode 2 in memory, which behaves as the real one was measured to.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard},
};

use async_trait::async_trait;
use asyncagents_core::{
    id::SessionId,
    port::{Clock, HostError},
};
use asyncagents_hosts::{Connection, Method, Request, Response, Signal};
use asyncagents_testkit::clock::SetClock;
use serde_json::{Value, json, value::RawValue};
use tokio::{sync::mpsc, task::JoinHandle};

use crate::{build::Build, faults::Faults};

/// Clones are the same.
#[derive(Clone)]
pub(crate) struct FakeOpenCode {
    state: Arc<Mutex<State>>,
    pub(crate) build: Arc<Build>,
    pub(crate) clock: Arc<SetClock>,
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) sessions: BTreeMap<String, Session>,
    listeners: Vec<mpsc::UnboundedSender<Signal>>,
    /// Folders that it was asked about: their agents are loaded the next time.
    folders: HashSet<String>,
    requests: Vec<Request>,
    /// What was sent under each name, and where to.
    pub(crate) sent: HashMap<String, (String, Value)>,
    made: u64,
    pub(crate) faults: Faults,
    /// It answers nothing.
    pub(crate) is_down: bool,
}

#[derive(Default)]
pub(crate) struct Session {
    pub(crate) info: Value,
    /// Oldest first.
    pub(crate) messages: Vec<Value>,
    pub(crate) inbox: Vec<Value>,
    pub(crate) works: Option<JoinHandle<()>>,
    pub(crate) permissions: Vec<Value>,
    pub(crate) forms: Vec<Value>,
    pub(crate) settled_forms: HashSet<String>,
    /// What questions were answered with.
    pub(crate) replies: BTreeMap<String, Value>,
    pub(crate) instructions: BTreeMap<String, Value>,
    /// It is not gone on with.
    pub(crate) stays_idle: bool,
}

/// The status of an answer, with its body.
pub(crate) type Answer = (u16, Value);

#[async_trait]
impl Connection for FakeOpenCode {
    async fn send(&self, request: Request) -> Result<Response, HostError> {
        let lost = {
            let mut state = self.lock();
            if state.is_down {
                return Err(HostError::Unreachable("connection refused".to_owned()));
            }
            state.requests.push(request.clone());
            if state.faults.loses_request() {
                return Err(HostError::Unreachable("the request was lost".to_owned()));
            }
            state.faults.loses_answer()
        };
        let (status, body) = match self.generated(&request).await {
            Some(answer) => answer,
            None => self.answer(&request),
        };
        if lost {
            return Err(HostError::Unreachable("the answer was lost".to_owned()));
        }
        let body = match body {
            Value::Null => String::new(),
            body => body.to_string(),
        };
        let next = None;
        Ok(Response { status, body, next })
    }

    fn signals(&self) -> mpsc::UnboundedReceiver<Signal> {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.lock().listeners.push(sender);
        receiver
    }
}

impl FakeOpenCode {
    pub(crate) fn new(build: Build, clock: Arc<SetClock>) -> Self {
        Self {
            state: Arc::default(),
            build: Arc::new(build),
            clock,
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("not poisoned")
    }

    /// What it was asked.
    pub(crate) fn requests(&self) -> Vec<String> {
        let state = self.lock();
        let line = |request: &Request| format!("{} {}", request.method.as_str(), request.path);
        state.requests.iter().map(line).collect()
    }

    /// The bodies that were sent to paths with this end.
    pub(crate) fn sent_to(&self, end: &str) -> Vec<Value> {
        let state = self.lock();
        let to = state.requests.iter().filter(|it| it.path.ends_with(end));
        to.filter_map(|it| it.body.clone()).collect()
    }

    pub(crate) fn forget_requests(&self) {
        self.lock().requests.clear();
    }

    /// Somebody else posts something.
    pub(crate) async fn sends(&self, path: &str, body: Value) -> u16 {
        let sent = self.send(Request::post(path, body)).await;
        sent.expect("an answer").status
    }

    pub(crate) fn emit(&self, kind: &str, data: Value) {
        let event = json!({"id": "evt_1", "type": kind, "data": data}).to_string();
        let event = RawValue::from_string(event).expect("an event");
        self.signal(&Signal::Event(event));
    }

    pub(crate) fn loses_events(&self) {
        self.signal(&Signal::Missed);
    }

    fn signal(&self, signal: &Signal) {
        let mut state = self.lock();
        state
            .listeners
            .retain(|listener| listener.send(signal.clone()).is_ok());
    }

    /// Nobody listens any more.
    pub(crate) fn is_deaf(&self) {
        self.lock().listeners.clear();
    }

    /// A session of a person.
    pub(crate) fn parent(&self, folder: &str) -> SessionId {
        let id = self.next_id("ses");
        let model = json!({"providerID": "fake", "id": "fake-1", "variant": "default"});
        let location = json!({"directory": folder});
        let body = json!({"id": id, "title": "parent", "agent": "build", "model": model, "location": location});
        self.create(body);
        id.as_str().into()
    }

    pub(crate) fn next_id(&self, kind: &str) -> String {
        let mut state = self.lock();
        state.made += 1;
        format!("{kind}_1ea3{:08}", state.made)
    }

    pub(crate) fn now(&self) -> i64 {
        self.clock.now().as_millis()
    }

    /// Does something with a session; nothing if there is none.
    pub(crate) fn with<T>(&self, id: &str, what: impl FnOnce(&mut Session) -> T) -> Option<T> {
        self.lock().sessions.get_mut(id).map(what)
    }

    fn answer(&self, request: &Request) -> Answer {
        let body = request.body.clone().unwrap_or_default();
        let path: Vec<&str> = request.path.split('/').skip(1).collect();
        let experimental = ["api", "experimental", "session"];
        match (request.method, &path[..]) {
            (Method::Get, ["api", "health"]) if !self.build.has_info => {
                (200, json!({"healthy": true, "version": "2.0.0", "pid": 1}))
            }
            (Method::Get, ["api", "info"]) if self.build.has_info => {
                (200, json!({"version": "2.0.22", "pid": 1, "urls": []}))
            }
            (Method::Get, ["openapi.json"]) if self.build.is_described => (200, self.description()),
            (Method::Get, ["api", "agent"]) => self.agents(request),
            (Method::Get, ["api", "model"]) => (200, json!({"data": models()})),
            (Method::Get, ["api", "model", "default"]) => (200, json!({"data": models()[0]})),
            (Method::Post, ["api", "session"]) => self.create(body),
            (Method::Get, ["api", "session", "active"]) => self.active(),
            (Method::Post, ["api", "session", "import"]) if !self.build.is_experimental => {
                self.import(&body)
            }
            (Method::Post, ["api", "experimental", "session", "import"])
                if self.build.is_experimental =>
            {
                self.import(&body)
            }
            (Method::Put, [_, _, _, id, "instructions", "entries", key])
                if self.build.is_experimental && path.starts_with(&experimental) =>
            {
                self.instruct(id, key, &body)
            }
            (Method::Put, ["api", "session", id, "instructions", "entries", key])
                if !self.build.is_experimental =>
            {
                self.instruct(id, key, &body)
            }
            (method, ["api", "session", id, rest @ ..]) => {
                if !self.lock().sessions.contains_key(*id) {
                    return not_found("SessionNotFoundError");
                }
                self.of_session(method, id, rest, request)
            }
            _ => not_found("RouteNotFound"),
        }
    }

    fn of_session(&self, method: Method, id: &str, rest: &[&str], request: &Request) -> Answer {
        let body = request.body.clone().unwrap_or_default();
        let data = |data: Option<Value>| (200, json!({"data": data}));
        match (method, rest) {
            (Method::Get, []) => data(self.with(id, |it| it.info.clone())),
            (Method::Delete, []) => self.delete(id),
            (Method::Post, ["agent"]) => self.switch(id, "agent", &body["agent"]),
            (Method::Post, ["model"]) => self.switch(id, "model", &body["model"]),
            (Method::Post, ["prompt"]) => self.admit(id, "user", &body),
            (Method::Post, ["synthetic"]) => self.admit(id, "synthetic", &body),
            (Method::Post, ["interrupt"]) => {
                let interrupted = self.interrupt(id, "user");
                if self.build.answers_interrupt {
                    (200, json!({"interrupted": interrupted}))
                } else {
                    (204, Value::Null)
                }
            }
            (Method::Get, ["inbox"]) => data(self.with(id, |it| json!(it.inbox))),
            (Method::Get, ["message"]) => self.page(id, request),
            (Method::Get, ["message", message]) => {
                let found = self.with(id, |it| find(&it.messages, message)).flatten();
                found.map_or_else(|| not_found("MessageNotFoundError"), |it| data(Some(it)))
            }
            (Method::Get, ["permission"]) => data(self.with(id, |it| json!(it.permissions))),
            (Method::Get, ["form"]) => data(self.with(id, |it| json!(it.forms))),
            (Method::Post, ["permission", asked, "reply"]) => self.permit(id, asked, &body),
            (Method::Post, ["form", form, "reply"]) => self.fill(id, form, Some(&body["answer"])),
            (Method::Post, ["form", form, "cancel"]) if !self.build.deletes_forms => {
                self.fill(id, form, None)
            }
            (Method::Delete, ["form", form]) if self.build.deletes_forms => {
                self.fill(id, form, None)
            }
            _ => not_found("RouteNotFound"),
        }
    }

    fn description(&self) -> Value {
        let mut paths = vec!["/api/session/{sessionID}/prompt".to_owned()];
        let place = if self.build.is_experimental {
            "/api/experimental/session"
        } else {
            "/api/session"
        };
        paths.push(format!(
            "{place}/{{sessionID}}/instructions/entries/{{key}}"
        ));
        paths.push(format!("{place}/import"));
        if self.build.generates {
            paths.push("/api/generate".to_owned());
        }
        let mut paths: BTreeMap<String, Value> =
            paths.into_iter().map(|path| (path, json!({}))).collect();
        let mut properties = json!({"id": {"type": "string"}});
        if self.build.keeps_rules {
            properties["permissions"] = json!({"type": "array"});
        }
        let schema = json!({"schema": {"properties": properties}});
        let body = json!({"content": {"application/json": schema}});
        paths.insert(
            "/api/session".to_owned(),
            json!({"post": {"requestBody": body}}),
        );
        json!({"openapi": "3.1.0", "paths": paths})
    }

    /// The agents of a folder; none the first time.
    fn agents(&self, request: &Request) -> Answer {
        let mut query = request.query.iter();
        let folder = query.find(|(key, _)| *key == "location[directory]");
        let folder = folder.map_or_else(String::new, |(_, folder)| folder.clone());
        let is_new = self.lock().folders.insert(folder);
        let agents = if is_new { Vec::new() } else { agents() };
        (200, json!({"data": agents}))
    }

    pub(crate) fn create(&self, body: Value) -> Answer {
        let id = match body["id"].as_str() {
            Some(id) => id.to_owned(),
            None => self.next_id("ses"),
        };
        if let Some(there) = self.with(&id, |it| it.info.clone()) {
            return (200, json!({"data": there}));
        }
        let now = self.now();
        let mut info = json!({
            "id": id,
            "projectID": "global",
            "title": body["title"],
            "time": {"created": now, "updated": now},
            "location": body["location"],
        });
        let mut kept = vec!["agent", "model"];
        if self.build.keeps_rules {
            kept.extend(["metadata", "permissions"]);
        }
        if self.build.keeps_parent {
            kept.push("parentID");
        }
        for key in kept {
            if !body[key].is_null() {
                info[key] = body[key].clone();
            }
        }
        let session = Session {
            info: info.clone(),
            ..Session::default()
        };
        self.lock().sessions.insert(id, session);
        (200, json!({"data": info}))
    }

    fn delete(&self, id: &str) -> Answer {
        let mut state = self.lock();
        let removed = state.sessions.remove(id);
        // Its names can be used again.
        state.sent.retain(|_, (there, _)| there != id);
        drop(state);
        if let Some(works) = removed.and_then(|it| it.works) {
            works.abort();
        }
        self.emit("session.deleted", json!({"sessionID": id}));
        (204, Value::Null)
    }

    fn active(&self) -> Answer {
        let state = self.lock();
        let at_work = state.sessions.iter().filter(|(_, it)| it.works.is_some());
        let running = at_work.map(|(id, _)| (id.clone(), json!({"type": "running"})));
        let running: BTreeMap<String, Value> = running.collect();
        (200, json!({"data": running}))
    }

    fn switch(&self, id: &str, what: &str, to: &Value) -> Answer {
        let message = self.next_id("msg");
        self.with(id, |it| {
            it.info[what] = to.clone();
            it.messages
                .push(json!({"id": message, "type": format!("{what}-switched"), what: to}));
        });
        (204, Value::Null)
    }

    fn instruct(&self, id: &str, key: &str, body: &Value) -> Answer {
        if body["value"].to_string().len() > 8_192 {
            return (413, json!({"_tag": "InstructionEntryValueTooLargeError"}));
        }
        self.with(id, |it| {
            it.instructions
                .insert(key.to_owned(), body["value"].clone())
        });
        (204, Value::Null)
    }

    /// Puts something into the inbox, once, and sets the session to work.
    fn admit(&self, id: &str, kind: &str, body: &Value) -> Answer {
        let message = body["id"].as_str().unwrap_or_default().to_owned();
        let item = self.item(id, kind, body, &message);
        match self.known(&message) {
            Some((there, payload)) if there != id || payload != item["payload"] => {
                let text =
                    format!("Prompt message ID conflicts with an existing record: {message}");
                return (409, json!({"_tag": "ConflictError", "message": text}));
            }
            Some(_) => {}
            None => {
                let sent = (id.to_owned(), item["payload"].clone());
                self.lock().sent.insert(message.clone(), sent);
                self.with(id, |it| it.inbox.push(item.clone()));
                let about = json!({"inboxID": message, "sessionID": id, "item": item});
                self.emit("session.inbox.enqueued", about);
            }
        }
        if body["resume"] != json!(false) {
            self.start(id);
        }
        (200, json!({"data": item}))
    }

    fn item(&self, id: &str, kind: &str, body: &Value, message: &str) -> Value {
        let mut payload = json!({});
        for key in ["text", "description", "metadata"] {
            if !body[key].is_null() {
                payload[key] = body[key].clone();
            }
        }
        let mut item = json!({
            "id": message, "sessionID": id, "type": kind, "payload": payload, "delivery": "steer",
        });
        if self.build.nests_time {
            item["time"] = json!({"created": self.now()})
        } else {
            item["timeCreated"] = json!(self.now())
        }
        item
    }

    /// Where a message of this name is, with what was sent.
    fn known(&self, message: &str) -> Option<(String, Value)> {
        self.lock().sent.get(message).cloned()
    }

    fn page(&self, id: &str, request: &Request) -> Answer {
        let value = |key: &str| {
            let mut query = request.query.iter();
            query
                .find(|(it, _)| *it == key)
                .map(|(_, value)| value.clone())
        };
        let limit: usize = value("limit").and_then(|it| it.parse().ok()).unwrap_or(50);
        if limit > 200 {
            return (
                400,
                json!({"_tag": "InvalidRequestError", "message": "limit"}),
            );
        }
        let all = self.with(id, |it| it.messages.clone()).unwrap_or_default();
        let newest_first = || all.iter().rev();
        let skipped = value("cursor").map_or(0, |cursor| {
            let at = newest_first().position(|it| it["id"] == json!(cursor));
            at.map_or(usize::MAX, |at| at + 1)
        });
        let page: Vec<&Value> = newest_first().skip(skipped).take(limit).collect();
        let next = page.last().map(|it| it["id"].clone());
        let cursor = json!({"next": next, "previous": page.first().map(|it| it["id"].clone())});
        (200, json!({"data": page, "cursor": cursor}))
    }
}

pub(crate) fn not_found(tag: &str) -> Answer {
    (404, json!({"_tag": tag, "message": "not found"}))
}

pub(crate) fn find(among: &[Value], id: &str) -> Option<Value> {
    among
        .iter()
        .find(|it| it["id"].as_str() == Some(id))
        .cloned()
}

fn agents() -> Vec<Value> {
    let rules = json!([
        {"action": "*", "resource": "*", "effect": "allow"},
        {"action": "shell", "resource": "*", "effect": "ask"},
    ]);
    vec![
        json!({"id": "build", "mode": "primary", "hidden": false, "permissions": rules, "description": "works"}),
        json!({"id": "general", "mode": "subagent", "hidden": false, "permissions": rules, "description": "does all"}),
        json!({"id": "explore", "mode": "subagent", "hidden": false, "permissions": rules,
            "model": {"providerID": "fake", "id": "fake-2"}}),
        json!({"id": "title", "mode": "primary", "hidden": true, "permissions": rules}),
    ]
}

pub(crate) fn models() -> Vec<Value> {
    vec![
        json!({"id": "fake-1", "providerID": "fake", "variants": [{"id": "high"}]}),
        json!({"id": "fake-2", "providerID": "fake", "variants": []}),
    ]
}
