//! The Rust end of the plugin, with the plugin's side written out.
#![expect(clippy::expect_used, reason = "a test that cannot go on should stop")]

use std::{
    future::pending,
    io,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use asyncagents_core::{
    agent::{ToolSpec, Tools},
    id::SessionId,
    moment::Moment,
    port::HostError,
};
use asyncagents_hosts::{
    Connection, Request, Signal,
    plugin::{Answer, Asked, Bounds, BridgeConnection, BridgeHandler, PluginLink, ToolCall, serve},
};
use serde_json::{Value, json};
use tokio::{
    io::{
        AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
        duplex, split,
    },
    sync::{Semaphore, mpsc},
    task::JoinHandle,
    time::timeout,
};

const FOLDER: &str = "/home/user/project";

/// A door that tells the test what comes through it.
struct Porch {
    told: mpsc::UnboundedSender<String>,
    instances: Mutex<Vec<Arc<BridgeConnection>>>,
    link: Mutex<Option<Arc<PluginLink>>>,
    /// What binds every session.
    bounds: Mutex<Option<Bounds>>,
    /// A hello is answered when there is a permit.
    hellos: Semaphore,
}

struct Dropped(mpsc::UnboundedSender<String>);

impl Drop for Dropped {
    fn drop(&mut self) {
        let _ = self.0.send("dropped".to_owned());
    }
}

impl Porch {
    fn tell(&self, what: &str) {
        let _ = self.told.send(what.to_owned());
    }

    fn instance(&self) -> Arc<BridgeConnection> {
        let instances = self.instances.lock().expect("instances");
        Arc::clone(instances.last().expect("an instance"))
    }
}

#[async_trait]
impl BridgeHandler for Porch {
    async fn hello(&self, instance: Arc<BridgeConnection>) -> Vec<ToolSpec> {
        self.tell(&format!(
            "hello {} {}",
            instance.directory(),
            instance.pid()
        ));
        self.instances.lock().expect("instances").push(instance);
        self.hellos.acquire().await.expect("a permit").forget();
        let schema = "{\"type\":\"object\",\n\"properties\":{\"z\":{},\"a\":{}}}";
        vec![ToolSpec {
            name: "asyncagents_task".to_owned(),
            description: "Launches.".to_owned(),
            schema: schema.to_owned(),
        }]
    }

    async fn tools(&self, directory: &str) -> Vec<ToolSpec> {
        self.tell(&format!("tools {directory}"));
        Vec::new()
    }

    async fn call(&self, call: ToolCall) -> Result<Answer, String> {
        self.tell(&format!("{} {}", call.tool, call.input));
        let _dropped = Dropped(self.told.clone());
        pending().await
    }

    async fn goodbye(&self, directory: &str) {
        self.tell(&format!("goodbye {directory}"));
    }

    async fn hello_opencode2(&self, opencode: Arc<PluginLink>) -> Result<Vec<ToolSpec>, String> {
        self.tell(&format!("hello opencode2 {}", opencode.pid()));
        *self.link.lock().expect("a link") = Some(opencode);
        Ok(Vec::new())
    }

    async fn bounds(&self, session: &SessionId) -> Result<Bounds, String> {
        self.tell(&format!("bounds {session}"));
        let bounds = self.bounds.lock().expect("bounds").clone();
        bounds.ok_or_else(|| "this task is not known".to_owned())
    }

    async fn goodbye_opencode2(&self) {
        self.tell("goodbye opencode2");
    }
}

/// The plugin's side, and what came through the door.
struct Plugin {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    writer: WriteHalf<DuplexStream>,
    door: Arc<Porch>,
    told: mpsc::UnboundedReceiver<String>,
    serving: JoinHandle<io::Result<()>>,
}

impl Plugin {
    /// A bridge that welcomes so many instances.
    async fn start(hellos: usize) -> Self {
        let (here, there) = duplex(1024 * 1024);
        let (reader, writer) = split(here);
        let (sender, told) = mpsc::unbounded_channel();
        let door = Arc::new(Porch {
            told: sender,
            instances: Mutex::default(),
            link: Mutex::default(),
            bounds: Mutex::default(),
            hellos: Semaphore::new(hellos),
        });
        let inside = Arc::clone(&door);
        let serving = tokio::spawn(async move {
            let (reader, writer) = split(there);
            serve(reader, writer, &["session.idle"], inside).await
        });
        let mut plugin = Self {
            lines: BufReader::new(reader).lines(),
            writer,
            door,
            told,
            serving,
        };
        let listen =
            json!({"jsonrpc": "2.0", "method": "listen", "params": {"events": ["session.idle"]}});
        assert_eq!(plugin.reads().await, listen, "first of all");
        plugin
    }

    async fn says(&mut self, message: Value) {
        let line = format!("{message}\n");
        let written = self.writer.write_all(line.as_bytes()).await;
        written.expect("a bridge");
    }

    async fn reads(&mut self) -> Value {
        let line = soon(self.lines.next_line()).await.expect("a pipe");
        serde_json::from_str(&line.expect("a line")).expect("JSON")
    }

    async fn hello(&mut self, id: u32) {
        let params = json!({"directory": FOLDER, "pid": 7, "began": 5, "opencode_plugin": 1});
        self.says(json!({"id": id, "method": "hello", "params": params}))
            .await;
    }

    async fn goodbye(&mut self) {
        let params = json!({"directory": FOLDER});
        self.says(json!({"method": "goodbye", "params": params}))
            .await;
    }

    async fn happens(&mut self, directory: &str, number: u32) {
        let params = json!({"directory": directory, "event": {"type": "x", "properties": number}});
        self.says(json!({"method": "event", "params": params}))
            .await;
    }

    async fn told(&mut self) -> String {
        soon(self.told.recv()).await.expect("something")
    }

    async fn leaves(self) {
        drop((self.lines, self.writer));
        let served = soon(self.serving).await.expect("no panic");
        served.expect("an orderly end");
    }
}

/// Fails rather than hangs.
async fn soon<T>(future: impl Future<Output = T>) -> T {
    let waited = timeout(Duration::from_secs(60), future).await;
    waited.expect("an end within a minute")
}

async fn heard(signals: &mut mpsc::UnboundedReceiver<Signal>) -> String {
    match soon(signals.recv()).await {
        Some(Signal::Event(event)) => event.get().to_owned(),
        Some(Signal::Missed) => "missed".to_owned(),
        None => "the end".to_owned(),
    }
}

#[tokio::test]
async fn an_instance_comes_and_hears_its_own_events() {
    let mut plugin = Plugin::start(3).await;
    plugin.hello(1).await;
    let answer = plugin.reads().await["result"].clone();
    let schema = json!({"type": "object", "properties": {"z": {}, "a": {}}});
    let tool = json!({"name": "asyncagents_task", "description": "Launches.", "schema": schema});
    assert_eq!(answer["tools"], json!([tool]));
    assert_eq!(plugin.told().await, format!("hello {FOLDER} 7"));

    let instance = plugin.door.instance();
    assert_eq!(instance.began(), Some(Moment::from_millis(5)));
    let mut signals = instance.signals();
    plugin.happens("/elsewhere", 1).await;
    plugin.happens(FOLDER, 2).await;
    let event = r#"{"type":"x","properties":2}"#;
    assert_eq!(heard(&mut signals).await, event);

    // Set up again: it is the same instance, but something may have happened in between.
    plugin.hello(2).await;
    plugin.reads().await;
    assert!(Arc::ptr_eq(&instance, &plugin.door.instance()));
    assert_eq!(heard(&mut signals).await, "missed");

    assert_eq!(plugin.told().await, format!("hello {FOLDER} 7"));
    plugin.goodbye().await;
    assert_eq!(plugin.told().await, format!("goodbye {FOLDER}"));

    // OpenCode closes a folder to open it again; whoever listens waits for that.
    plugin.hello(3).await;
    plugin.reads().await;
    assert!(Arc::ptr_eq(&instance, &plugin.door.instance()));
    assert_eq!(heard(&mut signals).await, "missed");
    plugin.happens(FOLDER, 3).await;
    let event = r#"{"type":"x","properties":3}"#;
    assert_eq!(heard(&mut signals).await, event);
    plugin.leaves().await;
    assert_eq!(heard(&mut signals).await, "the end");
    assert_eq!(heard(&mut instance.signals()).await, "the end");
}

#[tokio::test]
async fn comings_and_goings_keep_their_order() {
    let mut plugin = Plugin::start(0).await;
    plugin.hello(1).await;
    plugin.goodbye().await;
    plugin.hello(2).await;
    assert_eq!(plugin.told().await, format!("hello {FOLDER} 7"));
    // The first hello is not answered yet; other things are.
    let about = json!({"directory": "/elsewhere"});
    plugin
        .says(json!({"id": 3, "method": "tools", "params": about}))
        .await;
    assert_eq!(plugin.reads().await["id"], 3);
    assert_eq!(plugin.told().await, "tools /elsewhere");
    plugin.door.hellos.add_permits(2);
    assert_eq!(plugin.told().await, format!("goodbye {FOLDER}"));
    assert_eq!(plugin.told().await, format!("hello {FOLDER} 7"));
    assert_eq!(plugin.reads().await["id"], 1);
    assert_eq!(plugin.reads().await["id"], 2);
}

#[tokio::test]
async fn a_plugin_of_another_age_is_told_what_to_do() {
    let mut plugin = Plugin::start(1).await;
    let params = json!({"directory": FOLDER, "pid": 7, "opencode_plugin": 3});
    plugin
        .says(json!({"id": 1, "method": "hello", "params": params}))
        .await;
    let answer = plugin.reads().await;
    let why = answer["error"]["message"].as_str().expect("a reason");
    assert!(why.contains("`asyncagents setup opencode`"), "{why}");
}

#[tokio::test]
async fn a_call_nobody_waits_for_is_dropped() {
    let mut plugin = Plugin::start(1).await;
    let call = json!({"directory": FOLDER, "sessionID": "ses_1", "tool": "asyncagents_list"});
    plugin
        .says(json!({"id": 5, "method": "call", "params": call}))
        .await;
    assert_eq!(plugin.told().await, "asyncagents_list {}");
    plugin
        .says(json!({"method": "cancel", "params": {"id": 5}}))
        .await;
    assert_eq!(plugin.told().await, "dropped");
    plugin
        .says(json!({"id": 6, "method": "call", "params": {}}))
        .await;
    let answer = plugin.reads().await;
    assert_eq!(
        (&answer["id"], &answer["error"]["code"]),
        (&json!(6), &json!(-32602))
    );
}

#[tokio::test(start_paused = true)]
async fn a_request_is_answered_or_somebody_says_why_not() {
    let mut plugin = Plugin::start(1).await;
    plugin.hello(1).await;
    plugin.reads().await;
    let instance = plugin.door.instance();
    let ask = || {
        let instance = Arc::clone(&instance);
        tokio::spawn(async move { instance.send(Request::get("/agent").query("a", "b")).await })
    };
    let ended = async |asking: JoinHandle<_>| asking.await.expect("no panic");

    let asking = ask();
    let request = plugin.reads().await;
    let query = json!({"a": "b"});
    let wanted = json!({"directory": FOLDER, "method": "GET", "path": "/agent", "query": query});
    assert_eq!(request["params"], wanted);
    let result = json!({"status": 404, "body": "{}"});
    plugin
        .says(json!({"id": request["id"], "result": result}))
        .await;
    let response = ended(asking).await.expect("an answer");
    assert_eq!((response.status, response.body.as_str()), (404, "{}"));

    let asking = ask();
    let id = plugin.reads().await["id"].clone();
    let error = json!({"code": -32000, "message": "socket hang up"});
    plugin.says(json!({"id": id, "error": error})).await;
    let why = "GET /agent: socket hang up".to_owned();
    assert_eq!(ended(asking).await, Err(HostError::Unreachable(why)));

    // Time passes by itself: nobody answers.
    let why = "GET /agent: OpenCode did not answer in time".to_owned();
    assert_eq!(ended(ask()).await, Err(HostError::Unreachable(why)));

    plugin.leaves().await;
    let why = "GET /agent: OpenCode is gone".to_owned();
    assert_eq!(ended(ask()).await, Err(HostError::Unreachable(why)));
}

#[tokio::test]
async fn when_the_plugin_is_gone_its_instances_are() {
    let mut plugin = Plugin::start(1).await;
    plugin.hello(1).await;
    plugin.reads().await;
    let door = Arc::clone(&plugin.door);
    let mut signals = door.instance().signals();
    assert_eq!(plugin.told().await, format!("hello {FOLDER} 7"));
    drop((plugin.lines, plugin.writer));
    let goodbye = soon(plugin.told.recv()).await;
    assert_eq!(goodbye, Some(format!("goodbye {FOLDER}")));
    assert_eq!(heard(&mut signals).await, "the end");
    let served = soon(plugin.serving).await.expect("no panic");
    served.expect("an orderly end");
}

/// An OpenCode 2 that has connected.
async fn opencode2(plugin: &mut Plugin) -> Arc<PluginLink> {
    let params = json!({"generation": 2, "pid": 9, "began": 5, "opencode_plugin": 2});
    plugin
        .says(json!({"id": 1, "method": "hello", "params": params}))
        .await;
    assert_eq!(plugin.reads().await["result"]["tools"], json!([]));
    assert_eq!(plugin.told().await, "hello opencode2 9");
    let link = plugin.door.link.lock().expect("a link").clone();
    link.expect("a hello")
}

#[tokio::test]
async fn an_opencode_2_comes_once_for_all_its_folders() {
    let mut plugin = Plugin::start(0).await;
    let link = opencode2(&mut plugin).await;
    assert_eq!(link.began(), Some(Moment::from_millis(5)));
    let mut signals = link.listen(&["session.deleted"]).expect("a plugin");
    let follow = plugin.reads().await;
    assert_eq!(follow["method"], "follow");
    assert_eq!(follow["params"], json!({"events": ["session.deleted"]}));
    let event = json!({"type": "x", "data": 1});
    plugin
        .says(json!({"method": "event", "params": {"event": event}}))
        .await;
    assert_eq!(heard(&mut signals).await, r#"{"type":"x","data":1}"#);
    plugin.says(json!({"method": "event", "params": {}})).await;
    assert_eq!(heard(&mut signals).await, "missed");

    // Its plugins were loaded again: it is the same OpenCode.
    plugin
        .says(json!({"method": "goodbye", "params": {}}))
        .await;
    assert_eq!(plugin.told().await, "goodbye opencode2");
    assert!(Arc::ptr_eq(&link, &opencode2(&mut plugin).await));
    assert_eq!(heard(&mut signals).await, "missed");
    plugin.leaves().await;
    assert_eq!(heard(&mut signals).await, "the end");
    assert!(link.listen(&[]).is_err());
}

#[tokio::test]
async fn an_opencode_that_is_neither_1_nor_2_is_refused() {
    let mut plugin = Plugin::start(0).await;
    for params in [
        json!({"generation": 3, "pid": 9, "opencode_plugin": 2}),
        json!({"generation": 2, "directory": FOLDER, "pid": 9, "opencode_plugin": 2}),
        json!({"pid": 9, "opencode_plugin": 2}),
    ] {
        plugin
            .says(json!({"id": 1, "method": "hello", "params": params}))
            .await;
        assert_eq!(plugin.reads().await["error"]["code"], -32602);
    }
}

#[tokio::test]
async fn opencodes_own_methods_are_called_through_the_plugin() {
    let mut plugin = Plugin::start(0).await;
    let link = opencode2(&mut plugin).await;
    let ask = async |plugin: &mut Plugin, result: Value| {
        let link = Arc::clone(&link);
        let asking = tokio::spawn(async move {
            let args = json!({"sessionID": "ses_1"});
            link.ask("session.get", &args, None).await
        });
        let request = plugin.reads().await;
        assert_eq!(request["method"], "ask");
        let params = json!({"method": "session.get", "args": {"sessionID": "ses_1"}});
        assert_eq!(request["params"], params);
        plugin
            .says(json!({"id": request["id"], "result": result}))
            .await;
        asking.await.expect("no panic")
    };
    let done = ask(&mut plugin, json!({"value": {"id": "ses_1"}})).await;
    assert_eq!(done, Ok(Asked::Done(json!({"id": "ses_1"}))));
    let error = json!({"tag": "Session.NotFoundError", "message": "none"});
    let failed = Asked::Failed {
        tag: "Session.NotFoundError".to_owned(),
        message: "none".to_owned(),
    };
    let answered = ask(&mut plugin, json!({"error": error})).await;
    assert_eq!(answered, Ok(failed));
    let why = "this OpenCode has no `session.get` for plugins".to_owned();
    let unknown = ask(&mut plugin, json!({"unknown": true})).await;
    assert_eq!(unknown, Err(HostError::Refused(why)));
}

#[tokio::test]
async fn a_session_is_shown_and_permitted_what_binds_it() {
    let mut plugin = Plugin::start(0).await;
    let rules = json!({"sessionID": "ses_a", "tools": ["shell", "edit", "asyncagents_task"]});
    let rules = json!({"id": 2, "method": "rules", "params": rules});
    plugin.says(rules.clone()).await;
    let why = plugin.reads().await["error"]["message"].clone();
    assert_eq!(why, "this task is not known");
    let only = ["shell(git:*)".parse().expect("a rule")];
    *plugin.door.bounds.lock().expect("bounds") = Some(Bounds {
        prefix: "asyncagents_".to_owned(),
        may_delegate: false,
        tools: vec![Tools {
            only: Some(only.to_vec()),
            ..Tools::default()
        }],
    });
    plugin.says(rules).await;
    let shown = plugin.reads().await["result"].clone();
    let hidden = json!(["edit", "asyncagents_task"]);
    assert_eq!(shown, json!({"hidden": hidden, "guarded": true}));

    let mut permit = async |command: &str| {
        let input = json!({"command": command});
        let params =
            json!({"sessionID": "ses_a", "tool": "shell", "directory": FOLDER, "input": input});
        plugin
            .says(json!({"id": 3, "method": "permit", "params": params}))
            .await;
        plugin.reads().await
    };
    assert!(permit("git status").await["error"].is_null());
    let refused = permit("rm -rf .").await["error"]["message"].clone();
    let why = "this task may not use `shell` in this way: only `git *`";
    assert_eq!(refused, why);
}
