//! The queue of a thread's messages, by Codex's own app server.
//!
//! A message with our ID becomes a turn of the thread when it is idle. Codex runs the same ID twice if
//! it gets it twice, so what may have been sent is looked for before it is sent again.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use asyncagents_core::{
    id::{PostId, SessionId},
    port::{HostError, Notice},
};
use futures_util::{SinkExt, StreamExt};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};
use tokio::{
    io::AsyncWriteExt,
    net::UnixStream,
    process::{Child, ChildStdin, ChildStdout, Command},
    time,
};
use tokio_tungstenite::{WebSocketStream, client_async, tungstenite::Message};

use crate::lines::Lines;

/// What is queued comes to the model as the user's words.
const NOT_THE_USER: &str =
    "Notice from asyncagents about a background task. The user has not said this:";

/// How long Codex may take to answer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The longest answer that is read: a queue with long messages in it.
const LONGEST_LINE: usize = 16_000_000;

/// The queues of one Codex.
pub(super) struct Queue {
    home: PathBuf,
    program: PathBuf,
}

impl Queue {
    pub(super) fn new(home: PathBuf, program: PathBuf) -> Self {
        Self { home, program }
    }

    /// Puts a message into the queue of a thread.
    pub(super) async fn add(&self, thread: &SessionId, notice: &Notice) -> Result<(), HostError> {
        let text = format!(
            "{NOT_THE_USER}\n\n{}\n\n{}\n\n[asyncagents notice {}]",
            notice.message.visible, notice.message.hidden, notice.id
        );
        let params = json!({
            "threadId": thread.as_str(),
            "input": [{"type": "text", "text": text}],
            "clientUserMessageId": notice.id.to_string(),
        });
        self.ask("thread/queue/add", params).await.map(drop)
    }

    /// Whether a message waits in the queue of a thread.
    pub(super) async fn has(&self, thread: &SessionId, notice: &PostId) -> Result<bool, HostError> {
        let params = json!({"threadId": thread.as_str()});
        let listed = self.ask("thread/queue/list", params).await?;
        Ok(listed.get().contains(&notice.to_string()))
    }

    /// One question to the daemon, if one runs, for it has the threads of its windows; or to an app
    /// server of its own, which shares the queue's file with them. What was sent to one is not sent to
    /// the other.
    async fn ask(&self, method: &str, params: Value) -> Result<Box<RawValue>, HostError> {
        let asked = async {
            let mut server = match Daemon::connect(&self.home).await {
                Some(daemon) => Server::Daemon(daemon),
                None => Server::Own(OwnServer::start(self)?),
            };
            let client = json!({
                "clientInfo": {"name": "asyncagents", "version": env!("CARGO_PKG_VERSION")},
                "capabilities": {"experimentalApi": true},
            });
            server.call(1, "initialize", &client).await?;
            server.send(&json!({"method": "initialized"})).await?;
            server.call(2, method, &params).await
        };
        let asked = time::timeout(TIMEOUT, asked).await;
        asked.unwrap_or_else(|_| Err(unreachable("Codex did not answer")))
    }
}

fn unreachable(why: impl std::fmt::Display) -> HostError {
    HostError::Unreachable(why.to_string())
}

/// An app server, for as long as it is asked.
enum Server {
    Daemon(Daemon),
    Own(OwnServer),
}

/// The one that all windows of a user share.
struct Daemon(WebSocketStream<UnixStream>);

/// One that was started for this.
struct OwnServer {
    /// Ended when this is dropped.
    _process: Child,
    input: ChildStdin,
    output: Lines<ChildStdout>,
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(default)]
    id: Option<u64>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    error: Option<ServerError>,
    method: Option<&'a str>,
}

#[derive(Deserialize)]
struct ServerError {
    message: String,
}

impl Daemon {
    /// The daemon of this Codex, if one listens.
    async fn connect(home: &Path) -> Option<Self> {
        let socket = home.join("app-server-control/app-server-control.sock");
        let stream = UnixStream::connect(socket).await.ok()?;
        let connected = time::timeout(TIMEOUT, client_async("ws://localhost/", stream)).await;
        let (stream, _) = connected.ok()?.ok()?;
        Some(Self(stream))
    }

    async fn next(&mut self) -> Result<Option<String>, HostError> {
        while let Some(message) = self.0.next().await {
            if let Message::Text(text) = message.map_err(unreachable)? {
                return Ok(Some(text.to_string()));
            }
        }
        Ok(None)
    }
}

impl OwnServer {
    fn start(queue: &Queue) -> Result<Self, HostError> {
        let mut process = Command::new(&queue.program)
            .arg("app-server")
            .env("CODEX_HOME", &queue.home)
            // A worker has no folder of its own, and a project's settings are none of this.
            .current_dir(&queue.home)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| unreachable(format!("{}: {error}", queue.program.display())))?;
        let pipes = (process.stdin.take(), process.stdout.take());
        let (Some(input), Some(output)) = pipes else {
            return Err(unreachable("Codex has no pipes"));
        };
        Ok(Self {
            _process: process,
            input,
            output: Lines::new(output),
        })
    }
}

impl Server {
    async fn send(&mut self, message: &Value) -> Result<(), HostError> {
        match self {
            Self::Daemon(daemon) => {
                let message = Message::text(message.to_string());
                daemon.0.send(message).await.map_err(unreachable)
            }
            Self::Own(server) => {
                let line = format!("{message}\n");
                let sent = server.input.write_all(line.as_bytes()).await;
                sent.map_err(unreachable)
            }
        }
    }

    async fn next(&mut self) -> Result<Option<String>, HostError> {
        match self {
            Self::Daemon(daemon) => daemon.next().await,
            Self::Own(server) => {
                let line = server.output.next().await.map_err(unreachable)?;
                Ok(line.map(|line| String::from_utf8_lossy(&line).into_owned()))
            }
        }
    }

    async fn call(
        &mut self,
        id: u64,
        method: &str,
        params: &Value,
    ) -> Result<Box<RawValue>, HostError> {
        self.send(&json!({"id": id, "method": method, "params": params}))
            .await?;
        loop {
            let line = self.next().await?;
            let line = line.ok_or_else(|| unreachable("Codex ended before it answered"))?;
            if line.len() > LONGEST_LINE {
                return Err(unreachable("Codex's answer is too long"));
            }
            let Ok(answer) = serde_json::from_str::<Line<'_>>(&line) else {
                continue;
            };
            if answer.id != Some(id) || answer.method.is_some() {
                continue;
            }
            if let Some(error) = answer.error {
                return Err(unreachable(error.message));
            }
            let nothing = || RawValue::from_string("null".to_owned()).map_err(unreachable);
            return answer.result.map_or_else(nothing, |raw| Ok(raw.to_owned()));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use asyncagents_core::id::TaskId;

    use super::*;

    /// The worker has the tasks of all sessions, and must not run out of memory by one program.
    #[tokio::test]
    async fn a_line_without_an_end_costs_only_itself() {
        let home = tempfile::tempdir().expect("a folder");
        let program = home.path().join("codex");
        let answers = r#"#!/bin/sh
            head -c 70000000 /dev/zero; echo
            while read -r line; do
                case "$line" in
                *'"id":1,'*) echo '{"id": 1, "result": {}}' ;;
                *'"id":2,'*) echo '{"id": 2, "result": ["task_1.notice.0"]}' ;;
                esac
            done"#;
        fs::write(&program, answers).expect("written");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).expect("changed");
        let queue = Queue::new(home.path().to_owned(), program);
        let notice = TaskId::from("task_1").notice(0);
        assert_eq!(queue.has(&"thread".into(), &notice).await, Ok(true));
    }
}
