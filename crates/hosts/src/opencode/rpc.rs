//! JSON-RPC 2.0 between equals: one JSON object per line, and both sides may ask.

use std::{borrow::Cow, collections::HashMap, fmt, io, pin::Pin, sync::Arc};

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

use super::lines::Lines;

/// What answers the other side. The calls come in the order of the lines and must not wait:
/// what takes time belongs into the future, which is dropped when it is cancelled.
pub trait Handler: Send + Sync {
    /// Answers a request.
    fn request(&self, method: &str, params: &RawValue) -> Later<Answer>;

    /// Takes note of something; the future is what is left to do about it.
    fn notification(&self, method: &str, params: &RawValue) -> Option<Later<()>>;
}

/// Something that takes time.
pub type Later<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// What comes of a request.
pub type Answer = Result<Box<RawValue>, Fault>;

/// What is answered instead of a result.
#[derive(Debug, Clone, PartialEq, Eq, Error, Deserialize)]
#[error("{message}")]
pub struct Fault {
    /// For programs: 0 where nothing is known.
    #[serde(default)]
    pub code: i64,
    /// For people and models.
    pub message: String,
}

impl Fault {
    /// Something went wrong, in words for whoever asked.
    pub fn new(why: impl fmt::Display) -> Self {
        Self::coded(-32000, why)
    }

    /// There is no such method.
    pub fn unknown(method: &str) -> Self {
        Self::coded(-32601, format_args!("there is no method `{method}`"))
    }

    /// A request that says too little, or something else.
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
    /// The other side says why.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// Nobody is there to answer.
    #[error("the other side is gone")]
    Gone,
}

/// The other side, to be asked.
#[derive(Clone)]
pub struct Peer(mpsc::UnboundedSender<Order>);

/// Something to be sent.
struct Order {
    method: String,
    params: Box<RawValue>,
    /// Who waits for the answer; nobody waits after a notification.
    answer: Option<oneshot::Sender<Answer>>,
}

impl Peer {
    /// Asks, and waits for the answer.
    ///
    /// # Errors
    /// When the other side says no, or is gone.
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

    /// Tells the other side something.
    ///
    /// # Errors
    /// When it is gone already. Whether it hears is not known otherwise.
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
        let order = Order {
            method,
            params,
            answer,
        };
        self.0.send(order).map_err(|_| RpcError::Gone)
    }
}

/// Both directions of a connection, until it ends.
pub struct Line<R, W> {
    reader: R,
    writer: W,
    orders: mpsc::UnboundedReceiver<Order>,
}

/// Meets the other side. Nothing is read or written before [`Line::run`].
pub fn connect<R, W>(reader: R, writer: W) -> (Peer, Line<R, W>) {
    let (sender, orders) = mpsc::unbounded_channel();
    let line = Line {
        reader,
        writer,
        orders,
    };
    (Peer(sender), line)
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Line<R, W> {
    /// Reads and writes until the other side is gone. Whoever waits for an answer is told
    /// then that none will come, and what is still being answered is dropped.
    ///
    /// # Errors
    /// When reading or writing fails for another reason.
    pub async fn run(self, handler: Arc<dyn Handler>) -> io::Result<()> {
        let (out, lines) = mpsc::unbounded_channel();
        let desk = Desk {
            handler,
            out,
            last: 0,
            waiting: HashMap::new(),
            running: JoinSet::new(),
            requests: HashMap::new(),
        };
        // Side by side: when the other side does not read, it is still read from.
        let ended = select! {
            ended = desk.serve(self.reader, self.orders) => ended,
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

/// The one owner of all that is under way.
struct Desk {
    handler: Arc<dyn Handler>,
    out: mpsc::UnboundedSender<String>,
    /// The name of the last request of ours.
    last: u64,
    waiting: HashMap<u64, oneshot::Sender<Answer>>,
    /// What is being done for the other side; only requests have an answer.
    running: JoinSet<Option<Answer>>,
    /// The requests among them, under the names the other side gave them.
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

impl Desk {
    async fn serve(
        mut self,
        reader: impl AsyncRead + Unpin,
        mut orders: mpsc::UnboundedReceiver<Order>,
    ) -> io::Result<()> {
        let mut lines = Lines::new(reader);
        loop {
            select! {
                line = lines.next() => match line? {
                    Some(line) => self.take(&line),
                    None => return Ok(()),
                },
                Some(order) = orders.recv() => self.carry_out(order),
                Some(ended) = self.running.join_next_with_id() => self.ended(ended),
            }
        }
    }

    fn take(&mut self, line: &[u8]) {
        // What a line says may be private, so only the trouble is logged.
        let message: Message<'_> = match serde_json::from_slice(line) {
            Ok(message) => message,
            Err(why) => return warn!(%why, bytes = line.len(), "a malformed line is passed over"),
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
                    return debug!(id = id.get(), "nobody waits for this answer");
                };
                let result = message.result.unwrap_or(RawValue::NULL).to_owned();
                // Whoever stopped waiting does not need it.
                let _ = waiting.send(message.error.map_or(Ok(result), Err));
            }
            (None, None) => warn!("a line that is no message is passed over"),
        }
    }

    fn cancel(&self, params: &RawValue) {
        #[derive(Deserialize)]
        struct Cancel<'a> {
            #[serde(borrow)]
            id: &'a RawValue,
        }
        let Ok(cancel) = serde_json::from_str::<Cancel<'_>>(params.get()) else {
            return warn!("a cancel without an id is passed over");
        };
        let running = self.requests.values();
        running
            .filter(|(id, _)| id.get() == cancel.id.get())
            .for_each(|(_, work)| work.abort());
    }

    fn carry_out(&mut self, order: Order) {
        let (method, params) = (Value::from(order.method), order.params);
        let Some(answer) = order.answer else {
            return self.write(format_args!(r#""method":{method},"params":{params}"#));
        };
        // Some do not wait to the end, and not every request is answered.
        self.waiting.retain(|_, waiting| !waiting.is_closed());
        self.last += 1;
        let id = self.last;
        self.waiting.insert(id, answer);
        self.write(format_args!(
            r#""id":{id},"method":{method},"params":{params}"#
        ));
    }

    fn ended(&mut self, ended: Result<(task::Id, Option<Answer>), JoinError>) {
        let (id, answer) = match ended {
            Ok((id, answer)) => (id, answer),
            // Nobody should wait for an answer that will not come.
            Err(error) if error.is_panic() => {
                (error.id(), Some(Err(Fault::new("the answer is a bug"))))
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
        // Inside of JSON a line break is only space.
        let message = format!("{{\"jsonrpc\":\"2.0\",{fields}}}").replace('\n', " ");
        // When nobody writes any more, the desk is cleared too.
        let _ = self.out.send(message + "\n");
    }
}
