//! The queue of a thread's messages, by Codex's own app server.
//!
//! A message with our ID becomes a turn of the thread when it is idle. Codex runs the same ID twice if
//! it gets it twice, so what may have been sent is looked for before it is sent again.

use std::{path::PathBuf, process::Stdio, time::Duration};

use asyncagents_core::{
    id::{PostId, SessionId},
    port::{HostError, Notice},
};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    time,
};

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
    /// server of its own, which shares the queue's file with them.
    async fn ask(&self, method: &str, params: Value) -> Result<Box<RawValue>, HostError> {
        let daemon = self.ask_by(&["app-server", "proxy"], method, &params);
        if let Ok(answer) = daemon.await {
            return Ok(answer);
        }
        self.ask_by(&["app-server"], method, &params).await
    }

    async fn ask_by(
        &self,
        arguments: &[&str],
        method: &str,
        params: &Value,
    ) -> Result<Box<RawValue>, HostError> {
        let asked = async {
            let mut server = Server::start(self, arguments)?;
            let client = json!({
                "clientInfo": {"name": "asyncagents", "version": env!("CARGO_PKG_VERSION")},
                "capabilities": {"experimentalApi": true},
            });
            server.call(1, "initialize", &client).await?;
            server.send(&json!({"method": "initialized"})).await?;
            server.call(2, method, params).await
        };
        let asked = time::timeout(TIMEOUT, asked).await;
        asked.unwrap_or_else(|_| Err(unreachable("Codex did not answer")))
    }
}

fn unreachable(why: impl std::fmt::Display) -> HostError {
    HostError::Unreachable(why.to_string())
}

/// An app server, for as long as it is asked.
struct Server {
    /// Ended when this is dropped.
    _process: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
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

impl Server {
    fn start(queue: &Queue, arguments: &[&str]) -> Result<Self, HostError> {
        let mut process = Command::new(&queue.program)
            .args(arguments)
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
            output: BufReader::new(output).lines(),
        })
    }

    async fn send(&mut self, message: &Value) -> Result<(), HostError> {
        let line = format!("{message}\n");
        let sent = self.input.write_all(line.as_bytes()).await;
        sent.map_err(unreachable)
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
            let line = self.output.next_line().await.map_err(unreachable)?;
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
