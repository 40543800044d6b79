//! A small OpenCode in memory. It does what was measured of 1.18.33 and read in its source,
//! remembers every request, and has accidents on demand.

use std::{
    collections::{BTreeMap, HashMap},
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
use tokio::sync::mpsc;

use crate::message::{agent_with, text, user_of};

/// An OpenCode that can be looked at.
#[derive(Clone)]
pub(crate) struct FakeOpenCode {
    inside: Arc<Mutex<Inside>>,
}

struct Inside {
    clock: Arc<SetClock>,
    version: String,
    agents: Value,
    /// Oldest first.
    sessions: Vec<Value>,
    messages: HashMap<String, Vec<Value>>,
    statuses: BTreeMap<String, Value>,
    requests: Vec<Request>,
    /// How many messages were read in all.
    served: usize,
    /// As many messages as get through at once.
    widest: usize,
    /// The page that comes again and again, always with one more behind it.
    endless: Option<String>,
    /// What was asked and not answered.
    questions: Vec<Value>,
    /// What was answered, by the question.
    replies: HashMap<String, Value>,
    accidents: Vec<Accident>,
    listeners: Vec<mpsc::UnboundedSender<Signal>>,
    named: u64,
}

/// What the next request of a kind gets instead of an answer.
struct Accident {
    method: Method,
    path_ends: String,
    /// Whether it is done all the same.
    done: bool,
    instead: Result<Response, HostError>,
}

#[async_trait]
impl Connection for FakeOpenCode {
    async fn send(&self, request: Request) -> Result<Response, HostError> {
        let mut inside = self.lock();
        inside.requests.push(request.clone());
        let is_it = |accident: &Accident| {
            accident.method == request.method && request.path.ends_with(&accident.path_ends)
        };
        if let Some(at) = inside.accidents.iter().position(is_it) {
            let accident = inside.accidents.remove(at);
            if accident.done {
                inside.answer(&request);
            }
            return accident.instead;
        }
        Ok(inside.answer(&request))
    }

    fn signals(&self) -> mpsc::UnboundedReceiver<Signal> {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.lock().listeners.push(sender);
        receiver
    }
}

/// What a test does to it, and asks of it.
impl FakeOpenCode {
    pub(crate) fn new(clock: Arc<SetClock>) -> Self {
        let agents = json!([
            {"name": "build", "mode": "primary", "description": "The default agent."},
            {"name": "plan", "mode": "primary"},
            {"name": "general", "mode": "subagent", "description": "For anything."},
            {"name": "explore", "mode": "subagent",
                "model": {"providerID": "fake", "modelID": "small-1"}},
            {"name": "title", "mode": "primary", "hidden": true},
        ]);
        let inside = Inside {
            clock,
            version: "1.18.33".to_owned(),
            agents,
            sessions: Vec::new(),
            messages: HashMap::new(),
            statuses: BTreeMap::new(),
            requests: Vec::new(),
            served: 0,
            widest: usize::MAX,
            endless: None,
            questions: Vec::new(),
            replies: HashMap::new(),
            accidents: Vec::new(),
            listeners: Vec::new(),
            named: 0,
        };
        Self {
            inside: Arc::new(Mutex::new(inside)),
        }
    }

    pub(crate) fn is_version(&self, version: &str) {
        version.clone_into(&mut self.lock().version);
    }

    /// A session that somebody has worked in.
    pub(crate) fn parent(&self) -> SessionId {
        self.session(json!({
            "title": "parent", "agent": "build",
            "model": {"id": "fake-1", "providerID": "fake", "variant": "default"},
        }))
    }

    pub(crate) fn session(&self, fields: Value) -> SessionId {
        let mut inside = self.lock();
        let session = inside.new_session(&fields);
        session_id(&session)
    }

    /// Adds a message at the end; its name.
    pub(crate) fn add(&self, session: &SessionId, message: Value) -> String {
        self.lock().add(session.as_str(), message)
    }

    /// Compacts what there is; the names of the request and the summary.
    pub(crate) fn compact(
        &self,
        session: &SessionId,
        tail: Option<&str>,
        summary: &str,
    ) -> [String; 2] {
        self.summarize(session, tail, summary, json!({}))
    }

    /// The same, with something else about the summary.
    pub(crate) fn summarize(
        &self,
        session: &SessionId,
        tail: Option<&str>,
        summary: &str,
        mut more: Value,
    ) -> [String; 2] {
        let mut part = json!({"type": "compaction", "auto": true});
        if let Some(tail) = tail {
            part["tail_start_id"] = json!(tail);
        }
        let request = self.add(session, user_of(vec![part]));
        more["summary"] = json!(true);
        more["parentID"] = json!(request);
        let summary = self.add(session, agent_with(more, vec![text(summary)]));
        [request, summary]
    }

    pub(crate) fn is_busy(&self, session: &SessionId) {
        let busy = json!({"type": "busy"});
        self.lock().statuses.insert(session.to_string(), busy);
    }

    pub(crate) fn has_status(&self, session: &SessionId, status: Value) {
        self.lock().statuses.insert(session.to_string(), status);
    }

    pub(crate) fn is_idle(&self, session: &SessionId) {
        self.lock().statuses.remove(session.as_str());
    }

    pub(crate) fn works(&self, session: &SessionId) -> bool {
        self.lock().statuses.contains_key(session.as_str())
    }

    /// Changes a message.
    pub(crate) fn change_message(
        &self,
        session: &SessionId,
        message: &str,
        how: impl FnOnce(&mut Value),
    ) {
        let mut inside = self.lock();
        let messages = inside.messages.get_mut(session.as_str());
        let mut messages = messages.expect("a session").iter_mut();
        let found = messages.find(|there| there["info"]["id"] == message);
        how(found.expect("a message"));
    }

    /// A user removes a message.
    pub(crate) fn remove_message(&self, session: &SessionId, message: &str) {
        let mut inside = self.lock();
        let messages = inside.messages.get_mut(session.as_str());
        let messages = messages.expect("a session");
        messages.retain(|there| there["info"]["id"] != message);
    }

    /// A user removes a session.
    pub(crate) fn remove(&self, session: &SessionId) {
        self.lock().remove(session.as_str());
    }

    /// The next request of this kind gets a status instead of an answer.
    pub(crate) fn fails(&self, method: Method, path_ends: &str, status: u16, body: &str) {
        let response = Response {
            status,
            body: body.to_owned(),
            next: None,
        };
        self.instead(method, path_ends, false, Ok(response));
    }

    /// The next request of this kind does not arrive.
    pub(crate) fn is_silent(&self, method: Method, path_ends: &str) {
        self.instead(method, path_ends, false, Err(silence()));
    }

    /// The next request of this kind arrives, and its answer does not.
    pub(crate) fn loses_answer(&self, method: Method, path_ends: &str) {
        self.instead(method, path_ends, true, Err(silence()));
    }

    fn instead(
        &self,
        method: Method,
        path_ends: &str,
        done: bool,
        instead: Result<Response, HostError>,
    ) {
        self.lock().accidents.push(Accident {
            method,
            path_ends: path_ends.to_owned(),
            done,
            instead,
        });
    }

    pub(crate) fn emit(&self, event: &str) {
        let event = RawValue::from_string(event.to_owned()).expect("JSON");
        self.tell(&Signal::Event(event));
    }

    /// Events are lost.
    pub(crate) fn loses_events(&self) {
        self.tell(&Signal::Missed);
    }

    /// The connection ends.
    pub(crate) fn hangs_up(&self) {
        self.lock().listeners.clear();
    }

    fn tell(&self, signal: &Signal) {
        let listeners = &mut self.lock().listeners;
        listeners.retain(|listener| listener.send(signal.clone()).is_ok());
    }

    /// Forgets what it was asked.
    pub(crate) fn forget_requests(&self) {
        let mut inside = self.lock();
        inside.requests.clear();
        inside.served = 0;
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.lock().requests.clone()
    }

    /// What it was asked, as one would type it.
    pub(crate) fn asked(&self) -> Vec<String> {
        let requests = self.requests().into_iter();
        let asked = requests.map(|request| format!("{} {}", request.method.as_str(), request.path));
        asked.collect()
    }

    /// How often it was told to change something.
    pub(crate) fn changes(&self) -> usize {
        let requests = self.requests().into_iter();
        let changes = requests.filter(|request| request.method != Method::Get);
        changes.count()
    }

    /// What was sent with requests of a kind.
    pub(crate) fn sent(&self, method: Method, path_ends: &str) -> Vec<Value> {
        let requests = self.requests().into_iter();
        let of_kind = requests
            .filter(|request| request.method == method && request.path.ends_with(path_ends));
        of_kind.filter_map(|request| request.body).collect()
    }

    /// What was sent with the only request of a kind.
    pub(crate) fn sent_once(&self, method: Method, path_ends: &str) -> Value {
        let mut sent = self.sent(method, path_ends);
        assert_eq!(sent.len(), 1, "{} …{path_ends}", method.as_str());
        sent.remove(0)
    }

    /// A session asks its user something.
    pub(crate) fn asks(&self, question: Value) {
        self.lock().questions.push(question);
    }

    /// What a question was answered with, the first time that this is asked.
    pub(crate) fn replied(&self, question: &str) -> Option<Value> {
        self.lock().replies.remove(question)
    }

    /// Nobody waits any more for what a session has asked.
    pub(crate) fn asks_no_more(&self, session: &SessionId) {
        let questions = &mut self.lock().questions;
        questions.retain(|question| question["sessionID"] != session.as_str());
    }

    /// From now on more messages than these do not get through at once.
    pub(crate) fn narrow(&self, widest: usize) {
        self.lock().widest = widest;
    }

    /// From now on every page has these messages, and there is always one more.
    pub(crate) fn never_ends(&self, page: &Value) {
        self.lock().endless = Some(page.to_string());
    }

    /// How many messages were read.
    pub(crate) fn served(&self) -> usize {
        self.lock().served
    }

    pub(crate) fn look_at(&self, session: &SessionId) -> Value {
        let inside = self.lock();
        inside.find(session.as_str()).expect("a session").clone()
    }

    pub(crate) fn number_of_sessions(&self) -> usize {
        self.lock().sessions.len()
    }

    pub(crate) fn messages_of(&self, session: &SessionId) -> Vec<Value> {
        self.lock().messages[session.as_str()].clone()
    }

    /// What the session's model is shown: all since the last complete compaction, and the
    /// tail that is kept beside it. A tail whose beginning is not found has no beginning.
    pub(crate) fn model_sees(&self, session: &SessionId) -> Vec<Value> {
        let mut shown = Vec::new();
        let mut answered = Vec::new();
        let mut tail: Option<Value> = None;
        for message in self.messages_of(session).into_iter().rev() {
            let info = message["info"].clone();
            let parts = message["parts"].as_array().expect("parts");
            let compaction = parts.iter().find(|part| part["type"] == "compaction");
            let start = compaction.map(|part| part["tail_start_id"].clone());
            shown.push(message);
            if let Some(start) = &tail {
                if info["id"] == *start {
                    break;
                }
                continue;
            }
            let complete = info["finish"].is_string() && info["error"].is_null();
            match start {
                Some(Value::Null) if answered.contains(&info["id"]) => break,
                Some(start) if answered.contains(&info["id"]) => tail = Some(start),
                _ if info["summary"] == true && complete => {
                    answered.push(info["parentID"].clone());
                }
                _ => {}
            }
        }
        shown.reverse();
        shown
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().expect("nobody panics in here")
    }
}

/// What it does by itself.
impl Inside {
    fn answer(&mut self, request: &Request) -> Response {
        let path: Vec<&str> = request.path.split('/').skip(1).collect();
        let body = request.body.clone().unwrap_or_default();
        match (request.method, path.as_slice()) {
            (Method::Get, ["global", "health"]) => {
                ok(&json!({"healthy": true, "version": self.version}))
            }
            (Method::Get, ["agent"]) => ok(&self.agents),
            (Method::Get, ["config"]) => ok(&json!({"model": "fake/large-1"})),
            (Method::Get, ["config", "providers"]) => {
                let effort = |word| json!({"reasoningEffort": word});
                let all = json!({"low": effort("low"), "medium": effort("medium"),
                    "high": effort("high"), "xhigh": effort("xhigh")});
                ok(&json!({"default": {"fake": "fake-1"}, "providers": [{
                    "id": "fake", "name": "Fake", "source": "config",
                    "options": {"apiKey": "secret"},
                    "models": {
                        "fake-1": {"id": "fake-1", "variants": {}},
                        "large-1": {"id": "large-1", "variants": all},
                        "small-1": {"id": "small-1", "variants": {"low": {}}},
                    },
                }]}))
            }
            (Method::Get, ["permission"]) => {
                let mut open = self.questions.clone();
                open.retain(|question| question["permission"].is_string());
                ok(&json!(open))
            }
            (Method::Get, ["question"]) => {
                let mut open = self.questions.clone();
                open.retain(|question| question["questions"].is_array());
                ok(&json!(open))
            }
            (Method::Post, ["permission" | "question", id, "reply" | "reject"]) => {
                let before = self.questions.len();
                self.questions.retain(|question| question["id"] != *id);
                if self.questions.len() == before {
                    problem(404, "NotFoundError", &format!("not found: {id}"))
                } else {
                    self.replies.insert((*id).to_owned(), body);
                    ok(&json!(true))
                }
            }
            (Method::Post, ["tui", "show-toast"]) => ok(&json!(true)),
            (Method::Get, ["session"]) => {
                let limit = number(request, "limit").expect("a limit");
                let newest = self.sessions.iter().rev().take(limit);
                ok(&newest.cloned().collect())
            }
            (Method::Post, ["session"]) => ok(&self.new_session(&body)),
            (Method::Get, ["session", "status"]) => ok(&json!(self.statuses)),
            (_, ["session", id, ..]) if !id.starts_with("ses") => {
                problem(500, "UnknownError", "Unexpected server error.")
            }
            (Method::Post, ["session", id, "abort"]) => {
                self.statuses.remove(*id);
                ok(&json!(true))
            }
            (_, ["session", id, ..]) if self.find(id).is_none() => {
                problem(404, "NotFoundError", &format!("Session not found: {id}"))
            }
            (method, ["session", id, rest @ ..]) => {
                self.answer_about(id, method, rest, request, &body)
            }
            _ => panic!(
                "OpenCode has no {} {}",
                request.method.as_str(),
                request.path
            ),
        }
    }

    fn answer_about(
        &mut self,
        id: &str,
        method: Method,
        rest: &[&str],
        request: &Request,
        body: &Value,
    ) -> Response {
        match (method, rest) {
            (Method::Get, []) => ok(self.find(id).expect("it is there")),
            (Method::Get, ["children"]) => {
                let children = self.sessions.iter();
                let children = children.filter(|session| session["parentID"] == id);
                ok(&children.cloned().collect())
            }
            (Method::Patch, []) => {
                self.change(id, body);
                ok(self.find(id).expect("it is there"))
            }
            (Method::Delete, []) => {
                self.remove(id);
                ok(&json!(true))
            }
            (Method::Post, ["fork"]) => ok(&self.fork(id, &body["messageID"])),
            (Method::Get, ["message"]) => self.page(id, request),
            (Method::Post, ["message"]) => {
                assert_eq!(body["noReply"], true, "whoever waits for an answer blocks");
                ok(&self.take(id, body))
            }
            (Method::Post, ["prompt_async"]) => {
                assert_eq!(body["noReply"], Value::Null, "nobody would answer");
                self.take(id, body);
                Response {
                    status: 204,
                    body: String::new(),
                    next: None,
                }
            }
            (Method::Delete, ["message", message]) => {
                if self.statuses.contains_key(id) {
                    return problem(409, "SessionBusyError", "Session is busy");
                }
                let messages = self.messages.get_mut(id).expect("its messages");
                messages.retain(|there| there["info"]["id"] != *message);
                ok(&json!(true))
            }
            (Method::Patch, ["message", message, "part", part]) => {
                for (key, own) in [("id", *part), ("messageID", *message), ("sessionID", id)] {
                    assert_eq!(body[key], own, "a part says where it is");
                }
                *self.part(id, message, part) = body.clone();
                ok(body)
            }
            _ => panic!("OpenCode has no {} {}", method.as_str(), request.path),
        }
    }

    fn new_session(&mut self, fields: &Value) -> Value {
        let id = self.name("ses");
        let now = self.clock.now().as_millis();
        let mut session = json!({
            "id": id, "slug": "stellar-sailor", "directory": "/home/user/project",
            "projectID": "0543f2ad75ed3f8c63115480337fef0ca99c25ad", "path": "",
            "version": self.version, "title": "New session", "cost": 0,
            "time": {"created": now, "updated": now},
        });
        for key in [
            "parentID",
            "title",
            "agent",
            "model",
            "metadata",
            "permission",
        ] {
            if let Some(value) = fields.get(key) {
                session[key] = value.clone();
            }
        }
        self.messages.insert(id, Vec::new());
        self.sessions.push(session.clone());
        session
    }

    fn change(&mut self, id: &str, body: &Value) {
        let session = self.find_mut(id);
        for key in ["title", "metadata"] {
            if let Some(value) = body.get(key) {
                session[key] = value.clone();
            }
        }
        // Rules are added to those there are.
        let rules = body["permission"].as_array().into_iter().flatten();
        let mut all = session["permission"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        all.extend(rules.cloned());
        session["permission"] = json!(all);
    }

    fn remove(&mut self, id: &str) {
        let children = self.sessions.iter();
        let children = children.filter(|session| session["parentID"] == id);
        let children: Vec<SessionId> = children.map(session_id).collect();
        for child in children {
            self.remove(child.as_str());
        }
        self.sessions.retain(|session| session["id"] != id);
        self.messages.remove(id);
        self.statuses.remove(id);
    }

    /// A copy of all before a message, whether that is there or not, under other names. Of the
    /// session itself only the title is copied.
    fn fork(&mut self, id: &str, before: &Value) -> Value {
        let title = &self.find(id).expect("it is there")["title"];
        let title = format!("{} (fork #1)", title.as_str().unwrap_or_default());
        let copy = self.new_session(&json!({"title": title}));
        let copy_id = session_id(&copy).to_string();
        let mut names: HashMap<Value, String> = HashMap::new();
        for mut message in self.messages[id].clone() {
            if let Some(before) = before.as_str()
                && message["info"]["id"].as_str() >= Some(before)
            {
                break;
            }
            let original = message["info"]["id"].take();
            if let Some(parent) = names.get(&message["info"]["parentID"]) {
                message["info"]["parentID"] = json!(parent);
            }
            for part in message["parts"].as_array_mut().expect("parts") {
                part["id"].take();
                let start = part["tail_start_id"].take();
                if !start.is_null() {
                    part["tail_start_id"] = json!(names.get(&start));
                }
                let fields = part.as_object_mut().expect("an object");
                fields.retain(|_, value| !value.is_null());
            }
            let name = self.add(&copy_id, message);
            names.insert(original, name);
        }
        copy
    }

    /// The newest messages, or the newest before a page.
    fn page(&mut self, id: &str, request: &Request) -> Response {
        if let Some(page) = &self.endless {
            let read = self.requests.len() * page.len().max(4 * 1024);
            assert!(read < 512 * 1024 * 1024, "it is read for ever");
            return Response {
                status: 200,
                body: page.clone(),
                next: Some(format!("before {}", self.requests.len())),
            };
        }
        let all = &self.messages[id];
        let limit = number(request, "limit").expect("never all at once");
        let before = request.query.iter().find(|(key, _)| *key == "before");
        let end = before.map_or(all.len(), |(_, cursor)| {
            let oldest = cursor.strip_prefix("before ").expect("one of our cursors");
            all.partition_point(|message| message["info"]["id"].as_str() < Some(oldest))
        });
        let start = end.saturating_sub(limit);
        let page = &all[start..end];
        if page.len() > self.widest {
            return problem(413, "TooLong", "this is too long to be passed on");
        }
        let next = page.first().filter(|_| start > 0).map(|oldest| {
            let oldest = oldest["info"]["id"].as_str().expect("an ID");
            format!("before {oldest}")
        });
        self.served += page.len();
        Response {
            next,
            ..ok(&json!(page))
        }
    }

    /// Takes a message in. Who does not say the agent gets the default one; a session has the
    /// agent and the model of its last message.
    fn take(&mut self, id: &str, body: &Value) -> Value {
        let agent = body["agent"].as_str().unwrap_or("build").to_owned();
        let mut agents = self.agents.as_array().expect("agents").iter();
        let of_agent = agents.find(|known| known["name"] == *agent);
        let of_agent = of_agent.map(|known| known["model"].clone());
        let last = &self.find(id).expect("it is there")["model"];
        let last = json!({"providerID": last["providerID"], "modelID": last["id"]});
        let model = [body["model"].clone(), of_agent.unwrap_or_default(), last];
        let model = model.into_iter().find(|model| model["modelID"].is_string());
        let model = model.unwrap_or(json!({"providerID": "fake", "modelID": "default-1"}));
        let variant = body["variant"].as_str().unwrap_or("default").to_owned();
        let session = self.find_mut(id);
        session["agent"] = json!(agent);
        session["model"] = json!({
            "providerID": model["providerID"], "id": model["modelID"], "variant": variant,
        });
        let message = json!({
            "info": {"role": "user", "agent": agent, "model": model},
            "parts": body["parts"],
        });
        let name = self.add(id, message);
        let message = self.messages[id].last().expect("it was added");
        assert_eq!(message["info"]["id"], *name);
        message.clone()
    }

    fn add(&mut self, session: &str, mut message: Value) -> String {
        let name = self.name("msg");
        let now = self.clock.now().as_millis();
        let info = &mut message["info"];
        info["id"] = json!(name);
        info["sessionID"] = json!(session);
        if info["time"]["created"].is_null() {
            info["time"]["created"] = json!(now);
        }
        for part in message["parts"].as_array_mut().expect("parts") {
            part["id"] = json!(self.name("prt"));
            part["sessionID"] = json!(session);
            part["messageID"] = json!(name);
        }
        let messages = self.messages.get_mut(session);
        messages.expect("a session").push(message);
        name
    }

    fn part(&mut self, session: &str, message: &str, part: &str) -> &mut Value {
        let messages = self.messages.get_mut(session).expect("its messages");
        let message = messages.iter_mut().find(|it| it["info"]["id"] == message);
        let parts = message.expect("the message")["parts"].as_array_mut();
        let mut parts = parts.expect("parts").iter_mut();
        parts.find(|it| it["id"] == part).expect("the part")
    }

    fn find(&self, id: &str) -> Option<&Value> {
        self.sessions.iter().find(|session| session["id"] == id)
    }

    fn find_mut(&mut self, id: &str) -> &mut Value {
        let mut sessions = self.sessions.iter_mut();
        let session = sessions.find(|session| session["id"] == id);
        session.expect("it is there")
    }

    /// Names are in the order of their making.
    fn name(&mut self, kind: &str) -> String {
        self.named += 1;
        format!("{kind}_{:012x}", self.named)
    }
}

fn ok(body: &Value) -> Response {
    Response {
        status: 200,
        body: body.to_string(),
        next: None,
    }
}

fn problem(status: u16, name: &str, message: &str) -> Response {
    Response {
        status,
        ..ok(&json!({"name": name, "data": {"message": message}}))
    }
}

fn silence() -> HostError {
    HostError::Unreachable("nobody answers".to_owned())
}

fn number(request: &Request, key: &str) -> Option<usize> {
    let (_, value) = request.query.iter().find(|(known, _)| *known == key)?;
    value.parse().ok()
}

fn session_id(session: &Value) -> SessionId {
    session["id"].as_str().expect("an ID").into()
}
