//! A way to reach one OpenCode, whatever lies between.

use std::sync::Mutex;

use async_trait::async_trait;
use asyncagents_core::{lock::lock, port::HostError};
use serde_json::{Value, value::RawValue};
use tokio::sync::mpsc;

/// A way to reach one OpenCode, for one folder.
#[async_trait]
pub trait Connection: Send + Sync {
    /// Sends an API request. A status of 400 and more is an answer, not an error.
    ///
    /// # Errors
    /// [`HostError::Unreachable`] when nobody answered; [`HostError::Refused`] when whoever
    /// answered will not talk to us.
    async fn send(&self, request: Request) -> Result<Response, HostError>;

    /// Everything that happens there from now on. It ends when the connection does.
    fn signals(&self) -> mpsc::UnboundedReceiver<Signal>;
}

/// An API request. The folder is added by the connection.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// What to do.
    pub method: Method,
    /// With what: `/session/ses_1/message`. Escaped as a URL's path is.
    pub path: String,
    /// How exactly. Not escaped.
    pub query: Vec<(&'static str, String)>,
    /// What is sent.
    pub body: Option<Value>,
}

/// What a request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Reads.
    Get,
    /// Makes.
    Post,
    /// Changes.
    Patch,
    /// Deletes.
    Delete,
}

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The HTTP status.
    pub status: u16,
    /// The text of the answer.
    pub body: String,
    /// Where the next page of a list begins.
    pub next: Option<String>,
}

/// Something that happened.
#[derive(Debug, Clone)]
pub enum Signal {
    /// An event as OpenCode wrote it: `{"type":…,"properties":…}`.
    Event(Box<RawValue>),
    /// Events may have been lost.
    Missed,
}

impl Request {
    /// Reads `path`.
    pub fn get(path: impl Into<String>) -> Self {
        Self::new(Method::Get, path, None)
    }

    /// Sends `body` to `path`.
    pub fn post(path: impl Into<String>, body: Value) -> Self {
        Self::new(Method::Post, path, Some(body))
    }

    /// Changes what is at `path`.
    pub fn patch(path: impl Into<String>, body: Value) -> Self {
        Self::new(Method::Patch, path, Some(body))
    }

    /// Deletes what is at `path`.
    pub fn delete(path: impl Into<String>) -> Self {
        Self::new(Method::Delete, path, None)
    }

    /// Adds `?key=value`.
    #[must_use]
    pub fn query(mut self, key: &'static str, value: impl Into<String>) -> Self {
        self.query.push((key, value.into()));
        self
    }

    fn new(method: Method, path: impl Into<String>, body: Option<Value>) -> Self {
        Self {
            method,
            path: path.into(),
            query: Vec::new(),
            body,
        }
    }
}

impl Method {
    /// As HTTP writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

/// Those who listen to one OpenCode. Each hears everything.
pub(super) struct Listeners(Mutex<Option<Vec<mpsc::UnboundedSender<Signal>>>>);

impl Default for Listeners {
    fn default() -> Self {
        Self(Mutex::new(Some(Vec::new())))
    }
}

impl Listeners {
    /// One more, from now on; after the end it hears only that.
    pub(super) fn add(&self) -> mpsc::UnboundedReceiver<Signal> {
        let (sender, receiver) = mpsc::unbounded_channel();
        if let Some(listeners) = lock(&self.0).as_mut() {
            listeners.push(sender);
        }
        receiver
    }

    pub(super) fn tell(&self, signal: &Signal) {
        if let Some(listeners) = lock(&self.0).as_mut() {
            listeners.retain(|listener| listener.send(signal.clone()).is_ok());
        }
    }

    /// Nothing will happen any more.
    pub(super) fn end(&self) {
        *lock(&self.0) = None;
    }
}
