//! The bridge of an OpenCode 2, as a process: how it reaches the OpenCode that has started it, what
//! it lets a session use, and when it ends. The plugin and the server are this test, in one process
//! as they are in OpenCode.
#![cfg(target_os = "linux")]
#![expect(clippy::expect_used, reason = "a test that cannot go on should stop")]

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    process::{self, Stdio},
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Json, Router,
    extract::{Request, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    net::TcpListener,
    process::{Child, ChildStdin, ChildStdout, Command},
    time::timeout,
};

/// How long anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a server wants to see: `opencode:` and its password.
#[derive(Clone, Copy)]
struct Password {
    plain: &'static str,
    sent: &'static str,
}

const FILED: Password = Password {
    plain: "filed",
    sent: "Basic b3BlbmNvZGU6ZmlsZWQ=",
};
const LATE: Password = Password {
    plain: "late",
    sent: "Basic b3BlbmNvZGU6bGF0ZQ==",
};
const GIVEN: Password = Password {
    plain: "given",
    sent: "Basic b3BlbmNvZGU6Z2l2ZW4=",
};

/// An OpenCode 2 that lists its agents. It remembers the paths that it was asked for.
#[derive(Clone)]
struct Server {
    password: Password,
    port: u16,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    async fn start(password: Password) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let asked = Arc::default();
        let server = Self {
            password,
            port,
            asked,
        };
        let router = Router::new().fallback(answer).with_state(server.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        server
    }

    fn was_asked(&self, path: &str) -> bool {
        let asked = self.asked.lock().expect("paths");
        asked.iter().any(|asked| asked == path)
    }
}

async fn answer(State(server): State<Server>, request: Request) -> Response {
    let sent = request.headers().get(header::AUTHORIZATION);
    if sent.is_none_or(|sent| sent != server.password.sent) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let path = request.uri().path().to_owned();
    server.asked.lock().expect("paths").push(path.clone());
    match path.as_str() {
        "/api/health" => Json(json!({"healthy": true, "version": "2", "pid": process::id()})),
        "/api/agent" => Json(json!({"data": agents("over HTTP")})),
        _ => return StatusCode::NOT_FOUND.into_response(),
    }
    .into_response()
}

fn agents(about: &str) -> Value {
    json!([{"id": "general", "description": about, "permissions": []}])
}

/// A bridge, with a home of its own.
struct Bridge {
    home: TempDir,
    child: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    /// What the plugin was asked meanwhile.
    asked: Vec<Value>,
}

impl Bridge {
    /// Started by an OpenCode whose home has this service file and whose environment has this
    /// password.
    async fn start(filed: Option<&Server>, given: Option<Password>) -> Self {
        let home = tempfile::tempdir().expect("a folder");
        if let Some(server) = filed {
            write_service(&home, server);
        }
        let mut command = Command::new(env!("CARGO_BIN_EXE_asyncagents"));
        command
            .args(["opencode-bridge", "-c", "worker.autostart=false"])
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", home.path())
            .envs(given.map(|password| ("OPENCODE_PASSWORD", password.plain)))
            .current_dir(home.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        let mut child = command.spawn().expect("a bridge");
        let stdin = child.stdin.take().expect("its input");
        let stdout = child.stdout.take().expect("its output");
        let mut bridge = Self {
            home,
            child,
            stdin,
            lines: BufReader::new(stdout).lines(),
            asked: Vec::new(),
        };
        let hello = json!({"generation": 2, "pid": process::id(), "opencode_plugin": 2});
        let welcome = bridge.call("hello", hello).await;
        assert!(welcome["tools"].is_array(), "{welcome}");
        bridge
    }

    /// What it answers. What it asks meanwhile is answered as the plugin would.
    async fn call(&mut self, method: &str, params: Value) -> Value {
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        self.say(&request).await;
        loop {
            let line = timeout(PATIENCE, self.lines.next_line()).await;
            let line = line.expect("in time").expect("a pipe").expect("a line");
            let message: Value = serde_json::from_str(&line).expect("JSON");
            if message["method"].is_null() {
                assert_eq!(message["error"], Value::Null, "{method}");
                return message["result"].clone();
            }
            if !message["id"].is_null() {
                let result = json!({"value": {"data": agents("through the plugin")}});
                self.say(&json!({"jsonrpc": "2.0", "id": message["id"], "result": result}))
                    .await;
            }
            self.asked.push(message);
        }
    }

    async fn say(&mut self, message: &Value) {
        let line = format!("{message}\n");
        let written = self.stdin.write_all(line.as_bytes()).await;
        written.expect("a pipe");
    }

    /// How a model is told of the agents in a folder.
    async fn agents_in(&mut self, folder: &str) -> String {
        let tools = self.call("tools", json!({"directory": folder})).await;
        let about = tools["tools"][0]["description"].as_str();
        let line = about.and_then(|about| about.lines().find(|it| it.starts_with("- general")));
        line.unwrap_or_default().to_owned()
    }

    fn follows_events(&self) -> bool {
        self.asked.iter().any(|asked| asked["method"] == "follow")
    }

    fn database(&self) -> PathBuf {
        self.home
            .path()
            .join(".local/share/asyncagents/asyncagents.db")
    }
}

/// What a background server writes about itself.
fn write_service(home: &TempDir, server: &Server) {
    let folder = home.path().join(".local/state/opencode");
    fs::create_dir_all(&folder).expect("a folder");
    let url = format!("http://127.0.0.1:{}", server.port);
    let text = json!({"url": url, "pid": process::id(), "password": server.password.plain});
    // It is there with its mode, or not at all.
    let (new, file) = (folder.join("new"), folder.join("service.json"));
    fs::write(&new, text.to_string()).expect("a file");
    fs::set_permissions(&new, fs::Permissions::from_mode(0o600)).expect("a mode");
    fs::rename(&new, &file).expect("a file");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_background_server_is_asked_over_http_with_the_password_of_its_file() {
    let server = Server::start(FILED).await;
    let mut bridge = Bridge::start(Some(&server), None).await;
    assert_eq!(bridge.agents_in("/srv/a").await, "- general: over HTTP");
    assert!(!bridge.follows_events(), "{:?}", bridge.asked);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_serve_is_asked_over_http_with_the_password_of_its_environment() {
    let server = Server::start(GIVEN).await;
    let mut bridge = Bridge::start(None, Some(GIVEN)).await;
    assert!(server.was_asked("/api/health"), "whether it is the one");
    assert_eq!(bridge.agents_in("/srv/a").await, "- general: over HTTP");
    assert!(!bridge.follows_events(), "{:?}", bridge.asked);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_password_the_plugin_is_asked_until_the_file_comes() {
    let mut bridge = Bridge::start(None, None).await;
    assert!(bridge.follows_events(), "{:?}", bridge.asked);
    let before = bridge.agents_in("/srv/a").await;
    assert_eq!(before, "- general: through the plugin");
    let server = Server::start(LATE).await;
    write_service(&bridge.home, &server);
    assert_eq!(bridge.agents_in("/srv/b").await, "- general: over HTTP");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_of_ours_without_a_task_may_use_nothing() {
    let server = Server::start(FILED).await;
    let mut bridge = Bridge::start(Some(&server), None).await;
    let tools = json!(["shell", "asyncagents_task"]);
    let asked = json!({"sessionID": "ses_asyncagents_nobody", "tools": tools});
    let rules = bridge.call("rules", asked).await;
    assert_eq!(rules, json!({"hidden": tools, "guarded": true}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bridge_ends_when_a_newer_version_has_the_database() {
    let server = Server::start(FILED).await;
    let mut bridge = Bridge::start(Some(&server), None).await;
    let database = rusqlite::Connection::open(bridge.database()).expect("a database");
    let changed = database.pragma_update(None, "user_version", 10_000);
    changed.expect("another format");
    let ended = timeout(PATIENCE, bridge.child.wait()).await;
    let ended = ended.expect("it ends").expect("a status");
    assert!(ended.success(), "{ended}");
}
