//! The small OpenCode with a model that plays a script: it is set to work, says what happens, and
//! can be stopped.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use async_trait::async_trait;
use asyncagents_core::{id::SessionId, port::HostError};
use asyncagents_hosts::{Connection, Method, Request, Response, Signal};
use asyncagents_testkit::host_contract::{Does, TOOL, does};
use serde_json::{Value, json};
use tokio::{
    sync::{Notify, mpsc},
    task::JoinHandle,
    time,
};

use crate::{
    fake::FakeOpenCode,
    message::{
        agent_with, call_failed, called, calling, failed, step_finish, text, tokens, unfinished,
    },
    world::{busy, idle},
};

/// A prompt that the script of all hosts does not have.
pub(crate) const ASK_PERMISSION: &str = "List the files with a command";

const REJECTED: &str = "The user rejected permission to use this specific tool call.";

/// How often a session looks for its answer.
const PAUSE: Duration = Duration::from_millis(10);

/// An OpenCode whose sessions work. Clones are the same.
#[derive(Clone)]
pub(crate) struct PlayingOpenCode {
    pub(crate) opencode: FakeOpenCode,
    workers: Arc<Mutex<HashMap<SessionId, Worker>>>,
}

/// What works in a session.
struct Worker {
    /// What it was told and has not begun with.
    queue: Arc<Mutex<Vec<String>>>,
    more: Arc<Notify>,
    works: JoinHandle<()>,
}

#[async_trait]
impl Connection for PlayingOpenCode {
    async fn send(&self, request: Request) -> Result<Response, HostError> {
        let path: Vec<&str> = request.path.split('/').skip(1).collect();
        let session = || SessionId::from(path[1]);
        // Whoever is stopped is stopped before that is answered.
        if let (Method::Post, ["session", _, "abort"]) = (request.method, &path[..]) {
            self.abort(&session());
        }
        let response = self.opencode.send(request.clone()).await?;
        if response.status >= 300 {
            return Ok(response);
        }
        match (request.method, &path[..]) {
            (Method::Post, ["session", _, "prompt_async"]) => {
                let body = request.body.unwrap_or_default();
                self.begin(&session(), text_of(&body));
            }
            (Method::Delete, ["session", _]) => self.delete(&session()),
            _ => {}
        }
        Ok(response)
    }

    fn signals(&self) -> mpsc::UnboundedReceiver<Signal> {
        self.opencode.signals()
    }
}

impl PlayingOpenCode {
    pub(crate) fn new(opencode: FakeOpenCode) -> Self {
        Self {
            opencode,
            workers: Arc::default(),
        }
    }

    /// It is stopped and started again. What its sessions were doing is left as it is.
    pub(crate) fn restart(&self) {
        for (session, worker) in self.lock().drain() {
            worker.works.abort();
            self.opencode.asks_no_more(&session);
            self.opencode.is_idle(&session);
        }
        self.opencode.loses_events();
    }

    /// Sets a session to work, or to go on with this when it is done with what it does.
    fn begin(&self, session: &SessionId, prompt: String) {
        let mut workers = self.lock();
        let worker = workers.entry(session.clone()).or_insert_with(|| {
            let (queue, more) = (
                Arc::<Mutex<Vec<String>>>::default(),
                Arc::new(Notify::new()),
            );
            let works = work(
                self.opencode.clone(),
                session.clone(),
                queue.clone(),
                more.clone(),
            );
            Worker {
                queue,
                more,
                works: tokio::spawn(works),
            }
        });
        worker.queue.lock().expect("not poisoned").push(prompt);
        worker.more.notify_one();
    }

    /// Stops a session that is at work. One that was told something and has not begun begins.
    fn abort(&self, session: &SessionId) {
        if !self.opencode.works(session) {
            return;
        }
        if let Some(worker) = self.lock().remove(session) {
            worker.works.abort();
        }
        self.opencode.asks_no_more(session);
        let error = json!({"name": "MessageAbortedError", "data": {"message": "Aborted"}});
        self.opencode
            .add(session, failed(error.clone(), Vec::new()));
        self.opencode.is_idle(session);
        self.emit("session.error", session, json!({"error": error}));
        self.opencode.emit(&idle(session).to_string());
    }

    fn delete(&self, session: &SessionId) {
        if let Some(worker) = self.lock().remove(session) {
            worker.works.abort();
        }
        self.opencode.asks_no_more(session);
        let info = json!({"info": {"id": session.as_str()}});
        self.emit("session.deleted", session, info);
    }

    fn emit(&self, kind: &str, session: &SessionId, properties: Value) {
        emit(&self.opencode, kind, session, properties);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Worker>> {
        self.workers.lock().expect("not poisoned")
    }
}

/// Works in a session on one thing after the other.
async fn work(
    opencode: FakeOpenCode,
    session: SessionId,
    queue: Arc<Mutex<Vec<String>>>,
    more: Arc<Notify>,
) {
    loop {
        more.notified().await;
        let told = std::mem::take(&mut *queue.lock().expect("not poisoned"));
        if told.is_empty() {
            continue;
        }
        opencode.is_busy(&session);
        opencode.emit(&busy(&session).to_string());
        for prompt in told {
            if prompt.contains(ASK_PERMISSION) {
                ask_permission(&opencode, &session).await;
            } else {
                play(&opencode, &session, does(&prompt)).await;
            }
        }
        opencode.is_idle(&session);
        opencode.emit(&idle(&session).to_string());
    }
}

async fn play(opencode: &FakeOpenCode, session: &SessionId, does: Does) {
    time::sleep(Duration::from_millis(10)).await;
    match does {
        Does::Answer(said) => answer(opencode, session, said),
        Does::AnswerAfter(time, said) => {
            time::sleep(time).await;
            answer(opencode, session, said);
        }
        Does::Fail(why) => {
            let error = json!({"name": "APIError", "data": {"message": why}});
            opencode.add(session, failed(error.clone(), Vec::new()));
            emit(opencode, "session.error", session, json!({"error": error}));
        }
        Does::CallAndAnswer(said) => {
            let parts = vec![called("call_1", TOOL, "the plants are dry"), step_finish()];
            step(opencode, session, "tool-calls", parts);
            time::sleep(Duration::from_millis(10)).await;
            answer(opencode, session, said);
        }
        Does::CallAndHang => {
            opencode.add(session, unfinished(vec![calling("call_1", TOOL)]));
            tell_parts(opencode, session);
            std::future::pending().await
        }
    }
}

/// Asks for a permission, and answers when it has it. A refusal ends the turn.
async fn ask_permission(opencode: &FakeOpenCode, session: &SessionId) {
    let call = calling("call_1", "bash");
    let message = opencode.add(session, unfinished(vec![call]));
    tell_parts(opencode, session);
    let asked = format!("per_{message}");
    let permission = json!({
        "id": asked, "sessionID": session.as_str(), "permission": "bash", "patterns": ["ls"],
        "metadata": {"command": "ls"}, "always": ["ls *"],
        "tool": {"messageID": message, "callID": "call_1"},
    });
    opencode.asks(permission.clone());
    emit(opencode, "permission.asked", session, permission);
    let reply = replied(opencode, &asked).await;
    let about = json!({"requestID": asked, "reply": reply["reply"]});
    emit(opencode, "permission.replied", session, about);
    let is_refused = reply["reply"] == "reject";
    let call = if is_refused {
        call_failed("call_1", "bash", REJECTED)
    } else {
        called("call_1", "bash", "notes.txt")
    };
    opencode.change_message(session, &message, |it| {
        it["parts"][0]["state"] = call["state"].clone();
        it["info"]["finish"] = json!("tool-calls");
        it["info"]["time"]["completed"] = it["info"]["time"]["created"].clone();
    });
    tell_parts(opencode, session);
    if !is_refused {
        answer(opencode, session, "listed");
    }
}

/// Waits for the answer to a question.
async fn replied(opencode: &FakeOpenCode, question: &str) -> Value {
    loop {
        match opencode.replied(question) {
            Some(reply) => return reply,
            None => time::sleep(PAUSE).await,
        }
    }
}

fn answer(opencode: &FakeOpenCode, session: &SessionId, said: &str) {
    step(opencode, session, "stop", vec![text(said), step_finish()]);
}

/// One answer of the model.
fn step(opencode: &FakeOpenCode, session: &SessionId, finish: &str, parts: Vec<Value>) {
    let info = json!({"finish": finish, "tokens": tokens(), "cost": 0.25});
    opencode.add(session, agent_with(info, parts));
    tell_parts(opencode, session);
}

/// Says what is in the newest message, each call as it goes on.
fn tell_parts(opencode: &FakeOpenCode, session: &SessionId) {
    let messages = opencode.messages_of(session);
    let parts = messages
        .last()
        .and_then(|newest| newest["parts"].as_array());
    for part in parts.expect("parts") {
        let mut stages = vec![part.clone()];
        if part["type"] == "tool" {
            for status in ["running", "pending"] {
                let mut earlier = part.clone();
                earlier["state"]["status"] = json!(status);
                stages.insert(0, earlier);
            }
        }
        for part in stages {
            emit(
                opencode,
                "message.part.updated",
                session,
                json!({"part": part}),
            );
        }
    }
}

fn emit(opencode: &FakeOpenCode, kind: &str, session: &SessionId, mut properties: Value) {
    properties["sessionID"] = json!(session.as_str());
    let event = json!({"type": kind, "properties": properties});
    opencode.emit(&event.to_string());
}

/// Everything in the parts of a message that is sent.
fn text_of(body: &Value) -> String {
    let parts = body["parts"].as_array().into_iter().flatten();
    parts.filter_map(|part| part["text"].as_str()).collect()
}
