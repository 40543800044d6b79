//! The other end of the plugin: an OpenCode that is reached from inside of its own process.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
    fmt, io,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use asyncagents_core::{
    agent::ToolSpec, id::SessionId, lock::lock, moment::Moment, port::HostError,
};
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{
    Value,
    value::{RawValue, to_raw_value},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::{mpsc, oneshot},
    time::timeout,
};
use tracing::{debug, warn};

use crate::connection::{Connection, Listeners, Request, Response, Signal};

use super::{
    plugin::Declared,
    rpc::{self, Fault, Handler, Peer, RpcError},
};

/// The protocol this end speaks; the plugin names its own.
const PROTOCOL: u32 = 1;
const VERSION: &str = env!("CARGO_PKG_VERSION");
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);

/// Handles what the plugin asks.
#[async_trait]
pub trait BridgeHandler: Send + Sync + 'static {
    /// An OpenCode instance has connected. Its calls wait for the answer, and it may not have begun
    /// to serve requests, so do not wait for it here. One that is already known has been
    /// set up again.
    async fn hello(&self, instance: Arc<BridgeConnection>) -> Vec<ToolSpec>;

    /// The tools as the instance's models are shown them now.
    async fn tools(&self, directory: &str) -> Vec<ToolSpec>;

    /// Answers a tool call, or tells the model why not. Dropped when the call is cancelled.
    async fn call(&self, call: ToolCall) -> Result<Answer, String>;

    /// The instance has disconnected. This may be called twice.
    async fn goodbye(&self, directory: &str);
}

/// A model calls a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// The folder of the instance.
    pub directory: String,
    pub session: SessionId,
    /// The message that holds the call.
    pub message: Option<String>,
    pub agent: Option<String>,
    pub tool: String,
    /// The arguments: JSON, as the model wrote it.
    pub input: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// Shown to the model.
    pub output: String,
    /// Shown to people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

/// Serves the plugin until it disconnects; says goodbye for the instances that are left.
/// `events` are the types of event that are wanted.
///
/// # Errors
/// When reading or writing fails.
pub async fn serve(
    reader: impl AsyncRead + Unpin,
    writer: impl AsyncWrite + Unpin,
    events: &[&str],
    handler: Arc<dyn BridgeHandler>,
) -> io::Result<()> {
    #[derive(Serialize)]
    struct Listen<'a> {
        events: &'a [&'a str],
    }
    let (peer, connection) = rpc::connect(reader, writer);
    // The connection is open, so this is queued until it runs.
    let _ = peer.notify("listen", &Listen { events });
    let instances = Arc::new(Instances::default());
    let router = Router {
        peer,
        handler: Arc::clone(&handler),
        instances: Arc::clone(&instances),
    };
    let ended = connection.run(Arc::new(router)).await;
    for instance in instances.disconnect_all() {
        instance.listeners.end();
        handler.goodbye(&instance.directory).await;
    }
    ended
}

/// One OpenCode instance, through the plugin in its process.
pub struct BridgeConnection {
    directory: String,
    pid: u32,
    began: Option<Moment>,
    peer: Peer,
    listeners: Listeners,
}

impl BridgeConnection {
    pub fn directory(&self) -> &str {
        &self.directory
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// When OpenCode's process began.
    pub fn began(&self) -> Option<Moment> {
        self.began
    }
}

#[async_trait]
impl Connection for BridgeConnection {
    async fn send(&self, request: Request) -> Result<Response, HostError> {
        #[derive(Serialize)]
        struct Api<'a> {
            directory: &'a str,
            method: &'static str,
            path: &'a str,
            query: BTreeMap<&'a str, &'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            body: Option<&'a Value>,
        }
        #[derive(Deserialize)]
        struct Answered {
            status: u16,
            body: String,
            next: Option<String>,
        }
        let query = request.query.iter();
        let api = Api {
            directory: &self.directory,
            method: request.method.as_str(),
            path: &request.path,
            query: query.map(|(key, value)| (*key, value.as_str())).collect(),
            body: request.body.as_ref(),
        };
        let unreachable = |why: &dyn fmt::Display| {
            HostError::Unreachable(format!("{} {}: {why}", api.method, api.path))
        };
        let answer = match timeout(RESPONSE_TIMEOUT, self.peer.request("api", &api)).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(RpcError::Gone)) => return Err(unreachable(&"OpenCode is gone")),
            Ok(Err(RpcError::Fault(fault))) => return Err(unreachable(&fault.message)),
            Err(_) => return Err(unreachable(&"OpenCode did not answer in time")),
        };
        let answered: Answered =
            serde_json::from_str(answer.get()).map_err(|error| unreachable(&error))?;
        Ok(Response {
            status: answered.status,
            body: answered.body,
            next: answered.next,
        })
    }

    fn signals(&self) -> mpsc::UnboundedReceiver<Signal> {
        self.listeners.add()
    }
}

/// Passes the plugin's requests on to the handler.
struct Router {
    peer: Peer,
    handler: Arc<dyn BridgeHandler>,
    instances: Arc<Instances>,
}

impl Handler for Router {
    fn request(&self, method: &str, params: &RawValue) -> BoxFuture<'static, rpc::Answer> {
        let answer = match method {
            "hello" => parsed(params).map(|hello| self.hello(hello)),
            "tools" => parsed(params).map(|params| self.tools(params)),
            "call" => parsed(params).map(|call| self.call(call)),
            other => Err(Fault::unknown(other)),
        };
        answer.unwrap_or_else(|fault| Box::pin(async { Err(fault) }))
    }

    fn notification(&self, method: &str, params: &RawValue) -> Option<BoxFuture<'static, ()>> {
        match method {
            "event" => {
                match parsed::<EventParams<'_>>(params) {
                    Ok(event) => self.instances.publish(&event),
                    Err(error) => warn!(%error, "ignoring malformed event"),
                }
                None
            }
            "goodbye" => match parsed(params) {
                Ok(params) => Some(self.goodbye(params)),
                Err(error) => {
                    warn!(%error, "ignoring malformed goodbye");
                    None
                }
            },
            other => {
                debug!(method = other, "ignoring unknown notification");
                None
            }
        }
    }
}

impl Router {
    fn hello(&self, hello: HelloParams) -> BoxFuture<'static, rpc::Answer> {
        let turn = self.instances.turn(&hello.directory);
        let (peer, instances) = (self.peer.clone(), Arc::clone(&self.instances));
        let handler = Arc::clone(&self.handler);
        Box::pin(async move {
            let _turn = turn.await;
            if hello.opencode_plugin != PROTOCOL {
                let theirs = hello.opencode_plugin;
                return Err(Fault::new(format_args!(
                    "the plugin speaks protocol {theirs} and asyncagents {VERSION} speaks \
                     {PROTOCOL}: `asyncagents setup opencode` brings them together"
                )));
            }
            let instance = instances.connect(hello, peer);
            let tools = handler.hello(instance).await;
            answer(&Tools::new(&tools))
        })
    }

    fn tools(&self, params: FolderParams) -> BoxFuture<'static, rpc::Answer> {
        let handler = Arc::clone(&self.handler);
        Box::pin(async move {
            let tools = handler.tools(&params.directory).await;
            answer(&Tools::new(&tools))
        })
    }

    fn call(&self, call: CallParams) -> BoxFuture<'static, rpc::Answer> {
        let handler = Arc::clone(&self.handler);
        Box::pin(async move {
            let answered = handler.call(call.into()).await;
            answer(&answered.map_err(Fault::new)?)
        })
    }

    fn goodbye(&self, params: FolderParams) -> BoxFuture<'static, ()> {
        let turn = self.instances.turn(&params.directory);
        let handler = Arc::clone(&self.handler);
        // Subscriptions are kept: OpenCode closes a folder to open it again.
        Box::pin(async move {
            let _turn = turn.await;
            handler.goodbye(&params.directory).await;
        })
    }
}

/// The connected instances. Requests about one folder are handled one after the other.
#[derive(Default)]
struct Instances(Mutex<InstanceMap>);

#[derive(Default)]
struct InstanceMap {
    connected: HashMap<String, Arc<BridgeConnection>>,
    /// Per folder, the end of the newest turn.
    turns: HashMap<String, oneshot::Receiver<()>>,
}

impl Instances {
    /// Waits until all earlier requests about the folder are handled. The turn lasts until the
    /// sender is dropped.
    fn turn(&self, directory: &str) -> impl Future<Output = oneshot::Sender<()>> + use<> {
        let (turn, end) = oneshot::channel();
        let before = lock(&self.0).turns.insert(directory.to_owned(), end);
        async move {
            if let Some(before) = before {
                // Nothing is ever sent: the sender is dropped at the end of that turn.
                let _ = before.await;
            }
            turn
        }
    }

    /// Subscriptions to an instance that is set up again are kept.
    fn connect(&self, hello: HelloParams, peer: Peer) -> Arc<BridgeConnection> {
        if let Some(theirs) = hello.version.filter(|version| version != VERSION) {
            warn!(
                theirs,
                ours = VERSION,
                "plugin version mismatch; `asyncagents setup opencode` updates it"
            );
        }
        let mut instances = lock(&self.0);
        if let Some(instance) = instances.connected.get(&hello.directory) {
            instance.listeners.send(&Signal::Missed);
            return Arc::clone(instance);
        }
        let instance = Arc::new(BridgeConnection {
            directory: hello.directory.clone(),
            pid: hello.pid,
            began: hello.began.map(Moment::from_millis),
            peer,
            listeners: Listeners::default(),
        });
        instances
            .connected
            .insert(hello.directory, Arc::clone(&instance));
        instance
    }

    fn publish(&self, params: &EventParams<'_>) {
        let instances = lock(&self.0);
        if let Some(instance) = instances.connected.get(&*params.directory) {
            let event = params.event.to_owned();
            instance.listeners.send(&Signal::Event(event));
        }
    }

    fn disconnect_all(&self) -> Vec<Arc<BridgeConnection>> {
        lock(&self.0).connected.drain().map(|(_, it)| it).collect()
    }
}

#[derive(Deserialize)]
struct HelloParams {
    directory: String,
    pid: u32,
    /// In milliseconds since 1970.
    began: Option<i64>,
    opencode_plugin: u32,
    version: Option<String>,
}

#[derive(Deserialize)]
struct FolderParams {
    directory: String,
}

#[derive(Deserialize)]
struct CallParams {
    directory: String,
    #[serde(rename = "sessionID")]
    session: String,
    #[serde(rename = "messageID")]
    message: Option<String>,
    agent: Option<String>,
    tool: String,
    args: Option<Box<RawValue>>,
}

impl From<CallParams> for ToolCall {
    fn from(call: CallParams) -> Self {
        Self {
            directory: call.directory,
            session: call.session.into(),
            message: call.message,
            agent: call.agent,
            tool: call.tool,
            input: call
                .args
                .map_or("{}".to_owned(), |args| args.get().to_owned()),
        }
    }
}

#[derive(Deserialize)]
struct EventParams<'a> {
    #[serde(borrow)]
    directory: Cow<'a, str>,
    #[serde(borrow)]
    event: &'a RawValue,
}

#[derive(Serialize)]
struct Tools<'a> {
    tools: Vec<Declared<'a>>,
    version: &'static str,
}

impl<'a> Tools<'a> {
    fn new(tools: &'a [ToolSpec]) -> Self {
        Self {
            tools: tools.iter().map(Declared::from).collect(),
            version: VERSION,
        }
    }
}

fn parsed<'a, T: Deserialize<'a>>(params: &'a RawValue) -> Result<T, Fault> {
    serde_json::from_str(params.get()).map_err(Fault::params)
}

fn answer(result: &impl Serialize) -> rpc::Answer {
    to_raw_value(result).map_err(Fault::new)
}
