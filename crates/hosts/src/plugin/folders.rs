//! The folders of an OpenCode 1, which are reached from inside of its own process.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use asyncagents_core::{lock::lock, moment::Moment, port::HostError};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::{
    sync::{mpsc, oneshot},
    time::timeout,
};

use super::{
    params::HelloParams,
    rpc::{Peer, RpcError},
};
use crate::connection::{Connection, Listeners, Request, Response, Signal};

const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);

/// An OpenCode 1 in one folder, through the plugin in its process.
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
            #[serde(skip_serializing_if = "is_false")]
            quiet: bool,
        }
        fn is_false(value: &bool) -> bool {
            !value
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
            quiet: request.quiet,
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

/// The folders that are connected. Requests about one folder are handled one after the other.
#[derive(Default)]
pub(super) struct Folders(Mutex<FolderMap>);

#[derive(Default)]
struct FolderMap {
    connected: HashMap<String, Arc<BridgeConnection>>,
    /// Per folder, the end of the newest turn.
    turns: HashMap<String, oneshot::Receiver<()>>,
}

impl Folders {
    /// Waits until all earlier requests about the folder are handled. The turn lasts until the
    /// sender is dropped.
    pub(super) fn turn(
        &self,
        directory: &str,
    ) -> impl Future<Output = oneshot::Sender<()>> + use<> {
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
    pub(super) fn connect(
        &self,
        directory: &str,
        hello: &HelloParams,
        peer: Peer,
    ) -> Arc<BridgeConnection> {
        let mut instances = lock(&self.0);
        if let Some(instance) = instances.connected.get(directory) {
            instance.listeners.send(&Signal::Missed);
            return Arc::clone(instance);
        }
        let instance = Arc::new(BridgeConnection {
            directory: directory.to_owned(),
            pid: hello.pid,
            began: hello.began.map(Moment::from_millis),
            peer,
            listeners: Listeners::default(),
        });
        let connected = &mut instances.connected;
        connected.insert(directory.to_owned(), Arc::clone(&instance));
        instance
    }

    pub(super) fn publish(&self, directory: &str, signal: &Signal) {
        if let Some(instance) = lock(&self.0).connected.get(directory) {
            instance.listeners.send(signal);
        }
    }

    /// Ends all subscriptions; the folders that were connected.
    pub(super) fn disconnect_all(&self) -> Vec<String> {
        let connected = lock(&self.0).connected.drain().collect::<Vec<_>>();
        connected.iter().for_each(|(_, it)| it.listeners.end());
        connected.into_iter().map(|(folder, _)| folder).collect()
    }
}
