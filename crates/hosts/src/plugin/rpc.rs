//! JSON-RPC 2.0 between equals: one JSON object per line, and both sides may ask.

use std::{borrow::Cow, collections::HashMap, fmt, io, sync::Arc};

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{
    Value, json,
    value::{RawValue, to_raw_value},
};
use thiserror::Error;
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt},
    select,
    sync::{mpsc, oneshot},
    task::{self, AbortHandle, JoinError, JoinSet},
};
use tracing::{debug, warn};

use crate::lines::Lines;

/// Answers the other side. Calls come in the order of the lines and must not block: what takes
/// time belongs into the future, which is dropped when the request is cancelled.
pub trait Handler: Send + Sync {
    fn request(&self, method: &str, params: &RawValue) -> BoxFuture<'static, Answer>;

    /// The future is what is left to do about the notification.
    fn notification(&self, method: &str, params: &RawValue) -> Option<BoxFuture<'static, ()>>;
}

/// What comes of a request.
pub type Answer = Result<Box<RawValue>, Fault>;

/// The error that a request is answered with.
#[derive(Debug, Clone, PartialEq, Eq, Error, Deserialize)]
#[error("{message}")]
pub struct Fault {
    /// 0 if the other side sent none.
    #[serde(default)]
    pub code: i64,
    pub message: String,
}

impl Fault {
    /// An error of the handler.
    pub fn new(why: impl fmt::Display) -> Self {
        Self::coded(-32000, why)
    }

    pub fn unknown(method: &str) -> Self {
        Self::coded(-32601, format_args!("there is no method `{method}`"))
    }

    /// Parameters that are missing or malformed.
    pub fn params(why: impl fmt::Display) -> Self {
        Self::coded(-32602, why)
    }

    fn coded(code: i64, why: impl fmt::Display) -> Self {
        let message = why.to_string();
        Self { code, message }
    }
}

/// Why there is no result.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RpcError {
    #[error(transparent)]
    Fault(#[from] Fault),
    /// The connection has ended.
    #[error("the other side is gone")]
    Gone,
}

/// The other side, for requests of ours.
#[derive(Clone)]
pub struct Peer(mpsc::UnboundedSender<Outgoing>);

/// A request or a notification to be sent.
struct Outgoing {
    method: String,
    params: Box<RawValue>,
    /// Takes the answer to a request; a notification has none.
    answer: Option<oneshot::Sender<Answer>>,
}

impl Peer {
    /// Sends a request, and waits for the answer.
    ///
    /// # Errors
    /// When the other side answers with an error, or is gone.
    pub async fn request(
        &self,
        method: &str,
        params: &impl Serialize,
    ) -> Result<Box<RawValue>, RpcError> {
        let (answer, answered) = oneshot::channel();
        self.send(method, params, Some(answer))?;
        let answer = answered.await.map_err(|_| RpcError::Gone)?;
        Ok(answer?)
    }

    /// Sends a notification.
    ///
    /// # Errors
    /// When the other side is gone already; otherwise it is not known whether it arrives.
    pub fn notify(&self, method: &str, params: &impl Serialize) -> Result<(), RpcError> {
        self.send(method, params, None)
    }

    fn send(
        &self,
        method: &str,
        params: &impl Serialize,
        answer: Option<oneshot::Sender<Answer>>,
    ) -> Result<(), RpcError> {
        let (method, params) = (method.to_owned(), to_raw_value(params).map_err(Fault::new)?);
        let outgoing = Outgoing {
            method,
            params,
            answer,
        };
        self.0.send(outgoing).map_err(|_| RpcError::Gone)
    }
}

/// Both directions of a connection, until it ends.
pub struct RpcConnection<R, W> {
    reader: R,
    writer: W,
    outgoing: mpsc::UnboundedReceiver<Outgoing>,
}

/// Sets up a connection. Nothing is read or written before [`RpcConnection::run`].
pub fn connect<R, W>(reader: R, writer: W) -> (Peer, RpcConnection<R, W>) {
    let (sender, outgoing) = mpsc::unbounded_channel();
    let connection = RpcConnection {
        reader,
        writer,
        outgoing,
    };
    (Peer(sender), connection)
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> RpcConnection<R, W> {
    /// Reads and writes until the other side is gone. Then pending requests of ours end with
    /// [`RpcError::Gone`], and what is still being answered is dropped.
    ///
    /// # Errors
    /// When reading or writing fails for another reason.
    pub async fn run(self, handler: Arc<dyn Handler>) -> io::Result<()> {
        let (out, lines) = mpsc::unbounded_channel();
        let dispatcher = Dispatcher {
            handler,
            out,
            last_id: 0,
            waiting: HashMap::new(),
            running: JoinSet::new(),
            requests: HashMap::new(),
        };
        // Concurrently: a peer that does not read is still read from.
        let ended = select! {
            ended = dispatcher.serve(self.reader, self.outgoing) => ended,
            ended = write(lines, self.writer) => ended,
        };
        match ended {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            ended => ended,
        }
    }
}

async fn write(
    mut lines: mpsc::UnboundedReceiver<String>,
    mut writer: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    while let Some(line) = lines.recv().await {
        writer.write_all(line.as_bytes()).await?;
        if lines.is_empty() {
            writer.flush().await?;
        }
    }
    Ok(())
}

/// Owns everything that is pending, in both directions.
struct Dispatcher {
    handler: Arc<dyn Handler>,
    out: mpsc::UnboundedSender<String>,
    /// The ID of the last request of ours.
    last_id: u64,
    waiting: HashMap<u64, oneshot::Sender<Answer>>,
    /// What is being done for the other side; only requests have an answer.
    running: JoinSet<Option<Answer>>,
    /// The requests among them, with the IDs that the other side gave them.
    requests: HashMap<task::Id, (Box<RawValue>, AbortHandle)>,
}

/// A request, a notification or an answer.
#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    error: Option<Fault>,
}

impl Dispatcher {
    async fn serve(
        mut self,
        reader: impl AsyncRead + Unpin,
        mut outgoing: mpsc::UnboundedReceiver<Outgoing>,
    ) -> io::Result<()> {
        let mut lines = Lines::new(reader);
        loop {
            select! {
                line = lines.next() => match line? {
                    Some(line) => self.receive(&line),
                    None => return Ok(()),
                },
                Some(message) = outgoing.recv() => self.send(message),
                Some(ended) = self.running.join_next_with_id() => {
                    // What was said before an answer arrives before it.
                    while let Ok(message) = outgoing.try_recv() {
                        self.send(message);
                    }
                    self.ended(ended);
                }
            }
        }
    }

    fn receive(&mut self, line: &[u8]) {
        // A line may hold private text, so only the error is logged.
        let message: Message<'_> = match serde_json::from_slice(line) {
            Ok(message) => message,
            Err(error) => return warn!(%error, bytes = line.len(), "ignoring malformed line"),
        };
        let params = message.params.unwrap_or(RawValue::NULL);
        match (message.method.as_deref(), message.id) {
            (Some(method), Some(id)) => {
                let work = self.handler.request(method, params);
                let handle = self.running.spawn(async { Some(work.await) });
                self.requests.insert(handle.id(), (id.to_owned(), handle));
            }
            (Some("cancel"), None) => self.cancel(params),
            (Some(method), None) => {
                if let Some(work) = self.handler.notification(method, params) {
                    self.running.spawn(async {
                        work.await;
                        None
                    });
                }
            }
            (None, Some(id)) => {
                let waiting = id.get().parse().ok();
                let Some(waiting) = waiting.and_then(|id| self.waiting.remove(&id)) else {
                    return debug!(id = id.get(), "ignoring unexpected response");
                };
                let result = message.result.unwrap_or(RawValue::NULL).to_owned();
                // The caller may have stopped waiting.
                let _ = waiting.send(message.error.map_or(Ok(result), Err));
            }
            (None, None) => warn!("ignoring a line that is no JSON-RPC message"),
        }
    }

    fn cancel(&self, params: &RawValue) {
        #[derive(Deserialize)]
        struct Cancel<'a> {
            #[serde(borrow)]
            id: &'a RawValue,
        }
        let Ok(cancel) = serde_json::from_str::<Cancel<'_>>(params.get()) else {
            return warn!("ignoring a cancel without an ID");
        };
        let running = self.requests.values();
        running
            .filter(|(id, _)| id.get() == cancel.id.get())
            .for_each(|(_, work)| work.abort());
    }

    fn send(&mut self, message: Outgoing) {
        let (method, params) = (Value::from(message.method), message.params);
        let Some(answer) = message.answer else {
            return self.write(format_args!(r#""method":{method},"params":{params}"#));
        };
        // Callers may have stopped waiting, and not every request is answered.
        self.waiting.retain(|_, waiting| !waiting.is_closed());
        self.last_id += 1;
        let id = self.last_id;
        self.waiting.insert(id, answer);
        self.write(format_args!(
            r#""id":{id},"method":{method},"params":{params}"#
        ));
    }

    fn ended(&mut self, ended: Result<(task::Id, Option<Answer>), JoinError>) {
        let (id, answer) = match ended {
            Ok((id, answer)) => (id, answer),
            // The other side must not wait for an answer that will not come.
            Err(error) if error.is_panic() => {
                let fault = Fault::new("internal error: the handler panicked");
                (error.id(), Some(Err(fault)))
            }
            Err(error) => (error.id(), None),
        };
        match (self.requests.remove(&id), answer) {
            (Some((id, _)), Some(Ok(result))) => {
                self.write(format_args!(r#""id":{id},"result":{result}"#));
            }
            (Some((id, _)), Some(Err(Fault { code, message }))) => {
                let fault = json!({"code": code, "message": message});
                self.write(format_args!(r#""id":{id},"error":{fault}"#));
            }
            (None, _) | (_, None) => {}
        }
    }

    fn write(&self, fields: fmt::Arguments<'_>) {
        // Inside of JSON a line break is only white space.
        let message = format!("{{\"jsonrpc\":\"2.0\",{fields}}}").replace('\n', " ");
        // After the writer, the dispatcher ends too.
        let _ = self.out.send(message + "\n");
    }
}
