//! How sessions of the small OpenCode 2 work: they take what is in the inbox, play a script, say
//! what happens, and can be stopped.

use std::time::Duration;

use asyncagents_hosts::{Method, Request};
use asyncagents_testkit::host_contract::{Does, SCRIPT, TOOL};
use serde_json::{Value, json};
use tokio::time;

use crate::fake::{FakeOpenCode, find, models};

/// Prompts that the script of all hosts does not have.
pub(crate) const ASK_PERMISSION: &str = "List the files with a command";
pub(crate) const ASK_FORM: &str = "Ask which colour";
pub(crate) const RETRY: &str = "Use the model that is overloaded";
pub(crate) const RETRY_SOON: &str = "Use the model that hesitates";
pub(crate) const RESTARTED: &str = "The server restarted while you were working. Continue";
pub(crate) const WENT_ON: &str = "I went on";

const TURN: Duration = Duration::from_millis(10);
/// A server that has started takes so long to go on with what it was doing.
const RESUME_AFTER: Duration = Duration::from_millis(90);

/// How a turn ended that did not go well.
pub(crate) struct Broken(pub(crate) Value);

impl FakeOpenCode {
    /// Sets a session to work, unless it is.
    pub(crate) fn start(&self, id: &str) {
        let (fake, session) = (self.clone(), id.to_owned());
        let spawn = || {
            tokio::spawn(async move {
                let end = fake.execute(&session).await;
                fake.finish(&session, end);
            })
        };
        let started = self.with(id, |it| {
            let idle = it.works.is_none();
            if idle {
                it.works = Some(spawn());
            }
            idle
        });
        if started == Some(true) {
            self.tell(id, "session.execution.started", json!({}));
        }
    }

    /// Stops a session; whether it was at work.
    pub(crate) fn interrupt(&self, id: &str, reason: &str) -> bool {
        let Some(works) = self.with(id, |it| it.works.take()).flatten() else {
            return false;
        };
        works.abort();
        let error = json!({"type": "aborted", "message": "Step interrupted"});
        let stopped = self.with(id, |it| {
            it.permissions.clear();
            it.forms.clear();
            let last = it.messages.last_mut().filter(|it| is_unfinished(it))?;
            // One that waits for its next attempt is left as it is.
            if last["retry"].is_null() {
                last["finish"] = json!("error");
                last["error"] = error.clone();
                for call in last["content"].as_array_mut().into_iter().flatten() {
                    let why = json!({"type": "aborted", "message": "Tool execution interrupted"});
                    call["state"] = json!({"status": "error", "input": {}, "error": why});
                }
            }
            Some(last["id"].clone())
        });
        if let Some(message) = stopped.flatten() {
            let data = json!({"assistantMessageID": message, "error": error});
            self.tell(id, "session.step.failed", data);
        }
        self.note_idle(id, "interrupted", None);
        self.tell(
            id,
            "session.execution.interrupted",
            json!({"reason": reason}),
        );
        true
    }

    /// Killed at once and started again. What it goes on with by itself shows a moment later.
    pub(crate) fn kill(&self) {
        let ids: Vec<String> = self.lock().sessions.keys().cloned().collect();
        for id in ids {
            let worked = self.with(&id, |it| {
                it.permissions.clear();
                it.forms.clear();
                it.works.take()
            });
            if let Some(works) = worked.flatten() {
                works.abort();
                self.resume(&id);
            }
        }
        self.loses_events();
    }

    /// Stopped in an orderly way. It answers no more until it is started.
    pub(crate) fn stop(&self) {
        let ids: Vec<String> = self.lock().sessions.keys().cloned().collect();
        let stopped: Vec<String> = ids
            .into_iter()
            .filter(|id| self.interrupt(id, "shutdown"))
            .collect();
        self.lock().is_down = true;
        for id in stopped {
            self.resume(&id);
        }
    }

    pub(crate) fn is_started(&self) {
        self.lock().is_down = false;
        self.loses_events();
    }

    fn resume(&self, id: &str) {
        let has_parent = self.with(id, |it| it.info["parentID"].is_string());
        if !self.build.resumes || has_parent != Some(false) {
            return;
        }
        let message = json!({
            "id": self.next_id("msg"), "type": "synthetic", "text": RESTARTED,
            "time": {"created": self.now()},
        });
        let (fake, session) = (self.clone(), id.to_owned());
        self.with(id, |it| it.messages.push(message));
        tokio::spawn(async move {
            while fake.lock().is_down {
                time::sleep(TURN).await;
            }
            time::sleep(RESUME_AFTER).await;
            if fake.with(&session, |it| it.stays_idle) == Some(false) {
                fake.start(&session);
            }
        });
    }

    /// A session that the server wanted to go on with and does not.
    pub(crate) fn stays_idle(&self, id: &str) {
        self.with(id, |it| it.stays_idle = true);
    }

    /// What is asked without a session, if this is such a request.
    pub(crate) async fn generated(&self, request: &Request) -> Option<(u16, Value)> {
        let is_asked = request.path == "/api/generate" && request.method == Method::Post;
        if !is_asked || !self.build.generates {
            return None;
        }
        let prompt = request.body.as_ref()?["prompt"].as_str()?.to_owned();
        let text = match played(&prompt)? {
            Does::Answer(said) => said,
            Does::AnswerAfter(after, said) => {
                time::sleep(after).await;
                said
            }
            _ => return Some((503, Value::Null)),
        };
        Some((200, json!({"data": {"text": text}})))
    }

    async fn execute(&self, id: &str) -> Result<(), Broken> {
        let unresumed = self.with(id, |it| {
            let last = it.messages.last();
            last.is_some_and(|last| last["text"] == json!(RESTARTED))
        });
        if unresumed == Some(true) {
            time::sleep(TURN).await;
            self.step(id, "stop", json!([{"type": "text", "text": WENT_ON}]));
        }
        loop {
            self.check(id, "agent")?;
            let Some(text) = self.take(id) else {
                return Ok(());
            };
            self.check(id, "model")?;
            time::sleep(TURN).await;
            self.play(id, &text).await?;
        }
    }

    /// Whether the agent or the model of a session is known.
    fn check(&self, id: &str, what: &str) -> Result<(), Broken> {
        let set = self
            .with(id, |it| it.info[what].clone())
            .unwrap_or_default();
        let broken =
            |kind: &str, message: String| Err(Broken(json!({"type": kind, "message": message})));
        let known = ["build", "general", "explore"];
        let variant = set["variant"].as_str().filter(|it| *it != "default");
        match (what, set.as_str(), set["id"].as_str()) {
            ("agent", Some(agent), _) if !known.contains(&agent) => {
                broken("unknown", format!("Agent not found: \"{agent}\""))
            }
            ("model", _, Some(model)) if !model.starts_with("fake-") => broken(
                "provider.no-route",
                format!("Model unavailable: fake/{model}"),
            ),
            ("model", _, Some(model)) if variant.is_some_and(|it| !has_variant(model, it)) => {
                broken(
                    "provider.no-route",
                    format!(
                        "Variant unavailable for fake/{model}: {}",
                        variant.unwrap_or_default()
                    ),
                )
            }
            _ => Ok(()),
        }
    }

    /// Takes what is in the inbox into the history; the text that is played, if there was any.
    fn take(&self, id: &str) -> Option<String> {
        let taken = self.with(id, |it| std::mem::take(&mut it.inbox))?;
        for item in &taken {
            let mut message = item["payload"].clone();
            message["id"] = item["id"].clone();
            message["type"] = item["type"].clone();
            message["time"] = json!({"created": self.now()});
            self.with(id, |it| it.messages.push(message));
            let data = json!({"inboxID": item["id"]});
            self.tell(id, "session.inbox.delivered", data);
        }
        let texts = taken
            .iter()
            .filter_map(|item| item["payload"]["text"].as_str());
        let texts: Vec<&str> = texts.collect();
        let scripted = texts.iter().rfind(|text| is_scripted(text));
        scripted.or(texts.last()).map(|text| (*text).to_owned())
    }

    async fn play(&self, id: &str, text: &str) -> Result<(), Broken> {
        let said = |text: &str| json!([{"type": "text", "text": text}]);
        if text.contains(ASK_PERMISSION) {
            return self.ask_permission(id).await;
        }
        if text.contains(ASK_FORM) {
            return self.ask_form(id).await;
        }
        let retries = [(RETRY, 3_600), (RETRY_SOON, 60)];
        if let Some((_, wait)) = retries.iter().find(|(words, _)| text.contains(words)) {
            return self.retry(id, *wait).await;
        }
        match played(text) {
            None => self.step(id, "stop", said("ok")),
            Some(Does::Answer(answer)) => self.step(id, "stop", said(answer)),
            Some(Does::AnswerAfter(after, answer)) => {
                time::sleep(after).await;
                self.step(id, "stop", said(answer));
            }
            Some(Does::Fail(why)) => {
                let error = json!({"type": "provider.internal", "message": why});
                let message = self.begin(id);
                self.change(id, &message, |it| {
                    it["finish"] = json!("error");
                    it["error"] = error.clone();
                });
                let data = json!({"assistantMessageID": message, "error": error});
                self.tell(id, "session.step.failed", data);
                return Err(Broken(error));
            }
            Some(Does::CallAndAnswer(answer)) => {
                let message = self.begin(id);
                self.call(id, &message, TOOL, json!({"path": "notes.txt"}));
                self.end_call(
                    id,
                    &message,
                    json!({"status": "completed", "input": {},
                    "content": [{"type": "text", "text": "the plants are dry"}]}),
                );
                self.end_step(id, &message, "tool-calls");
                time::sleep(TURN).await;
                // What was steered in meanwhile comes before the next answer.
                self.take(id);
                self.step(id, "stop", said(answer));
            }
            Some(Does::CallAndHang) => {
                let message = self.begin(id);
                self.call(id, &message, TOOL, json!({"path": "notes.txt"}));
                std::future::pending::<()>().await;
            }
        }
        Ok(())
    }

    /// The model did not answer, and is asked again after so many seconds.
    async fn retry(&self, id: &str, wait: i64) -> Result<(), Broken> {
        let message = self.begin(id);
        let at = self.now() + wait * 1_000;
        let error = json!({"type": "provider.rate-limit", "message": "usage limit", "status": 429});
        let retry = json!({"attempt": 2, "at": at, "error": error});
        let mut data = retry.clone();
        data["assistantMessageID"] = json!(message);
        self.change(id, &message, |it| it["retry"] = retry);
        self.tell(id, "session.retry.scheduled", data);
        std::future::pending().await
    }

    fn finish(&self, id: &str, end: Result<(), Broken>) {
        let inbox = self.with(id, |it| {
            it.works = None;
            it.inbox.len()
        });
        match end {
            Ok(()) => {
                self.note_idle(id, "succeeded", None);
                self.tell(id, "session.execution.succeeded", json!({}));
                // What came in at the last moment.
                if inbox.unwrap_or(0) > 0 {
                    self.start(id);
                }
            }
            Err(Broken(Value::Null)) => {
                self.note_idle(id, "interrupted", None);
                let data = json!({"reason": "shutdown"});
                self.tell(id, "session.execution.interrupted", data);
            }
            Err(Broken(error)) => {
                self.note_idle(id, "failed", Some(&error));
                let data = json!({"error": error});
                self.tell(id, "session.execution.failed", data);
            }
        }
    }

    /// Where a release notes how a turn ended.
    fn note_idle(&self, id: &str, outcome: &str, error: Option<&Value>) {
        let message = self.next_id("msg");
        let build = self.build.clone();
        self.with(id, |it| {
            if build.keeps_outcome {
                it.info["outcome"] = json!(outcome);
            }
            if build.writes_idle {
                let mut idle = json!({"id": message, "type": "idle", "outcome": outcome});
                if let Some(error) = error.filter(|_| build.explains_idle) {
                    idle["error"] = error.clone();
                }
                it.messages.push(idle);
            }
        });
    }

    /// One answer of the model.
    pub(crate) fn step(&self, id: &str, finish: &str, content: Value) {
        let message = self.begin(id);
        self.change(id, &message, |it| it["content"] = content);
        self.end_step(id, &message, finish);
    }

    pub(crate) fn begin(&self, id: &str) -> String {
        let message = self.next_id("msg");
        let begun = json!({
            "id": message, "type": "assistant", "agent": "general", "content": [],
            "time": {"created": self.now()}, "model": {"providerID": "fake", "id": "fake-1"},
        });
        self.with(id, |it| it.messages.push(begun));
        let model = json!({"providerID": "fake", "id": "fake-1"});
        let data = json!({"assistantMessageID": message, "agent": "general", "model": model});
        self.tell(id, "session.step.started", data);
        message
    }

    pub(crate) fn end_step(&self, id: &str, message: &str, finish: &str) {
        let tokens =
            json!({"input": 100, "output": 8, "reasoning": 0, "cache": {"read": 5, "write": 0}});
        self.change(id, message, |it| {
            it["finish"] = json!(finish);
            it["tokens"] = tokens.clone();
            it["cost"] = json!(0.25);
        });
        let data = json!({"assistantMessageID": message, "finish": finish, "cost": 0.25, "tokens": tokens});
        self.tell(id, "session.step.ended", data);
    }

    pub(crate) fn call(&self, id: &str, message: &str, tool: &str, input: Value) {
        let state = json!({"status": "running", "input": input});
        let call = json!({"type": "tool", "id": "call_1", "name": tool, "state": state});
        self.change(id, message, |it| it["content"] = json!([call]));
        let about = json!({"assistantMessageID": message, "id": "call_1"});
        let mut started = about.clone();
        started["name"] = json!(tool);
        self.tell(id, "session.tool.input.started", started);
        let mut called = about;
        called["input"] = input;
        self.tell(id, "session.tool.called", called);
    }

    pub(crate) fn end_call(&self, id: &str, message: &str, state: Value) {
        self.change(id, message, |it| it["content"][0]["state"] = state);
        let data = json!({"assistantMessageID": message, "id": "call_1"});
        self.tell(id, "session.tool.success", data);
    }

    pub(crate) fn change(&self, id: &str, message: &str, how: impl FnOnce(&mut Value)) {
        self.with(id, |it| {
            let found = it
                .messages
                .iter_mut()
                .find(|it| it["id"].as_str() == Some(message));
            how(found.expect("a message"));
        });
    }

    pub(crate) fn tell(&self, id: &str, kind: &str, mut data: Value) {
        data["sessionID"] = json!(id);
        self.emit(kind, data);
    }
}

fn has_variant(model: &str, variant: &str) -> bool {
    let model = find(&models(), model).unwrap_or_default();
    let variants = model["variants"].as_array().cloned();
    find(&variants.unwrap_or_default(), variant).is_some()
}

fn is_unfinished(message: &Value) -> bool {
    message["type"] == json!("assistant") && message["finish"].is_null()
}

fn played(text: &str) -> Option<Does> {
    let mut script = SCRIPT.iter();
    let entry = script.find(|(words, _)| text.contains(words));
    entry.map(|(_, does)| *does)
}

fn is_scripted(text: &str) -> bool {
    let own = [ASK_PERMISSION, ASK_FORM, RETRY, RETRY_SOON];
    played(text).is_some() || own.iter().any(|words| text.contains(words))
}
