//! An OpenCode that is reached over the network: `opencode serve`, or the background server of
//! OpenCode 2.

use std::{
    error::Error,
    fmt, io,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use asyncagents_core::{lock::lock, port::HostError, secret::Secret};
use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use reqwest::{Client, RequestBuilder, Url, header::CONTENT_TYPE};
use serde::Deserialize;
use serde_json::value::RawValue;
use sse_stream::SseStream;
use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{Instant, sleep, timeout},
};
use tracing::{debug, warn};

use crate::connection::{Connection, Listeners, Method, Request, Response, Signal};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Until the whole response is read.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
/// A server that is asked for events just as it begins to listen never answers. A retry succeeds.
const OPEN_STREAM_TIMEOUT: Duration = Duration::from_secs(10);
/// A longer response is refused.
const LONGEST_RESPONSE: usize = 256 * 1024 * 1024;
/// A longer line of the event stream ends it.
const LONGEST_LINE: usize = 64 * 1024 * 1024;
/// How long a connection that is not used is kept. A server closes it after some seconds, and a request
/// that it gets at that moment is lost.
const IDLE_TIMEOUT: Duration = Duration::from_secs(2);
/// OpenCode sends a heartbeat every ten seconds; after six that did not come it is gone.
const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(60);
/// How long to wait before the event stream is opened again.
const FIRST_RETRY_AFTER: Duration = Duration::from_millis(250);
const LAST_RETRY_AFTER: Duration = Duration::from_secs(10);

/// What the generations of OpenCode want in HTTP.
#[derive(Debug)]
pub struct Protocol {
    /// The one user name that is accepted.
    pub user: &'static str,
    /// The path of the event stream.
    pub events: &'static str,
    /// The parameter of a request that names the folder.
    pub folder: &'static str,
    /// Where people find or set the password, for messages.
    pub password: &'static str,
}

/// Where an OpenCode is.
#[derive(Clone)]
pub struct Address {
    /// `http://127.0.0.1:4096`
    pub url: String,
    /// The folder there, if it is not the one that the server was started in.
    pub directory: Option<String>,
    /// The server's password.
    pub password: Option<Secret>,
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the address: it may hold a password.
        let directory = &self.directory;
        write!(f, "Address {{ directory: {directory:?}, .. }}")
    }
}

/// An OpenCode that is reached over the network.
pub struct HttpConnection {
    remote: Arc<Remote>,
    listeners: Arc<Listeners>,
    /// Reads the event stream, once there is a subscriber.
    reading: Mutex<JoinSet<()>>,
}

impl HttpConnection {
    /// Prepares to talk to the OpenCode at this address; nothing is sent yet.
    ///
    /// # Errors
    /// [`HostError::Refused`] for an address that is none.
    pub fn new(address: Address, protocol: &'static Protocol) -> Result<Self, HostError> {
        Ok(Self {
            remote: Arc::new(Remote::new(address, protocol)?),
            listeners: Arc::default(),
            reading: Mutex::default(),
        })
    }
}

#[async_trait]
impl Connection for HttpConnection {
    async fn send(&self, request: Request) -> Result<Response, HostError> {
        self.remote.send(request).await
    }

    /// # Panics
    /// Outside of a tokio runtime.
    fn signals(&self) -> mpsc::UnboundedReceiver<Signal> {
        let receiver = self.listeners.add();
        let mut reading = lock(&self.reading);
        if reading.is_empty() {
            let (remote, listeners) = (Arc::clone(&self.remote), Arc::clone(&self.listeners));
            reading.spawn(async move { remote.follow_events(&listeners).await });
        }
        receiver
    }
}

/// The server, and how to talk to it.
struct Remote {
    client: Client,
    /// Without a name or a password, so it may be shown.
    url: Url,
    directory: Option<String>,
    password: Option<Secret>,
    protocol: &'static Protocol,
}

impl Remote {
    fn new(address: Address, protocol: &'static Protocol) -> Result<Self, HostError> {
        let mut url = Url::parse(&address.url)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
            .ok_or_else(|| {
                let wanted = "OpenCode's address is a URL like `http://127.0.0.1:4096`";
                HostError::Refused(format!("{wanted}, not what was given"))
            })?;
        let inside = url.password().map(Secret::new);
        // Both can only fail for a URL without a host.
        let _ = (url.set_username(""), url.set_password(None));
        url.set_query(None);
        url.set_fragment(None);
        let client = client(&url).map_err(|error| {
            let why = root_cause(&error.without_url());
            HostError::Refused(format!("the HTTP client cannot be set up: {why}"))
        })?;
        Ok(Self {
            client,
            url,
            directory: address.directory,
            password: address.password.or(inside),
            protocol,
        })
    }

    async fn send(&self, request: Request) -> Result<Response, HostError> {
        let what = format!("{} {}", request.method.as_str(), request.path);
        let mut sending = self.request(request.method, &request.path, &request.query);
        if let Some(body) = &request.body {
            let json = body.to_string();
            sending = sending.header(CONTENT_TYPE, "application/json").body(json);
        }
        let response = sending
            .timeout(request.within.unwrap_or(RESPONSE_TIMEOUT))
            .send()
            .await;
        let response = response.map_err(|error| self.unreachable(error, &what))?;
        let response = self.accepted(response)?;
        let status = response.status().as_u16();
        let next = response.headers().get("x-next-cursor");
        let next = next.and_then(|next| Some(next.to_str().ok()?.to_owned()));
        let body = self.read(response, &what).await?;
        Ok(Response { status, body, next })
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        query: &[(&'static str, String)],
    ) -> RequestBuilder {
        let mut url = self.url.clone();
        // A proxy may have put it into a folder.
        let base = self.url.path().trim_end_matches('/');
        url.set_path(&format!("{base}{path}"));
        let folder = self.protocol.folder;
        // A request may be about another folder than the connection.
        let is_named = query.iter().any(|(key, _)| *key == folder);
        let directory = self.directory.iter().filter(|_| !is_named);
        let directory = directory.map(|it| (folder, it));
        let query = query.iter().map(|(key, value)| (*key, value));
        for (key, value) in query.chain(directory) {
            url.query_pairs_mut().append_pair(key, value);
        }
        let method = match method {
            Method::Get => reqwest::Method::GET,
            Method::Post => reqwest::Method::POST,
            Method::Put => reqwest::Method::PUT,
            Method::Patch => reqwest::Method::PATCH,
            Method::Delete => reqwest::Method::DELETE,
        };
        let request = self.client.request(method, url);
        match &self.password {
            Some(password) => request.basic_auth(self.protocol.user, Some(password.reveal())),
            None => request,
        }
    }

    /// The response, unless it means that no request would be accepted.
    fn accepted(&self, response: reqwest::Response) -> Result<reqwest::Response, HostError> {
        let password = self.protocol.password;
        let why = match (response.status().as_u16(), &self.password) {
            (401, None) => {
                format!("wants a password; set {password} (a worker keeps what it began with)")
            }
            (401, Some(_)) => format!(
                "refuses the password; check {password} (a worker keeps what it began with)"
            ),
            // Following a redirect could send the password to another server.
            (300..=399, _) => "sends us elsewhere; is it the right address?".to_owned(),
            _ => return Ok(response),
        };
        Err(HostError::Refused(format!(
            "OpenCode at {} {why}",
            self.url
        )))
    }

    async fn read(&self, mut response: reqwest::Response, what: &str) -> Result<String, HostError> {
        let mut body = Vec::new();
        let announced = response.content_length().unwrap_or(0);
        let mut long = announced > LONGEST_RESPONSE as u64;
        while !long {
            let chunk = response.chunk().await;
            match chunk.map_err(|error| self.unreachable(error, what))? {
                Some(chunk) => body.extend_from_slice(&chunk),
                // Most responses are valid UTF-8 and are not copied.
                None => {
                    return Ok(String::from_utf8(body).unwrap_or_else(|error| {
                        String::from_utf8_lossy(error.as_bytes()).into_owned()
                    }));
                }
            }
            long = body.len() > LONGEST_RESPONSE;
        }
        let most = LONGEST_RESPONSE / (1024 * 1024);
        let why = format!("the answer to {what} is longer than {most} MB");
        Err(HostError::Refused(why))
    }

    fn unreachable(&self, error: reqwest::Error, what: &str) -> HostError {
        if error.is_timeout() {
            return self.timed_out(what);
        }
        // Only our own form of the URL is known to hold no secret.
        let why = root_cause(&error.without_url());
        HostError::Unreachable(format!("OpenCode at {}: {why}", self.url))
    }

    fn timed_out(&self, what: &str) -> HostError {
        let url = &self.url;
        HostError::Unreachable(format!("OpenCode at {url} did not answer {what} in time"))
    }

    /// Passes on events, for ever: a stream that breaks is opened again.
    async fn follow_events(&self, listeners: &Listeners) {
        let mut retry_after = FIRST_RETRY_AFTER;
        loop {
            let began = Instant::now();
            let why = match self.read_stream(listeners).await {
                Ok(()) => "the stream ended".to_owned(),
                Err(error) => error.to_string(),
            };
            debug!(url = %self.url, why, ?retry_after, "event stream ended, reconnecting");
            // A stream that breaks at once may do so every time.
            if began.elapsed() > LAST_RETRY_AFTER {
                retry_after = FIRST_RETRY_AFTER;
            }
            sleep(retry_after).await;
            retry_after = (retry_after * 2).min(LAST_RETRY_AFTER);
        }
    }

    /// Passes on one stream of events, to its end.
    async fn read_stream(&self, listeners: &Listeners) -> Result<(), HostError> {
        let path = self.protocol.events;
        let what = format!("GET {path}");
        let opening = self.request(Method::Get, path, &[]);
        let response = timeout(OPEN_STREAM_TIMEOUT, opening.send())
            .await
            .map_err(|_| self.timed_out(&what))?
            .map_err(|error| self.unreachable(error, &what))?;
        let response = self.accepted(response)?;
        if response.status() != 200 {
            let status = response.status();
            return Err(HostError::Unreachable(format!("{what} answers {status}")));
        }
        let mut events = Box::pin(SseStream::from_bytes_stream(guarded(response)));
        let mut first = true;
        while let Some(event) = events.next().await {
            let event = event.map_err(|error| HostError::Unreachable(broken(&error)))?;
            // OpenCode sends an event at once. From then on none is lost; before, some may have been.
            if std::mem::take(&mut first) {
                listeners.send(&Signal::Missed);
            }
            if let Some(event) = event.data.and_then(about_sessions) {
                listeners.send(&Signal::Event(event));
            }
        }
        Ok(())
    }
}

fn client(url: &Url) -> reqwest::Result<Client> {
    asyncagents_http::builder(url)
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_idle_timeout(IDLE_TIMEOUT)
        .build()
}

/// The event, unless it is about the connection itself.
fn about_sessions(data: String) -> Option<Box<RawValue>> {
    #[derive(Deserialize)]
    struct Event {
        r#type: String,
    }
    let event = serde_json::from_str::<Event>(&data);
    match event.map_err(|error| warn!(%error, "ignoring malformed event")) {
        Ok(event) if event.r#type.starts_with("server.") => None,
        Ok(_) => RawValue::from_string(data).ok(),
        Err(()) => None,
    }
}

/// The bytes of an event stream. Missing heartbeats are an error, and an event without end is one too.
fn guarded(response: reqwest::Response) -> impl Stream<Item = Result<Bytes, io::Error>> {
    let bytes = response.bytes_stream().boxed();
    stream::unfold(Some((bytes, EventSize::default())), |state| async move {
        let (mut bytes, mut size) = state?;
        let chunk = match timeout(HEARTBEAT_TIMEOUT, bytes.next()).await {
            Ok(Some(Ok(chunk))) => chunk,
            Ok(Some(Err(error))) => {
                let why = root_cause(&error.without_url());
                return Some((Err(io::Error::other(why)), None));
            }
            Ok(None) => return None,
            Err(_) => return Some((Err(io::Error::other("nothing came for a minute")), None)),
        };
        size.add(&chunk);
        if size.bytes() > LONGEST_LINE {
            Some((Err(io::Error::other("an event does not end")), None))
        } else {
            Some((Ok(chunk), Some((bytes, size))))
        }
    })
}

/// How much of an event has come. It has any number of lines, and ends with an empty one.
#[derive(Debug, Default)]
struct EventSize {
    lines: usize,
    /// Of the line that has not ended, without carriage returns: an empty line may have one.
    line: usize,
}

impl EventSize {
    fn add(&mut self, chunk: &[u8]) {
        let mut begin = 0;
        for end in memchr::memchr_iter(b'\n', chunk) {
            self.line += seen(&chunk[begin..end]);
            begin = end + 1;
            self.lines = match self.line {
                0 => 0,
                line => self.lines + line,
            };
            self.line = 0;
        }
        self.line += seen(&chunk[begin..]);
    }

    fn bytes(&self) -> usize {
        self.lines + self.line
    }
}

fn seen(part: &[u8]) -> usize {
    part.len() - memchr::memchr_iter(b'\r', part).count()
}

fn broken(error: &sse_stream::Error) -> String {
    match error {
        sse_stream::Error::Body(error) => root_cause(&**error),
        other => format!("the stream is malformed: {other}"),
    }
}

fn root_cause(error: &dyn Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}
