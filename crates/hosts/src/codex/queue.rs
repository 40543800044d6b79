//! The queue of a thread's messages, by Codex's own app server.
//!
//! A message with our ID becomes a turn of the thread when it is idle. Codex runs the same ID twice if
//! it gets it twice, so what may have been sent is looked for before it is sent again.

use std::{
    io,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use asyncagents_core::{
    id::{PostId, SessionId},
    port::{HostError, Notice},
    shorten::shorten,
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

use crate::{jsonl::has_mark, lines::Lines};

/// What is queued comes to the model as the user's words.
const NOT_THE_USER: &str =
    "Notice from asyncagents about a background task. The user has not said this:";

/// What stands for results that are left out.
const LOOK_IT_UP: &str = "Call `output` of asyncagents for what came of it.";

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

    /// Puts a message into the queue of a thread. Says whether it is there now; an error means that this
    /// is not known.
    pub(super) async fn add(&self, thread: &SessionId, notice: &Notice) -> Result<bool, HostError> {
        match self.add_by_server(thread, notice).await {
            Err(Refused::NotUnderstood) => self.add_by_command(thread, notice).await,
            Err(Refused::NotDone(why)) => {
                tracing::warn!(%thread, %why, "Codex took no notice, retrying");
                Ok(false)
            }
            Err(Refused::Unknown(error)) => Err(error),
            Ok(()) => Ok(true),
        }
    }

    async fn add_by_server(&self, thread: &SessionId, notice: &Notice) -> Result<(), Refused> {
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

    /// The same by Codex's command line, for an app server that does not know the method: it is said to be
    /// experimental. All users of the machine can read what a command is given, so results are left out.
    async fn add_by_command(&self, thread: &SessionId, notice: &Notice) -> Result<bool, HostError> {
        let text = format!(
            "{NOT_THE_USER}\n\n{}\n{LOOK_IT_UP}\n\n[asyncagents notice {}]",
            notice.message.visible, notice.id
        );
        let mut command = self.command();
        command.args(["queue", "--thread", thread.as_str(), "--message", &text]);
        let ended = time::timeout(TIMEOUT, command.output()).await;
        let ended = ended.map_err(|_| unreachable("codex queue did not end"))?;
        let ended = ended.map_err(|error| self.not_started(&error))?;
        if ended.status.success() {
            return Ok(true);
        }
        let why = String::from_utf8_lossy(&ended.stderr);
        let why = shorten(why.lines().next().unwrap_or_default(), 300, "…");
        Err(unreachable(format!("codex queue: {why}")))
    }

    /// Whether a message waits in the queue of a thread. Where the queue cannot be listed, what Codex took
    /// is on its way.
    pub(super) async fn has(&self, thread: &SessionId, notice: &PostId) -> Result<bool, HostError> {
        let params = json!({"threadId": thread.as_str()});
        match self.ask("thread/queue/list", params).await {
            Ok(listed) => Ok(has_mark(listed.get(), &notice.to_string())),
            Err(Refused::NotUnderstood) => Ok(true),
            Err(Refused::NotDone(why)) => Err(unreachable(why)),
            Err(Refused::Unknown(error)) => Err(error),
        }
    }

    /// Codex's program, for this Codex.
    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command
            .env("CODEX_HOME", &self.home)
            // A worker has no folder of its own, and a project's settings are none of this.
            .current_dir(&self.home)
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command
    }

    fn not_started(&self, error: &io::Error) -> HostError {
        unreachable(format!("{}: {error}", self.program.display()))
    }

    /// One question to the daemon, if one runs, for it has the threads of its windows; or to an app
    /// server of its own, which shares the queue's file with them. What was sent to one is not sent to
    /// the other.
    async fn ask(&self, method: &str, params: Value) -> Result<Box<RawValue>, Refused> {
        let asked = async {
            let mut server = match Daemon::connect(&self.home).await {
                Some(daemon) => Server::Daemon(daemon),
                None => Server::Own(OwnServer::start(self).map_err(Refused::not_done)?),
            };
            let client = json!({
                "clientInfo": {"name": "asyncagents", "version": env!("CARGO_PKG_VERSION")},
                "capabilities": {"experimentalApi": true},
            });
            // Up to here nothing was asked for.
            let greeted = async {
                server.call(1, "initialize", &client).await?;
                Ok(server.send(&json!({"method": "initialized"})).await?)
            };
            greeted.await.map_err(Refused::before)?;
            server.call(2, method, &params).await
        };
        let asked = time::timeout(TIMEOUT, asked).await;
        asked.unwrap_or_else(|_| Err(unreachable("Codex did not answer").into()))
    }
}

/// Why Codex did not do what it was asked for.
enum Refused {
    /// It does not know the method, or what is said with it. Nothing was done.
    NotUnderstood,
    /// Nothing was done, for this reason.
    NotDone(String),
    /// Whether it was done is not known.
    Unknown(HostError),
}

impl Refused {
    fn not_done(error: HostError) -> Self {
        Self::NotDone(error.to_string())
    }

    /// What failed before anything was asked for.
    fn before(self) -> Self {
        match self {
            Self::NotUnderstood => Self::NotDone("Codex does not understand us".to_owned()),
            Self::NotDone(why) => Self::NotDone(why),
            Self::Unknown(error) => Self::not_done(error),
        }
    }
}

impl From<HostError> for Refused {
    fn from(error: HostError) -> Self {
        Self::Unknown(error)
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
    #[serde(default)]
    code: i64,
    message: String,
}

/// The codes for a request and for a method that are not known.
const NOT_UNDERSTOOD: [i64; 2] = [-32600, -32601];

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
        let mut process = queue
            .command()
            .arg("app-server")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| queue.not_started(&error))?;
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
    ) -> Result<Box<RawValue>, Refused> {
        self.send(&json!({"id": id, "method": method, "params": params}))
            .await?;
        loop {
            let line = self.next().await?;
            let line = line.ok_or_else(|| unreachable("Codex ended before it answered"))?;
            if line.len() > LONGEST_LINE {
                return Err(unreachable("Codex's answer is too long").into());
            }
            let Ok(answer) = serde_json::from_str::<Line<'_>>(&line) else {
                continue;
            };
            if answer.id != Some(id) || answer.method.is_some() {
                continue;
            }
            match answer.error {
                Some(error) if NOT_UNDERSTOOD.contains(&error.code) => {
                    return Err(Refused::NotUnderstood);
                }
                Some(error) => return Err(Refused::NotDone(error.message)),
                None => {}
            }
            let nothing = || RawValue::from_string("null".to_owned()).map_err(unreachable);
            let result = answer.result.map_or_else(nothing, |raw| Ok(raw.to_owned()));
            return Ok(result?);
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
