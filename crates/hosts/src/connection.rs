//! A way to reach one OpenCode, whatever lies between.

use std::{sync::Mutex, time::Duration};

use async_trait::async_trait;
use asyncagents_core::{lock::lock, port::HostError};
use serde_json::{Value, value::RawValue};
use tokio::sync::mpsc;

/// A way to reach one OpenCode. In the first generation it is for one folder.
#[async_trait]
pub trait Connection: Send + Sync {
    /// Sends an API request. A status of 400 and more is an answer, not an error.
    ///
    /// # Errors
    /// [`HostError::Unreachable`] without an answer; [`HostError::Refused`] if the server does not
    /// accept requests of ours.
    async fn send(&self, request: Request) -> Result<Response, HostError>;

    /// OpenCode's events from now on. The channel ends when the connection does.
    fn signals(&self) -> mpsc::UnboundedReceiver<Signal>;
}

/// An API request. The folder is added by the connection, unless the request names one.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    pub method: Method,
    /// `/session/ses_1/message`, escaped as a URL's path is.
    pub path: String,
    /// Not escaped.
    pub query: Vec<(&'static str, String)>,
    pub body: Option<Value>,
    /// How long the answer may take, if not as long as usual.
    pub within: Option<Duration>,
    /// Whether the body of a good answer is not looked at, and need not be passed on.
    pub quiet: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The HTTP status.
    pub status: u16,
    pub body: String,
    /// Where the next page of a list begins.
    pub next: Option<String>,
}

#[derive(Debug, Clone)]
pub enum Signal {
    /// An event as OpenCode wrote it: `{"type":…,"properties":…}`, or `data` in OpenCode 2.
    Event(Box<RawValue>),
    /// Events may have been lost.
    Missed,
}

impl Request {
    pub fn get(path: impl Into<String>) -> Self {
        Self::new(Method::Get, path, None)
    }

    pub fn post(path: impl Into<String>, body: Value) -> Self {
        Self::new(Method::Post, path, Some(body))
    }

    pub fn put(path: impl Into<String>, body: Value) -> Self {
        Self::new(Method::Put, path, Some(body))
    }

    pub fn patch(path: impl Into<String>, body: Value) -> Self {
        Self::new(Method::Patch, path, Some(body))
    }

    pub fn delete(path: impl Into<String>) -> Self {
        Self::new(Method::Delete, path, None)
    }

    /// Adds `?key=value`.
    #[must_use]
    pub fn query(mut self, key: &'static str, value: impl Into<String>) -> Self {
        self.query.push((key, value.into()));
        self
    }

    /// Gives the answer another time than usual.
    #[must_use]
    pub fn within(mut self, time: Duration) -> Self {
        self.within = Some(time);
        self
    }

    /// Wants no body, unless it is that of an error.
    #[must_use]
    pub fn quiet(mut self) -> Self {
        self.quiet = true;
        self
    }

    fn new(method: Method, path: impl Into<String>, body: Option<Value>) -> Self {
        Self {
            method,
            path: path.into(),
            query: Vec::new(),
            body,
            within: None,
            quiet: false,
        }
    }
}

impl Method {
    /// As HTTP writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

/// The subscribers to one OpenCode. Each gets every signal.
pub(crate) struct Listeners(Mutex<Option<Vec<mpsc::UnboundedSender<Signal>>>>);

impl Default for Listeners {
    fn default() -> Self {
        Self(Mutex::new(Some(Vec::new())))
    }
}

impl Listeners {
    /// One more subscriber, from now on; after the end its channel is closed at once.
    pub(crate) fn add(&self) -> mpsc::UnboundedReceiver<Signal> {
        let (sender, receiver) = mpsc::unbounded_channel();
        if let Some(listeners) = lock(&self.0).as_mut() {
            listeners.push(sender);
        }
        receiver
    }

    pub(crate) fn send(&self, signal: &Signal) {
        if let Some(listeners) = lock(&self.0).as_mut() {
            listeners.retain(|listener| listener.send(signal.clone()).is_ok());
        }
    }

    /// Closes the channels of all subscribers.
    pub(crate) fn end(&self) {
        *lock(&self.0) = None;
    }
}
