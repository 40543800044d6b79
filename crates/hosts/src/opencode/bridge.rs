//! The other end of the plugin: an OpenCode that is reached from inside of its own process.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
    io,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use asyncagents_core::{
    agent::ToolSpec, id::SessionId, lock::lock, moment::Moment, port::HostError,
};
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

use super::{
    connection::{Connection, Listeners, Request, Response, Signal},
    plugin::Declared,
    rpc::{self, Fault, Handler, Later, Peer, RpcError},
};

/// The protocol this end speaks; the plugin names its own.
const PROTOCOL: u32 = 1;
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// An answer that did not come by then is given up.
const ANSWER: Duration = Duration::from_secs(30);

/// What answers the plugin.
#[async_trait]
pub trait Door: Send + Sync + 'static {
    /// An OpenCode instance is there. Its calls wait for the answer, and it may not have begun
    /// to serve requests, so do not wait for it here. One that is already known has been
    /// set up again.
    async fn hello(&self, instance: Arc<BridgeConnection>) -> Vec<ToolSpec>;

    /// The tools as its models are shown them now.
    async fn tools(&self, directory: &str) -> Vec<ToolSpec>;

    /// Answers a tool call, or says to the model why not. Dropped when nobody waits for the
    /// answer any more.
    async fn call(&self, call: ToolCall) -> Result<Answer, String>;

    /// The instance is gone. It may be said twice.
    async fn goodbye(&self, directory: &str);
}

/// A model calls a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// The folder of the instance.
    pub directory: String,
    /// Whose model it is.
    pub session: SessionId,
    /// The message that holds the call.
    pub message: Option<String>,
    /// OpenCode's name for the call.
    pub call: Option<String>,
    /// Who works in the session.
    pub agent: Option<String>,
    /// Which tool.
    pub tool: String,
    /// With what: JSON, as the model wrote it.
    pub input: String,
}

/// What a tool answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// For the model.
    pub output: String,
    /// For people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

/// Serves the plugin until it is gone; says goodbye for the instances it leaves behind.
/// `events` are the types of event that are wanted.
///
/// # Errors
/// When reading or writing fails.
pub async fn serve(
    reader: impl AsyncRead + Unpin,
    writer: impl AsyncWrite + Unpin,
    events: &[&str],
    door: Arc<dyn Door>,
) -> io::Result<()> {
    #[derive(Serialize)]
    struct Listen<'a> {
        events: &'a [&'a str],
    }
    let (peer, line) = rpc::connect(reader, writer);
    // The line is still here, so this can only wait to be sent.
    let _ = peer.notify("listen", &Listen { events });
    let instances = Arc::new(Instances::default());
    let desk = Desk {
        peer,
        door: Arc::clone(&door),
        instances: Arc::clone(&instances),
    };
    let ended = line.run(Arc::new(desk)).await;
    for instance in instances.leave() {
        instance.listeners.end();
        door.goodbye(&instance.directory).await;
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
    /// The folder it works in.
    pub fn directory(&self) -> &str {
        &self.directory
    }

    /// The process it is.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// When that process began.
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
        let trouble = |why: String| {
            let what = format!("{} {}", api.method, api.path);
            HostError::Unreachable(format!("{what}: {why}"))
        };
        let answer = match timeout(ANSWER, self.peer.request("api", &api)).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(RpcError::Gone)) => return Err(trouble("OpenCode is gone".to_owned())),
            Ok(Err(RpcError::Fault(fault))) => return Err(trouble(fault.message)),
            Err(_) => return Err(trouble("OpenCode did not answer in time".to_owned())),
        };
        let answered: Answered =
            serde_json::from_str(answer.get()).map_err(|why| trouble(why.to_string()))?;
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

/// Where the plugin's requests are taken in.
struct Desk {
    peer: Peer,
    door: Arc<dyn Door>,
    instances: Arc<Instances>,
}

impl Handler for Desk {
    fn request(&self, method: &str, params: &RawValue) -> Later<rpc::Answer> {
        let answer = match method {
            "hello" => parsed(params).map(|hello| self.hello(hello)),
            "tools" => parsed(params).map(|about| self.tools(about)),
            "call" => parsed(params).map(|call| self.call(call)),
            other => Err(Fault::unknown(other)),
        };
        answer.unwrap_or_else(|fault| Box::pin(async { Err(fault) }))
    }

    fn notification(&self, method: &str, params: &RawValue) -> Option<Later<()>> {
        match method {
            "event" => {
                match parsed::<Happened<'_>>(params) {
                    Ok(happened) => self.instances.tell(&happened),
                    Err(why) => warn!(%why, "an event that is none is passed over"),
                }
                None
            }
            "goodbye" => match parsed(params) {
                Ok(about) => Some(self.goodbye(about)),
                Err(why) => {
                    warn!(%why, "a goodbye to nobody is passed over");
                    None
                }
            },
            other => {
                debug!(method = other, "an unknown notification is passed over");
                None
            }
        }
    }
}

impl Desk {
    fn hello(&self, hello: Hello) -> Later<rpc::Answer> {
        let turn = self.instances.turn(&hello.directory);
        let (peer, instances) = (self.peer.clone(), Arc::clone(&self.instances));
        let door = Arc::clone(&self.door);
        Box::pin(async move {
            let _turn = turn.await;
            if hello.opencode_plugin != PROTOCOL {
                let theirs = hello.opencode_plugin;
                return Err(Fault::new(format_args!(
                    "the plugin speaks protocol {theirs} and asyncagents {VERSION} speaks \
                     {PROTOCOL}: `asyncagents setup opencode` brings them together"
                )));
            }
            let instance = instances.arrive(hello, peer);
            let tools = door.hello(instance).await;
            answer(&Tools::new(&tools))
        })
    }

    fn tools(&self, about: About) -> Later<rpc::Answer> {
        let door = Arc::clone(&self.door);
        Box::pin(async move {
            let tools = door.tools(&about.directory).await;
            answer(&Tools::new(&tools))
        })
    }

    fn call(&self, call: Call) -> Later<rpc::Answer> {
        let door = Arc::clone(&self.door);
        Box::pin(async move {
            let answered = door.call(call.into()).await;
            answer(&answered.map_err(Fault::new)?)
        })
    }

    fn goodbye(&self, about: About) -> Later<()> {
        let turn = self.instances.turn(&about.directory);
        let door = Arc::clone(&self.door);
        // Whoever listens goes on listening: OpenCode closes a folder to open it again.
        Box::pin(async move {
            let _turn = turn.await;
            door.goodbye(&about.directory).await;
        })
    }
}

/// The instances that are there. They come and go, each in the order in which it says so.
#[derive(Default)]
struct Instances(Mutex<Known>);

#[derive(Default)]
struct Known {
    there: HashMap<String, Arc<BridgeConnection>>,
    /// Per folder, the end of what came last.
    turns: HashMap<String, oneshot::Receiver<()>>,
}

impl Instances {
    /// Waits until all that was said about the folder before has been dealt with. It is one's
    /// turn until the sender is dropped.
    fn turn(&self, directory: &str) -> impl Future<Output = oneshot::Sender<()>> + use<> {
        let (turn, end) = oneshot::channel();
        let before = lock(&self.0).turns.insert(directory.to_owned(), end);
        async move {
            if let Some(before) = before {
                // Nothing is ever sent: the end of the other one's turn is all there is to it.
                let _ = before.await;
            }
            turn
        }
    }

    /// Whoever listens to an instance that is set up again goes on listening.
    fn arrive(&self, hello: Hello, peer: Peer) -> Arc<BridgeConnection> {
        if let Some(theirs) = hello.version.filter(|version| version != VERSION) {
            warn!(
                theirs,
                ours = VERSION,
                "the plugin is of another version; `asyncagents setup opencode` renews it"
            );
        }
        let mut known = lock(&self.0);
        if let Some(instance) = known.there.get(&hello.directory) {
            instance.listeners.tell(&Signal::Missed);
            return Arc::clone(instance);
        }
        let instance = Arc::new(BridgeConnection {
            directory: hello.directory.clone(),
            pid: hello.pid,
            began: hello.began.map(Moment::from_millis),
            peer,
            listeners: Listeners::default(),
        });
        known.there.insert(hello.directory, Arc::clone(&instance));
        instance
    }

    fn tell(&self, happened: &Happened<'_>) {
        let known = lock(&self.0);
        if let Some(instance) = known.there.get(&*happened.directory) {
            let event = happened.event.to_owned();
            instance.listeners.tell(&Signal::Event(event));
        }
    }

    /// All that are still there; none is, afterwards.
    fn leave(&self) -> Vec<Arc<BridgeConnection>> {
        lock(&self.0).there.drain().map(|(_, it)| it).collect()
    }
}

#[derive(Deserialize)]
struct Hello {
    directory: String,
    pid: u32,
    /// In milliseconds since 1970.
    began: Option<i64>,
    opencode_plugin: u32,
    version: Option<String>,
}

#[derive(Deserialize)]
struct About {
    directory: String,
}

#[derive(Deserialize)]
struct Call {
    directory: String,
    #[serde(rename = "sessionID")]
    session: String,
    #[serde(rename = "messageID")]
    message: Option<String>,
    #[serde(rename = "callID")]
    call: Option<String>,
    agent: Option<String>,
    tool: String,
    args: Option<Box<RawValue>>,
}

impl From<Call> for ToolCall {
    fn from(call: Call) -> Self {
        Self {
            directory: call.directory,
            session: call.session.into(),
            message: call.message,
            call: call.call,
            agent: call.agent,
            tool: call.tool,
            input: call
                .args
                .map_or("{}".to_owned(), |args| args.get().to_owned()),
        }
    }
}

#[derive(Deserialize)]
struct Happened<'a> {
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
