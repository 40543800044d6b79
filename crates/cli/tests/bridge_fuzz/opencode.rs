//! A small OpenCode for the other end of the bridge: it answers requests as they are meant to be
//! answered, and its sessions work when they are told to.

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Value, json};

/// An OpenCode that outlives its bridges.
pub(crate) struct OpenCode {
    folder: String,
    /// Oldest first, with their messages.
    sessions: Vec<(Value, Vec<Value>)>,
    /// Those that were told something and have not answered it.
    working: VecDeque<String>,
    /// What has happened and was not told.
    events: Vec<Value>,
    named: u64,
}

impl OpenCode {
    pub(crate) fn new(folder: &str) -> Self {
        Self {
            folder: folder.to_owned(),
            sessions: Vec::new(),
            working: VecDeque::new(),
            events: Vec::new(),
            named: 0,
        }
    }

    /// A session that a person works in.
    pub(crate) fn parent(&mut self) -> String {
        let session = self.make(&json!({"title": "parent", "agent": "build"}));
        let id = session["id"].as_str().unwrap_or_default().to_owned();
        self.add(
            &id,
            "user",
            json!([{"type": "text", "text": "Look around."}]),
            json!({}),
        );
        id
    }

    pub(crate) fn sessions(&self) -> Vec<String> {
        let ids = self.sessions.iter().map(|(session, _)| &session["id"]);
        ids.filter_map(Value::as_str).map(str::to_owned).collect()
    }

    /// Answers a request of the bridge.
    pub(crate) fn answer(&mut self, asked: &Value) -> Value {
        let path = asked["path"].as_str().unwrap_or_default().to_owned();
        let path: Vec<&str> = path.split('/').skip(1).collect();
        let body = &asked["body"];
        match (asked["method"].as_str().unwrap_or_default(), &path[..]) {
            ("GET", ["global", "health"]) => ok(&json!({"healthy": true, "version": "1.18.33"})),
            ("GET", ["agent"]) => ok(&json!([
                {"name": "build", "mode": "primary", "description": "The default agent."},
                {"name": "general", "mode": "subagent", "description": "For anything."},
            ])),
            ("GET", ["permission" | "question"]) => ok(&json!([])),
            ("POST", ["tui", "show-toast"]) => ok(&json!(true)),
            ("GET", ["session"]) => {
                let newest = self.sessions.iter().rev().take(limit(asked));
                ok(&newest.map(|(session, _)| session.clone()).collect())
            }
            ("POST", ["session"]) => ok(&self.make(body)),
            ("GET", ["session", "status"]) => {
                let busy = self.working.iter().map(|id| (id, json!({"type": "busy"})));
                ok(&json!(busy.collect::<BTreeMap<_, _>>()))
            }
            (method, ["session", id, rest @ ..]) => match self.find(id) {
                Some(at) => self.answer_about(at, id, method, rest, asked),
                None => problem(404, &format!("Session not found: {id}")),
            },
            _ => problem(404, "there is nothing here"),
        }
    }

    fn answer_about(
        &mut self,
        at: usize,
        id: &str,
        method: &str,
        rest: &[&str],
        asked: &Value,
    ) -> Value {
        let body = &asked["body"];
        match (method, rest) {
            ("GET", []) => ok(&self.sessions[at].0),
            ("PATCH", []) => ok(&self.sessions[at].0),
            ("GET", ["children"]) => {
                let all = self.sessions.iter().map(|(session, _)| session);
                ok(&all
                    .filter(|child| child["parentID"] == id)
                    .cloned()
                    .collect())
            }
            ("POST", ["abort"]) => {
                self.working.retain(|working| working != id);
                self.happens("session.idle", json!({"sessionID": id}));
                ok(&json!(true))
            }
            ("GET", ["message"]) => self.page(at, asked),
            ("POST", ["message"]) => {
                self.add(id, "user", body["parts"].clone(), json!({}));
                ok(self.sessions[at].1.last().unwrap_or(&Value::Null))
            }
            ("POST", ["prompt_async"]) => {
                self.add(id, "user", body["parts"].clone(), json!({}));
                self.working.push_back(id.to_owned());
                let busy = json!({"sessionID": id, "status": {"type": "busy"}});
                self.happens("session.status", busy);
                json!({"status": 204, "body": "", "next": null})
            }
            _ => problem(404, "there is nothing here"),
        }
    }

    /// The session that has worked the longest comes to its end; nothing if none works.
    pub(crate) fn work(&mut self) {
        let Some(id) = self.working.pop_front() else {
            return;
        };
        let parts = json!([
            {"type": "text", "text": "Done."},
            {"type": "step-finish", "cost": 0.01, "tokens": {"input": 10, "output": 5}},
        ]);
        let tokens = json!({"input": 10, "output": 5});
        let more = json!({"finish": "stop", "cost": 0.01, "tokens": tokens});
        let message = self.add(&id, "assistant", parts, more);
        for part in message["parts"].as_array().into_iter().flatten() {
            let updated = json!({"sessionID": id, "part": part});
            self.happens("message.part.updated", updated);
        }
        self.happens("session.idle", json!({"sessionID": id}));
    }

    /// What has happened since it was last asked.
    pub(crate) fn events(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.events)
    }

    fn happens(&mut self, kind: &str, properties: Value) {
        self.events
            .push(json!({"type": kind, "properties": properties}));
    }

    fn find(&self, id: &str) -> Option<usize> {
        let mut all = self.sessions.iter();
        all.position(|(session, _)| session["id"] == id)
    }

    fn make(&mut self, fields: &Value) -> Value {
        let id = self.name("ses");
        let mut session = json!({
            "id": id, "directory": self.folder, "title": "New", "time": {"created": now()},
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
        self.sessions.push((session.clone(), Vec::new()));
        session
    }

    fn add(&mut self, session: &str, role: &str, mut parts: Value, more: Value) -> Value {
        let id = self.name("msg");
        for part in parts.as_array_mut().into_iter().flatten() {
            part["id"] = json!(self.name("prt"));
            part["sessionID"] = json!(session);
            part["messageID"] = json!(id);
        }
        let mut info = json!({
            "id": id, "sessionID": session, "role": role, "agent": "general",
            "time": {"created": now()},
        });
        for (key, value) in more.as_object().into_iter().flatten() {
            info[key] = value.clone();
        }
        let message = json!({"info": info, "parts": parts});
        if let Some(at) = self.find(session) {
            self.sessions[at].1.push(message.clone());
        }
        message
    }

    /// The newest messages, or those before one.
    fn page(&self, at: usize, asked: &Value) -> Value {
        let all = &self.sessions[at].1;
        let before = asked["query"]["before"].as_str();
        let end = before.map_or(all.len(), |before| {
            all.partition_point(|message| message["info"]["id"].as_str() < Some(before))
        });
        let start = end.saturating_sub(limit(asked));
        let page = &all[start..end];
        let oldest = page.first().filter(|_| start > 0);
        let next = oldest.map_or(Value::Null, |oldest| oldest["info"]["id"].clone());
        json!({"status": 200, "body": json!(page).to_string(), "next": next})
    }

    /// Names are in the order of their making.
    fn name(&mut self, kind: &str) -> String {
        self.named += 1;
        format!("{kind}_{:012x}", self.named)
    }
}

fn limit(asked: &Value) -> usize {
    let limit = asked["query"]["limit"].as_str();
    limit.and_then(|limit| limit.parse().ok()).unwrap_or(100)
}

fn ok(body: &Value) -> Value {
    json!({"status": 200, "body": body.to_string(), "next": null})
}

fn problem(status: u16, message: &str) -> Value {
    let body = json!({"name": "NotFoundError", "data": {"message": message}});
    json!({"status": status, "body": body.to_string(), "next": null})
}

fn now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(0))
}
