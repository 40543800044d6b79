//! The API of an OpenCode 2 that is reached through its plugin, with the plugin's side written out.
#![expect(clippy::expect_used, reason = "a test that cannot go on should stop")]

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use asyncagents_core::{
    agent::ToolSpec,
    id::{SessionId, TaskId},
    lifecycle::Standing,
    notify::Message,
    port::{Delivery, Host, HostError, Notice, Prompt, Report, SessionEvent},
    task::Outcome,
};
use asyncagents_hosts::{
    Connection, Request, Response, Signal,
    opencode2::{OpenCode2, Settings, child_session, message},
    plugin::{Answer, Bounds, BridgeConnection, BridgeHandler, PluginLink, Relay, ToolCall, serve},
};
use asyncagents_testkit::clock::TokioClock;
use serde_json::{Value, json};
use tokio::{
    io::{
        AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf, duplex, split,
    },
    sync::mpsc,
    task::JoinHandle,
    time::timeout,
};

const CHILD: &str = "ses_asyncagents_1";

/// Keeps the link to an OpenCode 2.
struct Keeper(mpsc::UnboundedSender<Arc<PluginLink>>);

#[async_trait]
impl BridgeHandler for Keeper {
    async fn hello(&self, _: Arc<BridgeConnection>) -> Vec<ToolSpec> {
        Vec::new()
    }

    async fn hello_opencode2(&self, opencode: Arc<PluginLink>) -> Result<Vec<ToolSpec>, String> {
        self.0.send(opencode).expect("a test");
        Ok(Vec::new())
    }

    async fn tools(&self, _: &str) -> Vec<ToolSpec> {
        Vec::new()
    }

    async fn call(&self, _: ToolCall) -> Result<Answer, String> {
        Err("nothing is called here".to_owned())
    }

    async fn bounds(&self, _: &SessionId) -> Result<Bounds, String> {
        Err("nothing is bound here".to_owned())
    }

    async fn goodbye(&self, _: &str) {}

    async fn goodbye_opencode2(&self) {}
}

/// An OpenCode 2 behind its plugin: what its methods answer is the test's to say.
struct OpenCode {
    relay: Arc<Relay>,
    signals: mpsc::UnboundedReceiver<Signal>,
    writer: Arc<tokio::sync::Mutex<WriteHalf<DuplexStream>>>,
    script: Arc<Mutex<Script>>,
    _serving: JoinHandle<()>,
    _playing: JoinHandle<()>,
}

/// What the plugin answers.
#[derive(Default)]
struct Script {
    /// By the method: what `ask` is answered. A method that is not here is unknown.
    methods: Vec<(&'static str, Value)>,
    shown: Value,
    since: Vec<Value>,
    delivered: Vec<String>,
    busy: Vec<&'static str>,
    asked: Vec<Value>,
}

impl Script {
    fn answer(&mut self, message: &Value) -> Value {
        let params = &message["params"];
        if message["method"] == "shown" {
            return json!({"messages": self.shown, "events": self.since});
        }
        if message["method"] == "delivered" {
            return json!({"messages": self.delivered});
        }
        if message["method"] == "busy" {
            return json!({"sessions": self.busy});
        }
        let method = params["method"].as_str().expect("a method");
        self.asked.push(params.clone());
        let found = self.methods.iter().find(|(name, _)| *name == method);
        found.map_or(json!({"unknown": true}), |(_, answer)| answer.clone())
    }
}

impl OpenCode {
    async fn start(methods: &[(&'static str, Value)]) -> Self {
        let (here, there) = duplex(1024 * 1024);
        let (sender, mut links) = mpsc::unbounded_channel();
        let serving = tokio::spawn(async move {
            let (reader, writer) = split(there);
            let served = serve(reader, writer, &[], Arc::new(Keeper(sender))).await;
            served.expect("an orderly end");
        });
        let (reader, writer) = split(here);
        let writer = Arc::new(tokio::sync::Mutex::new(writer));
        let script = Arc::new(Mutex::new(Script {
            methods: methods.to_vec(),
            ..Script::default()
        }));
        let playing = tokio::spawn(play(reader, Arc::clone(&writer), Arc::clone(&script)));
        let hello = json!({"generation": 2, "pid": 9, "opencode_plugin": 2});
        say(
            &writer,
            json!({"id": 1, "method": "hello", "params": hello}),
        )
        .await;
        let link = soon(links.recv()).await.expect("a link");
        let relay = Relay::new(link, &["session.deleted", "session.text.delta"]).expect("a plugin");
        Self {
            signals: relay.signals(),
            relay: Arc::new(relay),
            writer,
            script,
            _serving: serving,
            _playing: playing,
        }
    }

    /// Something happens, and is heard of.
    async fn happens(&mut self, kind: &str, data: Value) {
        let event = json!({"id": "evt_1", "created": 7, "type": kind, "data": data});
        say(
            &self.writer,
            json!({"method": "event", "params": {"event": event}}),
        )
        .await;
        soon(self.signals.recv()).await.expect("a signal");
    }

    async fn misses_events(&mut self) {
        say(&self.writer, json!({"method": "event", "params": {}})).await;
        let heard = soon(self.signals.recv()).await;
        assert!(matches!(heard, Some(Signal::Missed)));
    }

    async fn send(&self, request: Request) -> Result<Response, HostError> {
        soon(self.relay.send(request)).await
    }

    async fn get(&self, path: &str) -> Value {
        let response = self.send(Request::get(path)).await.expect("an answer");
        assert_eq!(response.status, 200, "{path}: {}", response.body);
        serde_json::from_str(&response.body).expect("JSON")
    }

    async fn status(&self, request: Request) -> u16 {
        self.send(request).await.expect("an answer").status
    }

    fn asked(&self) -> Vec<Value> {
        self.script.lock().expect("a script").asked.clone()
    }
}

/// Answers what the bridge asks of the plugin.
async fn play(
    reader: ReadHalf<DuplexStream>,
    writer: Arc<tokio::sync::Mutex<WriteHalf<DuplexStream>>>,
    script: Arc<Mutex<Script>>,
) {
    let mut lines = BufReader::new(reader).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let message: Value = serde_json::from_str(&line).expect("JSON");
        if message["id"].is_null() || message["method"].is_null() {
            continue;
        }
        let result = script.lock().expect("a script").answer(&message);
        say(&writer, json!({"id": message["id"], "result": result})).await;
    }
}

async fn say(writer: &tokio::sync::Mutex<WriteHalf<DuplexStream>>, message: Value) {
    let line = format!("{message}\n");
    let written = writer.lock().await.write_all(line.as_bytes()).await;
    written.expect("a bridge");
}

/// Fails rather than hangs.
async fn soon<T>(future: impl Future<Output = T>) -> T {
    let waited = timeout(Duration::from_secs(60), future).await;
    waited.expect("an end within a minute")
}

fn of(session: &str, rest: &str) -> String {
    format!("/api/session/{session}{rest}")
}

/// The names of the messages of a page, and where the next begins.
fn names(page: &Value) -> (Vec<&str>, &Value) {
    let messages = page["data"].as_array().expect("messages");
    let names = messages.iter().map(|it| it["id"].as_str().expect("a name"));
    (names.collect(), &page["cursor"]["next"])
}

#[tokio::test]
async fn a_session_is_made_prompted_and_followed_to_its_end() {
    let session = json!({"value": {"id": CHILD, "location": {"directory": "/home/user/project"}}});
    let payload = json!({"text": "go", "metadata": {"a": 1}});
    let item = json!({"value": {"id": "msg_1", "type": "user", "payload": payload}});
    let mut opencode =
        OpenCode::start(&[("session.create", session), ("session.prompt", item)]).await;
    let made = Request::post("/api/session", json!({"id": CHILD}));
    let made = opencode.send(made).await.expect("a session");
    assert!(made.body.contains(CHILD), "{}", made.body);
    opencode
        .happens("session.created", json!({"sessionID": CHILD}))
        .await;

    let prompt = Request::post(of(CHILD, "/prompt"), json!({"id": "msg_1", "text": "go"}));
    assert_eq!(opencode.status(prompt).await, 200);
    let asked = json!({"id": "msg_1", "text": "go", "sessionID": CHILD});
    let asked = json!({"method": "session.prompt", "args": asked});
    assert_eq!(opencode.asked().last(), Some(&asked));
    let inbox = opencode.get(&of(CHILD, "/inbox")).await;
    assert_eq!(inbox["data"][0]["id"], "msg_1");
    let message = Request::get(of(CHILD, "/message/msg_1"));
    assert_eq!(opencode.status(message).await, 404);

    let works = json!({"sessionID": CHILD});
    let admitted = json!({"sessionID": CHILD, "inboxID": "msg_1"});
    let written = |more: Value| {
        let mut data = json!({"sessionID": CHILD, "assistantMessageID": "msg_2"});
        let (into, more) = (data.as_object_mut(), more.as_object().cloned());
        into.expect("an object").extend(more.expect("an object"));
        data
    };
    opencode
        .happens("session.execution.started", works.clone())
        .await;
    opencode.happens("session.inbox.delivered", admitted).await;
    assert_eq!(
        opencode.get(&of(CHILD, "/inbox")).await,
        json!({"data": []})
    );
    let model = json!({"id": "fake-1", "providerID": "fake"});
    let error = json!({"type": "unknown", "message": "no"});
    for (kind, data) in [
        (
            "session.step.started",
            json!({"agent": "general", "model": model}),
        ),
        (
            "session.tool.input.started",
            json!({"id": "call_1", "name": "shell"}),
        ),
        (
            "session.tool.input.started",
            json!({"id": "call_2", "name": "edit"}),
        ),
        (
            "session.tool.called",
            json!({"id": "call_1", "input": {"command": "ls"}}),
        ),
        ("session.tool.called", json!({"id": "call_2", "input": {}})),
        ("session.text.started", json!({"ordinal": 0})),
        (
            "session.tool.success",
            json!({"id": "call_1", "content": [{"type": "text", "text": "a"}]}),
        ),
        (
            "session.tool.failed",
            json!({"id": "call_2", "error": error}),
        ),
        ("session.text.ended", json!({"ordinal": 0, "text": "Done."})),
        (
            "session.step.ended",
            json!({"finish": "stop", "cost": 0.5, "tokens": {"input": 3}}),
        ),
    ] {
        opencode.happens(kind, written(data)).await;
    }
    opencode.happens("session.execution.succeeded", works).await;
    let page = opencode.get(&of(CHILD, "/message")).await;
    assert_eq!(names(&page), (vec!["msg_2", "msg_1"], &Value::Null));
    let user = json!({"id": "msg_1", "type": "user", "text": "go", "metadata": {"a": 1}, "time": {"created": 7.0}});
    assert_eq!(page["data"][1], user);
    let answer = &page["data"][0];
    assert_eq!(
        (&answer["finish"], &answer["cost"]),
        (&json!("stop"), &json!(0.5))
    );
    assert_eq!(answer["agent"], "general");
    let states: Vec<_> = answer["content"]
        .as_array()
        .expect("parts")
        .iter()
        .map(|part| {
            (
                part["type"].as_str(),
                part["name"].as_str(),
                part["state"]["status"].as_str(),
                part["text"].as_str(),
            )
        })
        .collect();
    assert_eq!(
        states,
        [
            (Some("tool"), Some("shell"), Some("completed"), None),
            (Some("tool"), Some("edit"), Some("error"), None),
            (Some("text"), None, None, Some("Done.")),
        ]
    );
    assert_eq!(
        answer["content"][0]["state"]["input"],
        json!({"command": "ls"})
    );
}

#[tokio::test]
async fn what_was_said_before_is_what_the_model_was_shown() {
    let mut opencode = OpenCode::start(&[]).await;
    let said = |id: &str, role: &str| json!({"id": id, "role": role, "content": [{"type": "text", "text": id}]});
    let shown = json!([
        said("msg_1", "user"),
        said("msg_2", "assistant"),
        said("msg_3", "user")
    ]);
    opencode.script.lock().expect("a script").shown = shown;
    let page = opencode.get(&of("ses_1", "/message")).await;
    assert_eq!(names(&page).0, ["msg_3", "msg_2", "msg_1"]);

    // The message that is being written is known from events alone.
    for (kind, message) in [
        ("session.step.started", "msg_3"),
        ("session.step.started", "msg_4"),
    ] {
        let data = json!({"sessionID": "ses_1", "assistantMessageID": message, "agent": "build"});
        opencode.happens(kind, data).await;
    }
    let first = Request::get(of("ses_1", "/message")).query("limit", "3");
    let first = opencode.send(first).await.expect("a page").body;
    let first: Value = serde_json::from_str(&first).expect("JSON");
    assert_eq!(
        names(&first),
        (vec!["msg_4", "msg_3", "msg_2"], &json!("msg_2"))
    );
    assert_eq!(first["data"][1]["type"], "assistant");
    let next = Request::get(of("ses_1", "/message")).query("cursor", "msg_2");
    let next = opencode.send(next).await.expect("a page").body;
    let next: Value = serde_json::from_str(&next).expect("JSON");
    assert_eq!(names(&next), (vec!["msg_1"], &Value::Null));
    let message = Request::get(of("ses_1", "/message/msg_1"));
    assert_eq!(opencode.status(message).await, 200);
}

#[tokio::test]
async fn where_opencode_tells_its_messages_it_is_asked() {
    let messages = json!([{"id": "msg_1", "type": "user", "text": "a"}]);
    let opencode = OpenCode::start(&[("session.context", json!({"value": messages}))]).await;
    let page = opencode.get(&of("ses_1", "/message")).await;
    assert_eq!(page["data"], messages);
}

#[tokio::test]
async fn what_happened_while_nobody_listened_is_not_lost() {
    let opencode = OpenCode::start(&[]).await;
    let event = |kind: &str, more: Value| {
        let mut data = json!({"sessionID": CHILD, "assistantMessageID": "msg_2"});
        let (into, more) = (data.as_object_mut(), more.as_object().cloned());
        into.expect("an object").extend(more.expect("an object"));
        json!({"id": "evt_1", "created": 7, "type": kind, "data": data})
    };
    let late = json!({"assistantMessageID": "msg_1", "finish": "tool-calls"});
    {
        let mut script = opencode.script.lock().expect("a script");
        let said = json!([{"type": "text", "text": "first"}]);
        let prompt = json!({"id": "msg_0", "role": "user", "content": "go"});
        script.shown = json!([prompt, {"id": "msg_1", "role": "assistant", "content": said}]);
        script.since = vec![
            // The end of what was shown already.
            event("session.step.ended", late),
            event("session.step.started", json!({"agent": "general"})),
            event(
                "session.text.ended",
                json!({"ordinal": 0, "text": "second"}),
            ),
            event("session.step.ended", json!({"finish": "stop"})),
        ];
        script.busy = vec![CHILD];
    }
    let page = opencode.get(&of(CHILD, "/message")).await;
    assert_eq!(names(&page).0, ["msg_2", "msg_1", "msg_0"]);
    let texts = ["second", "first"].map(Value::from);
    for (place, text) in texts.iter().enumerate() {
        assert_eq!(&page["data"][place]["content"][0]["text"], text);
    }
    let active = opencode.get("/api/session/active").await;
    assert_eq!(active["data"], json!({CHILD: {"type": "running"}}));
}

#[tokio::test]
async fn after_a_gap_the_plugin_is_asked_what_was_said() {
    let mut opencode = OpenCode::start(&[]).await;
    let created = json!({"sessionID": CHILD});
    opencode.happens("session.created", created).await;
    let page = opencode.get(&of(CHILD, "/message")).await;
    assert_eq!(names(&page).0, Vec::<&str>::new());
    opencode.misses_events().await;
    let shown = json!([{"id": "msg_0", "role": "user", "content": "go"}]);
    opencode.script.lock().expect("a script").shown = shown;
    let page = opencode.get(&of(CHILD, "/message")).await;
    assert_eq!(names(&page).0, ["msg_0"]);
}

/// What an agent says and what it is told, as it happens.
async fn said(opencode: &mut OpenCode, id: &str, text: &str) {
    let about = |more: Value| {
        let mut data = json!({"sessionID": CHILD, "assistantMessageID": id});
        let (into, more) = (data.as_object_mut(), more.as_object().cloned());
        into.expect("an object").extend(more.expect("an object"));
        data
    };
    for (kind, data) in [
        ("session.step.started", json!({"agent": "general"})),
        ("session.text.ended", json!({"ordinal": 0, "text": text})),
        ("session.step.ended", json!({"finish": "stop"})),
    ] {
        opencode.happens(kind, about(data)).await;
    }
}

#[tokio::test]
async fn messages_keep_their_order_over_a_compaction_and_a_gap() {
    let turn = |id: &str, role: &str| json!({"id": id, "role": role, "content": id});
    for compacted_unheard in [false, true] {
        let mut opencode = OpenCode::start(&[]).await;
        let created = json!({"sessionID": CHILD});
        opencode.happens("session.created", created).await;
        said(&mut opencode, "msg_1", "one").await;
        said(&mut opencode, "msg_2", "two").await;
        let about = json!({"sessionID": CHILD, "inputID": "msg_3", "text": "both", "recent": ""});
        if compacted_unheard {
            opencode.misses_events().await;
        } else {
            let started = about.clone();
            opencode
                .happens("session.compaction.started", started)
                .await;
            opencode.happens("session.compaction.ended", about).await;
            opencode.misses_events().await;
        }
        said(&mut opencode, "msg_5", "five").await;
        let shown = json!([turn("msg_3", "user"), turn("msg_4", "assistant")]);
        opencode.script.lock().expect("a script").shown = shown;
        let page = opencode.get(&of(CHILD, "/message")).await;
        let in_order = ["msg_5", "msg_4", "msg_3", "msg_2", "msg_1"];
        assert_eq!(names(&page).0, in_order, "{compacted_unheard}");
    }
}

#[tokio::test]
async fn what_was_being_said_before_a_gap_does_not_hide_its_end() {
    let mut opencode = OpenCode::start(&[]).await;
    let created = json!({"sessionID": CHILD});
    opencode.happens("session.created", created).await;
    let begun = json!({"sessionID": CHILD, "assistantMessageID": "msg_1", "agent": "general"});
    opencode.happens("session.step.started", begun).await;
    opencode.misses_events().await;
    let whole = json!([{"id": "msg_1", "role": "assistant", "content": "the whole of it"}]);
    opencode.script.lock().expect("a script").shown = whole;
    let page = opencode.get(&of(CHILD, "/message")).await;
    assert_eq!(page["data"][0]["content"][0]["text"], "the whole of it");
}

/// A bridge that has started again hears of the session for the first time, and the plugin shows
/// what its model is shown: not the prompt, if a compaction has summed it up.
#[tokio::test]
async fn a_prompt_that_was_compacted_is_not_sent_again_by_the_next_bridge() {
    let session = json!({"value": {"id": "ses_1"}});
    let opencode = OpenCode::start(&[("session.get", session)]).await;
    let task = TaskId::from_random(1);
    let child = child_session(&task);
    let clock = Arc::new(TokioClock::start());
    let host = OpenCode2::new(Arc::clone(&opencode.relay) as _, clock, Settings::default());
    {
        let mut script = opencode.script.lock().expect("a script");
        let summary =
            json!({"id": "msg_7", "role": "user", "content": "<conversation-checkpoint>"});
        script.shown =
            json!([summary, {"id": "msg_8", "role": "assistant", "content": "Found it."}]);
    }
    let standing = async || {
        let seen = soon(host.inspect(&child, &task.prompt(0))).await;
        seen.expect("an answer").standing
    };
    // One that never got there is.
    assert_eq!(standing().await, Standing::Unprompted);
    opencode.script.lock().expect("a script").delivered = vec![message(&task.prompt(0))];
    let (outcome, answer) = (Outcome::Completed, Some("Found it.".to_owned()));
    assert_eq!(standing().await, Standing::Done { outcome, answer });
}

#[tokio::test]
async fn questions_are_known_until_they_are_answered() {
    let mut opencode = OpenCode::start(&[]).await;
    let permission =
        json!({"id": "per_1", "sessionID": CHILD, "action": "shell", "resources": ["ls"]});
    opencode
        .happens("permission.asked", permission.clone())
        .await;
    let form = json!({"id": "frm_1", "sessionID": CHILD, "fields": []});
    opencode
        .happens("form.created", json!({"form": form}))
        .await;
    let permissions = opencode.get(&of(CHILD, "/permission")).await;
    assert_eq!(permissions["data"], json!([permission]));
    let forms = opencode.get(&of(CHILD, "/form")).await;
    assert_eq!(forms["data"], json!([form]));
    let replied = json!({"sessionID": CHILD, "requestID": "per_1", "reply": "once"});
    opencode.happens("permission.replied", replied).await;
    let replied = json!({"sessionID": CHILD, "id": "frm_1"});
    opencode.happens("form.replied", replied).await;
    for list in ["/permission", "/form"] {
        assert_eq!(opencode.get(&of(CHILD, list)).await["data"], json!([]));
    }
}

#[tokio::test]
async fn what_cannot_be_done_is_said_clearly() {
    let fails = |tag: &str| json!({"error": {"tag": tag, "message": tag}});
    let opencode = OpenCode::start(&[
        ("session.get", fails("Session.NotFoundError")),
        ("session.synthetic", fails("Session.PromptConflictError")),
        ("session.prompt", fails("")),
    ])
    .await;
    assert_eq!(opencode.status(Request::get(of("ses_9", ""))).await, 404);
    assert_eq!(
        opencode.status(Request::get(of("ses_9", "/message"))).await,
        404
    );
    assert_eq!(opencode.status(Request::get("/openapi.json")).await, 404);
    let tell = Request::post(of("ses_9", "/synthetic"), json!({}));
    assert_eq!(opencode.status(tell).await, 409);
    let prompt = Request::post(of("ses_9", "/prompt"), json!({}));
    assert_eq!(opencode.status(prompt).await, 500);
    let reply = Request::post(of("ses_9", "/permission/per_1/reply"), json!({}));
    for request in [reply, Request::post("/api/session/import", json!({}))] {
        let refused = opencode.send(request).await;
        assert!(
            matches!(&refused, Err(HostError::Refused(why)) if why.contains("background server")),
            "{refused:?}"
        );
    }
    let model = opencode
        .send(Request::post(of("ses_9", "/model"), json!({})))
        .await;
    let why = "this OpenCode has no `session.switchModel` for plugins".to_owned();
    assert_eq!(model, Err(HostError::Refused(why)));
}

#[tokio::test]
async fn a_history_that_is_not_known_is_not_made_up() {
    let session = json!({"value": {"id": "ses_1"}});
    let opencode = OpenCode::start(&[("session.get", session), ("session.wait", json!({}))]).await;
    let idle = opencode.get(&of("ses_1", "/message")).await;
    assert_eq!(names(&idle).0, Vec::<&str>::new());
    let refused = opencode.send(Request::get(of(CHILD, "/message"))).await;
    assert!(
        matches!(&refused, Err(HostError::Refused(why)) if why.contains("no messages of the past")),
        "{refused:?}"
    );
}

#[tokio::test]
async fn a_task_is_worked_on_through_the_plugin() {
    let folder = json!({"directory": "/home/user/project"});
    let parent = json!({"value": {"id": "ses_1", "agent": "general", "location": folder}});
    let agents = json!([{"id": "general", "name": "General", "permissions": []}]);
    let item = |id: &str| json!({"value": {"id": id, "type": "user", "payload": {"text": "go"}}});
    let task = TaskId::from_random(1);
    let (prompt, notice) = (message(&task.prompt(0)), message(&task.notice(0)));
    let mut opencode = OpenCode::start(&[
        ("session.get", parent),
        (
            "agent.list",
            json!({"value": {"location": folder, "data": agents}}),
        ),
        ("session.prompt", item(&prompt)),
        ("session.synthetic", item(&notice)),
    ])
    .await;
    let settings = Settings {
        prefix: "asyncagents_".to_owned(),
        plugin_binds: true,
        ..Settings::default()
    };
    let clock = Arc::new(TokioClock::start());
    let host = OpenCode2::new(Arc::clone(&opencode.relay) as _, clock, settings);
    assert_eq!(soon(host.agents()).await, Ok(vec!["general".into()]));
    let (child, mut reports) = (child_session(&task), host.subscribe());
    let about = |more: Value| {
        let mut data = json!({"sessionID": child.as_str(), "assistantMessageID": "msg_2"});
        let (into, more) = (data.as_object_mut(), more.as_object().cloned());
        into.expect("an object").extend(more.expect("an object"));
        data
    };
    opencode.happens("session.created", about(json!({}))).await;
    let sent = Prompt {
        id: task.prompt(0),
        text: "go".to_owned(),
        agent: "general".into(),
        model: None,
        effort: None,
        role: None,
    };
    soon(host.prompt(&child, sent)).await.expect("a prompt");
    let tokens = json!({"input": 3, "output": 4});
    for (kind, data) in [
        ("session.execution.started", json!({})),
        ("session.inbox.delivered", json!({"inboxID": prompt})),
        ("session.step.started", json!({"agent": "general"})),
        (
            "session.text.ended",
            json!({"ordinal": 0, "text": "Found it."}),
        ),
        (
            "session.step.ended",
            json!({"finish": "stop", "tokens": tokens}),
        ),
        ("session.execution.succeeded", json!({})),
    ] {
        opencode.happens(kind, about(data)).await;
    }
    while !matches!(
        soon(reports.next()).await,
        Some(Report::Session(_, SessionEvent::Idle))
    ) {}
    let seen = soon(host.inspect(&child, &task.prompt(0))).await;
    let seen = seen.expect("an answer");
    let answer = Some("Found it.".to_owned());
    let outcome = Outcome::Completed;
    assert_eq!(seen.standing, Standing::Done { outcome, answer });
    let messages = soon(host.messages(&child)).await.expect("a transcript");
    assert_eq!(messages.messages().len(), 2);

    let told = Notice {
        id: task.notice(0),
        message: Message {
            visible: "It is done.".to_owned(),
            hidden: String::new(),
        },
    };
    let parent = SessionId::from("ses_1");
    let delivered = json!({"sessionID": "ses_1", "inboxID": notice});
    let (told, ()) = tokio::join!(
        soon(host.deliver(&parent, told)),
        opencode.happens("session.inbox.delivered", delivered),
    );
    assert_eq!(told, Ok(Delivery::Taken));
    assert_eq!(soon(host.confirm(&parent, &task.notice(0))).await, Ok(true));
}

#[tokio::test]
async fn events_that_make_no_sense_do_no_harm() {
    let mut opencode = OpenCode::start(&[]).await;
    for data in [
        json!(null),
        json!(3),
        json!("x"),
        json!([1]),
        json!({"sessionID": 4}),
    ] {
        for kind in [
            "session.inbox.delivered",
            "session.tool.called",
            "form.created",
        ] {
            opencode.happens(kind, data.clone()).await;
        }
    }
    for data in [
        json!({"inboxID": "msg_1", "item": 3}),
        json!({"inboxID": "msg_1", "assistantMessageID": "msg_1", "id": 5, "ordinal": "x"}),
    ] {
        let mut data = data;
        data["sessionID"] = json!("ses_1");
        for kind in [
            "session.inbox.enqueued",
            "session.inbox.delivered",
            "session.step.started",
            "session.text.ended",
            "session.tool.success",
            "session.step.failed",
            "permission.asked",
            "session.compaction.ended",
        ] {
            opencode.happens(kind, data.clone()).await;
        }
    }
    let listed = opencode.get(&of("ses_1", "/inbox")).await;
    assert!(listed["data"].is_array());
}
