//! OpenCode as a script that says it listens where the test answers.

use std::{
    fs,
    future::pending,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    Json, Router,
    http::{HeaderMap, StatusCode, Uri},
    response::IntoResponse,
};
use serde_json::json;

use super::Home;

/// A program `opencode`, and the server it says it is.
pub(super) struct FakeOpencode {
    pub(super) bin: PathBuf,
    /// Keeps the server alive.
    _runtime: tokio::runtime::Runtime,
    pub(super) asked: Arc<AtomicUsize>,
}

/// What a fake does otherwise than the real one.
#[derive(Clone, Copy, Default)]
pub(super) struct Quirks {
    /// The first question is never answered.
    pub(super) hangs_first: bool,
    /// How long the plugins take.
    pub(super) loading: Duration,
    /// Whether OpenCode 2 could not load ours; nothing if it lists no plugins at all.
    pub(super) plugin_failed: Option<bool>,
    /// Its list is that of a later release.
    pub(super) is_release: bool,
}

/// What OpenCode 2 lists.
fn plugins(ours: &Path, quirks: Quirks) -> serde_json::Value {
    let state = match quirks.plugin_failed {
        Some(true) => json!({"status": "failed", "error": "Error: boom\n    at …"}),
        _ => json!({"status": "active"}),
    };
    let mut plugin = if quirks.is_release {
        json!({"state": state})
    } else {
        state
    };
    plugin["source"] = json!({"type": "local", "path": ours});
    json!([{"id": "opencode.skill", "source": {"type": "builtin"}, "status": "active"}, plugin])
}

impl FakeOpencode {
    pub(super) fn new(home: &Home, version: &str, tools: &[&str]) -> Self {
        Self::with(home, version, tools, Quirks::default())
    }

    pub(super) fn with(home: &Home, version: &str, tools: &[&str], quirks: Quirks) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0");
        let listener = runtime.block_on(listener).expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let key = home.path("key");
        let tools = json!(tools);
        let listed = home.user_file();
        let answer = move |uri: Uri, headers: HeaderMap| async move {
            let before = count.fetch_add(1, Ordering::SeqCst);
            if quirks.hangs_first && before == 0 {
                pending::<()>().await;
            }
            let key = fs::read_to_string(key).expect("a key");
            if headers.get("authorization").map(|sent| sent.as_bytes()) != Some(key.as_bytes()) {
                return StatusCode::UNAUTHORIZED.into_response();
            }
            match uri.path() {
                "/global/health" => Json(json!({"healthy": true})).into_response(),
                "/api/plugin" if quirks.plugin_failed.is_none() => {
                    Json(json!({"data": []})).into_response()
                }
                "/api/plugin" => Json(json!({"data": plugins(&listed, quirks)})).into_response(),
                "/experimental/tool/ids" => {
                    tokio::time::sleep(quirks.loading).await;
                    Json(tools).into_response()
                }
                _ => StatusCode::NOT_FOUND.into_response(),
            }
        };
        let server = axum::serve(listener, Router::new().fallback(answer));
        runtime.spawn(async { server.await });
        // What it starts has to end with it.
        let script = format!(
            "#!/bin/sh\n\
             test \"$1\" = --version && echo {version} && exit\n\
             case \"$*\" in 'serve --port 0 --hostname 127.0.0.1'*) ;; *) exit 3;; esac\n\
             printf 'Basic %s' $(printf 'opencode:%s' $OPENCODE_SERVER_PASSWORD | base64 -w 0) > {}\n\
             pwd > {}\n\
             echo Something else; echo \"$COMPLAINT\" >&2\n\
             sleep 300 & echo $$ $! > {}\n\
             echo opencode server listening on {url}\n\
             wait\n",
            home.path("key").display(),
            home.path("cwd").display(),
            home.path("pids").display(),
        );
        Self {
            bin: program(home, &script),
            _runtime: runtime,
            asked,
        }
    }

    pub(super) fn check(&self, home: &Home) -> Command {
        check_with(home, &self.bin)
    }
}

/// Makes a script a program. Another process writes it: a program that a process of this test
/// still has open for writing cannot be started.
pub(super) fn program(home: &Home, script: &str) -> PathBuf {
    let (text, folder) = (home.path("script"), home.path("bin"));
    fs::write(&text, script).expect("written");
    fs::create_dir_all(&folder).expect("a folder");
    let program = folder.join("opencode");
    let mut install = Command::new("install");
    install.args(["-m", "755"]).arg(text).arg(&program);
    assert!(install.status().expect("runs").success());
    program
}

pub(super) fn check_with(home: &Home, opencode: &Path) -> Command {
    let mut command = home.command();
    let folder = opencode.parent().expect("a folder").display().to_string();
    command.arg("--check");
    command.env("PATH", format!("{folder}:/usr/bin:/bin"));
    command
}

/// Whether what the fake started has ended.
pub(super) fn nothing_is_left(home: &Home) -> bool {
    let pids = fs::read_to_string(home.path("pids")).expect("started");
    let mut pids = pids.split_whitespace();
    pids.all(|pid| {
        let state = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // Whoever inherits what has ended may not have looked yet.
        state.is_empty() || state.contains(") Z ")
    })
}
