//! The other end of the plugin: routes what it asks and tells.

use std::{
    io,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use asyncagents_core::{agent::ToolSpec, id::SessionId, lock::lock};
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use tokio::io::{AsyncRead, AsyncWrite};
use tracing::{debug, warn};

use super::{
    bounds::Bounds,
    folders::{BridgeConnection, Folders},
    link::PluginLink,
    params::{
        CallParams, EventParams, FolderParams, GoodbyeParams, HelloParams, PermitParams, Rules,
        RulesParams, Tools,
    },
    rpc::{self, Fault, Handler, Peer},
};
use crate::connection::Signal;

/// The protocol this end speaks; the plugin names its own.
const PROTOCOL: u32 = 2;
/// The oldest that is understood: plugins that know OpenCode 1 alone.
const OLDEST_PROTOCOL: u32 = 1;
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Handles what the plugin asks.
#[async_trait]
pub trait BridgeHandler: Send + Sync + 'static {
    /// An OpenCode 1 has connected, for one folder. Its calls wait for the answer, and it may not
    /// have begun to serve requests, so do not wait for it here. One that is already known has been
    /// set up again.
    async fn hello(&self, instance: Arc<BridgeConnection>) -> Vec<ToolSpec>;

    /// An OpenCode 2 has connected, for all its folders, under the same conditions.
    ///
    /// # Errors
    /// Why it is not served, for its models and its user.
    async fn hello_opencode2(&self, opencode: Arc<PluginLink>) -> Result<Vec<ToolSpec>, String>;

    /// The tools as the models in a folder are shown them now.
    async fn tools(&self, directory: &str) -> Vec<ToolSpec>;

    /// Answers a tool call, or tells the model why not. Dropped when the call is cancelled.
    async fn call(&self, call: ToolCall) -> Result<Answer, String>;

    /// What binds a session that was made for a task, in an OpenCode 2.
    ///
    /// # Errors
    /// Why that is not known: nothing may be used then.
    async fn bounds(&self, session: &SessionId) -> Result<Bounds, String>;

    /// A folder of an OpenCode 1 has disconnected. This may be called twice.
    async fn goodbye(&self, directory: &str);

    /// An OpenCode 2 has closed its last folder, or is gone. It may come back if it is not gone.
    async fn goodbye_opencode2(&self);
}

/// A model calls a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// The folder of the session.
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

/// Serves the plugin until it disconnects; says goodbye for what is left.
/// `events` are the types of event that are wanted of an OpenCode 1.
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
    let connected = Arc::new(Connected::default());
    let router = Router {
        peer,
        handler: Arc::clone(&handler),
        connected: Arc::clone(&connected),
    };
    let ended = connection.run(Arc::new(router)).await;
    for directory in connected.folders.disconnect_all() {
        handler.goodbye(&directory).await;
    }
    let opencode2 = lock(&connected.opencode2).take();
    if let Some(opencode2) = opencode2 {
        opencode2.end();
        handler.goodbye_opencode2().await;
    }
    ended
}

/// What the plugin has connected: a process is one generation of OpenCode or the other.
#[derive(Default)]
struct Connected {
    folders: Folders,
    opencode2: Mutex<Option<Arc<PluginLink>>>,
}

impl Connected {
    /// Subscriptions to an OpenCode that connects again are kept.
    fn opencode2(&self, hello: &HelloParams, peer: Peer) -> Arc<PluginLink> {
        let mut known = lock(&self.opencode2);
        if let Some(known) = &*known {
            known.publish(&Signal::Missed);
        }
        let link = known.get_or_insert_with(|| Arc::new(PluginLink::new(hello, peer)));
        Arc::clone(link)
    }

    fn publish(&self, params: &EventParams<'_>) {
        let signal = match params.event {
            Some(event) => Signal::Event(event.to_owned()),
            None => Signal::Missed,
        };
        match &params.directory {
            Some(directory) => self.folders.publish(directory, &signal),
            None => {
                if let Some(opencode2) = &*lock(&self.opencode2) {
                    opencode2.publish(&signal);
                }
            }
        }
    }
}

/// Passes the plugin's requests on to the handler.
struct Router {
    peer: Peer,
    handler: Arc<dyn BridgeHandler>,
    connected: Arc<Connected>,
}

impl Handler for Router {
    fn request(&self, method: &str, params: &RawValue) -> BoxFuture<'static, rpc::Answer> {
        let answer = match method {
            "hello" => parsed(params).map(|hello| self.hello(hello)),
            "tools" => parsed(params).map(|params| self.tools(params)),
            "call" => parsed(params).map(|call| self.call(call)),
            "rules" => parsed(params).map(|params| self.rules(params)),
            "permit" => parsed(params).map(|params| self.permit(params)),
            "ping" => Ok(Box::pin(async { answer(&()) }) as BoxFuture<'static, _>),
            other => Err(Fault::unknown(other)),
        };
        answer.unwrap_or_else(|fault| Box::pin(async { Err(fault) }))
    }

    fn notification(&self, method: &str, params: &RawValue) -> Option<BoxFuture<'static, ()>> {
        match method {
            "event" => {
                match parsed::<EventParams<'_>>(params) {
                    Ok(event) => self.connected.publish(&event),
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

/// Where the turns of an OpenCode 2 are counted: it has no folder, and folders are no empty text.
const ALL_FOLDERS: &str = "";

impl Router {
    fn hello(&self, hello: HelloParams) -> BoxFuture<'static, rpc::Answer> {
        let folder = hello.directory.as_deref().unwrap_or(ALL_FOLDERS);
        let turn = self.connected.folders.turn(folder);
        let (peer, connected) = (self.peer.clone(), Arc::clone(&self.connected));
        let handler = Arc::clone(&self.handler);
        Box::pin(async move {
            let _turn = turn.await;
            check(&hello)?;
            let tools = match (hello.generation, &hello.directory) {
                (1, Some(directory)) => {
                    let instance = connected.folders.connect(directory, &hello, peer);
                    handler.hello(instance).await
                }
                (2, None) => {
                    let link = connected.opencode2(&hello, peer);
                    let welcomed = handler.hello_opencode2(link).await;
                    welcomed.map_err(Fault::new)?
                }
                _ => return Err(Fault::params("neither an OpenCode 1 nor an OpenCode 2")),
            };
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

    fn rules(&self, params: RulesParams) -> BoxFuture<'static, rpc::Answer> {
        let handler = Arc::clone(&self.handler);
        Box::pin(async move {
            let bounds = handler.bounds(&params.session.into()).await;
            let bounds = bounds.map_err(Fault::new)?;
            let offered = params.tools.iter().map(String::as_str);
            answer(&Rules {
                hidden: offered.filter(|tool| !bounds.offers(tool)).collect(),
                guarded: bounds.guards_calls(),
            })
        })
    }

    fn permit(&self, params: PermitParams) -> BoxFuture<'static, rpc::Answer> {
        let handler = Arc::clone(&self.handler);
        Box::pin(async move {
            let bounds = handler.bounds(&params.session.as_str().into()).await;
            let permitted = bounds.and_then(|bounds| bounds.permit(&params.tool_use()));
            permitted.map_err(Fault::new)?;
            answer(&())
        })
    }

    fn goodbye(&self, params: GoodbyeParams) -> BoxFuture<'static, ()> {
        let folder = params.directory.as_deref().unwrap_or(ALL_FOLDERS);
        let turn = self.connected.folders.turn(folder);
        let handler = Arc::clone(&self.handler);
        // Subscriptions are kept: OpenCode closes a folder to open it again.
        Box::pin(async move {
            let _turn = turn.await;
            match params.directory {
                Some(directory) => handler.goodbye(&directory).await,
                None => handler.goodbye_opencode2().await,
            }
        })
    }
}

/// Whether the plugin and this program understand each other.
fn check(hello: &HelloParams) -> Result<(), Fault> {
    let theirs = hello.opencode_plugin;
    if !(OLDEST_PROTOCOL..=PROTOCOL).contains(&theirs) {
        return Err(Fault::new(format_args!(
            "the plugin speaks protocol {theirs} and asyncagents {VERSION} speaks \
             {PROTOCOL}: `asyncagents setup opencode` brings them together"
        )));
    }
    if let Some(theirs) = hello.version.as_ref().filter(|version| *version != VERSION) {
        warn!(
            theirs,
            ours = VERSION,
            "plugin version mismatch; `asyncagents setup opencode` updates it"
        );
    }
    Ok(())
}

fn parsed<'a, T: Deserialize<'a>>(params: &'a RawValue) -> Result<T, Fault> {
    serde_json::from_str(params.get()).map_err(Fault::params)
}

fn answer(result: &impl Serialize) -> rpc::Answer {
    to_raw_value(result).map_err(Fault::new)
}
