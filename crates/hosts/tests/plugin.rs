//! The plugin file, in a real JavaScript engine. Needs `node` in the PATH.
#![expect(clippy::expect_used, reason = "a test that cannot go on should stop")]

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use asyncagents_core::{agent::ToolSpec, id::SessionId};
use asyncagents_hosts::{
    Connection, Request, Signal,
    plugin::{
        Answer, Bounds, BridgeConnection, BridgeHandler, MARK, PluginLink, ToolCall, render, serve,
    },
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{net::TcpListener, process::Command, sync::mpsc, time::timeout};

fn tools() -> Vec<ToolSpec> {
    let task = ToolSpec {
        name: "asyncagents_task".to_owned(),
        description: "Launches a task, \"quoted\" and in $& `ticks`.".to_owned(),
        schema: r#"{"type":"object","properties":{"prompt":{"type":"string"},"agent":{"type":"string"}},"required":["prompt"]}"#.to_owned(),
    };
    let list = ToolSpec {
        name: "asyncagents_list".to_owned(),
        description: "Lists tasks.".to_owned(),
        schema: r#"{"type":"object","properties":{}}"#.to_owned(),
    };
    vec![task, list]
}

/// A plugin that starts the relay, in a folder that vanishes.
struct Plugin {
    _folder: TempDir,
    file: PathBuf,
}

impl Plugin {
    fn new() -> Self {
        let relay = scripts().join("relay.mjs");
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("asyncagents.mjs");
        let text = render(relay.to_str().expect("a plain path"), &tools());
        fs::write(&file, text).expect("a file");
        Self {
            _folder: folder,
            file,
        }
    }

    /// Runs a script with the plugin; what it prints, if all is well.
    async fn run(&self, script: &str, port: u16) -> String {
        let run = Command::new("node")
            .arg("--no-warnings")
            .arg(scripts().join(script))
            .env("PLUGIN", &self.file)
            .env("BRIDGE_PORT", port.to_string())
            .env_remove("ASYNCAGENTS_BIN")
            .kill_on_drop(true)
            .output();
        let output = timeout(Duration::from_secs(300), run)
            .await
            .expect("node ends by itself")
            .expect("the plugin is tested with Node.js: `node` 20 or newer must be in the PATH");
        let said = String::from_utf8_lossy(&output.stdout);
        let complained = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}\n{complained}");
        assert_eq!(complained, "");
        said.into_owned()
    }
}

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plugin")
}

#[test]
fn the_first_line_says_whose_file_it_is() {
    let text = render("/usr/bin/asyncagents", &tools());
    let first = text.lines().next().expect("a line");
    assert!(first.contains(MARK), "{first}");
}

#[test]
fn what_is_filled_in_is_no_gap() {
    let mut tools = tools();
    tools[0].description = "__PROGRAM__ __TOOLS__ __VERSION__".to_owned();
    let text = render(r#"C:\a "b" __TOOLS__"#, &tools);
    assert!(text.contains(r#"const PROGRAM = "C:\\a \"b\" __TOOLS__""#));
    assert!(text.contains(r#""description": "__PROGRAM__ __TOOLS__ __VERSION__""#));
    assert!(text.contains(concat!(r#"const VERSION = ""#, env!("CARGO_PKG_VERSION"))));
}

#[tokio::test]
async fn the_plugin_behaves_in_its_host() {
    Plugin::new().run("plugin.test.mjs", 0).await;
}

#[tokio::test]
async fn the_plugin_behaves_in_an_opencode_2() {
    Plugin::new().run("opencode2.test.mjs", 0).await;
}

/// A door that asks OpenCode something before it answers.
#[derive(Default)]
struct Curious {
    instance: Mutex<Option<Arc<BridgeConnection>>>,
    signals: Mutex<Option<mpsc::UnboundedReceiver<Signal>>>,
    calls: Mutex<Vec<ToolCall>>,
    gone: Mutex<Vec<String>>,
}

#[async_trait]
impl BridgeHandler for Curious {
    async fn hello(&self, instance: Arc<BridgeConnection>) -> Vec<ToolSpec> {
        *self.signals.lock().expect("signals") = Some(instance.signals());
        *self.instance.lock().expect("an instance") = Some(instance);
        tools()
    }

    async fn tools(&self, _directory: &str) -> Vec<ToolSpec> {
        let mut tools = tools();
        tools[0].description = "Live.".to_owned();
        tools
    }

    async fn call(&self, call: ToolCall) -> Result<Answer, String> {
        if call.input.contains("fail") {
            return Err("no, thank you".to_owned());
        }
        let instance = self.instance.lock().expect("an instance").clone();
        let instance = instance.expect("a hello before the call");
        let request = Request::post(format!("/session/{}", call.session), json!({"a": 1}))
            .query("limit", "a&b");
        let response = instance.send(request).await.expect("a response");
        assert_eq!(response.next.as_deref(), Some("next"));
        self.calls.lock().expect("calls").push(call);
        Ok(Answer {
            output: format!("{} {}", response.status, response.body),
            title: None,
        })
    }

    async fn goodbye(&self, directory: &str) {
        self.gone.lock().expect("names").push(directory.to_owned());
    }

    async fn hello_opencode2(&self, _: Arc<PluginLink>) -> Result<Vec<ToolSpec>, String> {
        Err("this is no OpenCode 2".to_owned())
    }

    async fn bounds(&self, _: &SessionId) -> Result<Bounds, String> {
        Err("this is no OpenCode 2".to_owned())
    }

    async fn goodbye_opencode2(&self) {}
}

#[tokio::test]
async fn the_plugin_and_the_bridge_understand_each_other() {
    let socket = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = socket.local_addr().expect("an address").port();
    let door = Arc::new(Curious::default());
    let bridge = async {
        let (stream, _) = socket.accept().await.expect("the relay");
        let (reader, writer) = stream.into_split();
        let door = Arc::clone(&door);
        serve(
            reader,
            writer,
            &["session.idle", "message.part.updated"],
            door,
        )
        .await
    };
    let plugin = Plugin::new();
    let (said, served) = tokio::join!(plugin.run("host.mjs", port), bridge);
    served.expect("the end of the plugin is no error");

    let said: Value = serde_json::from_str(&said).expect("only JSON");
    let answered = said["first"]["output"].as_str().expect("an output");
    let (status, request) = answered.split_once(' ').expect("two words");
    assert_eq!(status, "200");
    let request: Value = serde_json::from_str(request).expect("a request");
    assert_eq!(
        request,
        json!({
            "method": "POST",
            "url": "/session/ses_1",
            "query": {"limit": "a&b", "directory": "/home/user/project"},
            "body": {"a": 1},
        })
    );
    assert_eq!(said["failed"], "no, thank you");
    assert_eq!(said["definition"]["description"], "Live.");
    assert_eq!(
        said["definition"]["jsonSchema"]["required"],
        json!(["prompt"])
    );

    let calls = door.calls.lock().expect("calls").clone();
    let inputs: Vec<_> = calls.iter().map(|call| call.input.as_str()).collect();
    assert_eq!(inputs, [r#"{"prompt":"look"}"#, r#"{"prompt":"last"}"#]);
    assert_eq!(calls[0].agent.as_deref(), Some("build"));
    assert_eq!(calls[0].message.as_deref(), Some("msg_1"));
    assert_eq!(*door.gone.lock().expect("names"), ["/home/user/project"]);

    let mut signals = door
        .signals
        .lock()
        .expect("signals")
        .take()
        .expect("a hello");
    let heard = signals.recv().await.expect("an event");
    assert!(matches!(heard, Signal::Event(event) if event.get().contains("session.idle")));
    // Of a call it is told what was called, and not what came of it.
    let Some(Signal::Event(heard)) = signals.recv().await else {
        panic!("no second event");
    };
    let heard: Value = serde_json::from_str(heard.get()).expect("JSON");
    assert_eq!(
        heard["properties"]["part"],
        json!({
            "id": "prt_1", "sessionID": "ses_1", "type": "tool", "tool": "bash",
            "state": {"status": "completed", "input": {"command": "ls"}},
        })
    );
    assert!(
        signals.recv().await.is_none(),
        "the end, and nothing unwanted"
    );
}
