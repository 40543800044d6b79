//! An OpenCode 2, through the plugin in its process.

use std::{fmt, time::Duration};

use asyncagents_core::{id::SessionId, moment::Moment, port::HostError};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json, value::RawValue};
use tokio::{sync::mpsc, time::timeout};

use super::{
    params::HelloParams,
    rpc::{Peer, RpcError},
};
use crate::connection::{Listeners, Signal};

const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);

/// An OpenCode 2, through the plugin in its process. One serves all its folders.
pub struct PluginLink {
    pid: u32,
    began: Option<Moment>,
    peer: Peer,
    listeners: Listeners,
}

/// What became of a call of OpenCode's own methods.
#[derive(Debug, Clone, PartialEq)]
pub enum Asked {
    Done(Value),
    /// OpenCode refused; `tag` is its name for the reason, `Session.NotFoundError`.
    Failed {
        tag: String,
        message: String,
    },
}

/// What the model of a session was shown, as OpenCode wrote it.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub struct Shown {
    pub messages: Value,
    /// The events of the session since then.
    pub events: Vec<Value>,
}

impl PluginLink {
    pub(super) fn new(hello: &HelloParams, peer: Peer) -> Self {
        Self {
            pid: hello.pid,
            began: hello.began.map(Moment::from_millis),
            peer,
            listeners: Listeners::default(),
        }
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// When OpenCode's process began.
    pub fn began(&self) -> Option<Moment> {
        self.began
    }

    /// Calls a method of what OpenCode gives to plugins, `session.get`; where it makes a difference,
    /// of what it gives them in a folder. The plugin has a list of those that it calls.
    ///
    /// # Errors
    /// [`HostError::Unreachable`] without an answer; [`HostError::Refused`] if this OpenCode has
    /// no such method.
    pub async fn ask(
        &self,
        method: &str,
        args: &Value,
        folder: Option<&str>,
    ) -> Result<Asked, HostError> {
        #[derive(Serialize)]
        struct Params<'a> {
            method: &'a str,
            args: &'a Value,
            #[serde(skip_serializing_if = "Option::is_none")]
            directory: Option<&'a str>,
        }
        #[derive(Deserialize)]
        struct Answered {
            #[serde(default)]
            value: Value,
            error: Option<Error>,
            #[serde(default)]
            unknown: bool,
        }
        #[derive(Deserialize)]
        struct Error {
            #[serde(default)]
            tag: String,
            message: String,
        }
        let params = Params {
            method,
            args,
            directory: folder,
        };
        let answer = self.request("ask", &params, method).await?;
        let answered: Answered = parsed(&answer, method)?;
        if answered.unknown {
            let why = format!("this OpenCode has no `{method}` for plugins");
            return Err(HostError::Refused(why));
        }
        Ok(match answered.error {
            None => Asked::Done(answered.value),
            Some(Error { tag, message }) => Asked::Failed { tag, message },
        })
    }

    /// What the model of a session was shown last, and what has happened since; nothing if it was
    /// not asked since the plugin has been loaded, or that was forgotten.
    ///
    /// # Errors
    /// [`HostError::Unreachable`] without an answer.
    pub async fn shown(&self, session: &SessionId) -> Result<Option<Shown>, HostError> {
        let what = "what the model was shown";
        let answered = self.request("shown", &of(session), what).await?;
        let shown: Shown = parsed(&answered, what)?;
        Ok(Some(shown).filter(|shown| shown.messages.is_array()))
    }

    /// The names of what was put into the history of a task's session since the plugin has been
    /// loaded.
    ///
    /// # Errors
    /// [`HostError::Unreachable`] without an answer.
    pub async fn delivered(&self, session: &SessionId) -> Result<Vec<String>, HostError> {
        #[derive(Deserialize)]
        struct Answered {
            messages: Vec<String>,
        }
        let what = "what was delivered";
        let answered = self.request("delivered", &of(session), what).await?;
        Ok(parsed::<Answered>(&answered, what)?.messages)
    }

    /// The sessions that are at work.
    ///
    /// # Errors
    /// [`HostError::Unreachable`] without an answer.
    pub async fn busy(&self) -> Result<Vec<String>, HostError> {
        #[derive(Deserialize)]
        struct Answered {
            sessions: Vec<String>,
        }
        let what = "who is at work";
        let answered = self.request("busy", &(), what).await?;
        Ok(parsed::<Answered>(&answered, what)?.sessions)
    }

    /// OpenCode's events from now on, of all folders. `events` are the types that are wanted, the
    /// same for all who listen. The channel ends when the plugin is gone.
    ///
    /// # Errors
    /// [`HostError::Unreachable`] if it is gone already.
    pub fn listen(&self, events: &[&str]) -> Result<mpsc::UnboundedReceiver<Signal>, HostError> {
        #[derive(Serialize)]
        struct Follow<'a> {
            events: &'a [&'a str],
        }
        let signals = self.listeners.add();
        let told = self.peer.notify("follow", &Follow { events });
        told.map_err(|why| HostError::Unreachable(why.to_string()))?;
        Ok(signals)
    }

    pub(super) fn publish(&self, signal: &Signal) {
        self.listeners.send(signal);
    }

    pub(super) fn end(&self) {
        self.listeners.end();
    }

    async fn request(
        &self,
        method: &str,
        params: &impl Serialize,
        what: &str,
    ) -> Result<Box<RawValue>, HostError> {
        match timeout(RESPONSE_TIMEOUT, self.peer.request(method, params)).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(RpcError::Gone)) => Err(unreachable(what, &"OpenCode is gone")),
            Ok(Err(RpcError::Fault(fault))) => Err(unreachable(what, &fault.message)),
            Err(_) => Err(unreachable(what, &"OpenCode did not answer in time")),
        }
    }
}

/// The parameters of what is asked about a session.
fn of(session: &SessionId) -> Value {
    json!({"sessionID": session.as_str()})
}

fn parsed<T: for<'a> Deserialize<'a>>(answer: &RawValue, what: &str) -> Result<T, HostError> {
    serde_json::from_str(answer.get()).map_err(|error| unreachable(what, &error))
}

fn unreachable(what: &str, why: &dyn fmt::Display) -> HostError {
    HostError::Unreachable(format!("{what}: {why}"))
}
