//! An OpenCode over real HTTP, as somebody who wants to work with it notices it.
#![expect(clippy::expect_used, reason = "a test that cannot go on should stop")]

use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
    time::Duration,
};

use asyncagents_core::{port::HostError, secret::Secret};
use asyncagents_hosts::{Address, Connection, HttpConnection, Request, Signal, opencode::HTTP};
use axum::{
    Router,
    body::Body,
    extract::{RawQuery, Request as Asked, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use futures_util::stream;
use serde_json::json;
use tokio::{net::TcpListener, sync::mpsc, task::JoinSet, time};

const PASSWORD: &str = "sesame & co";
/// `opencode:sesame & co`
const CREDENTIALS: &str = "Basic b3BlbmNvZGU6c2VzYW1lICYgY28=";
const CONNECTED: &str = r#"{"type":"server.connected","properties":{}}"#;
const HEARTBEAT: &str = r#"{"type":"server.heartbeat","properties":{}}"#;
const IDLE: &str = r#"{"id":"evt_1","type":"session.idle","properties":{"sessionID":"ses_1"}}"#;

/// A stream of events that somebody listens to; it breaks when dropped.
struct Line {
    events: mpsc::UnboundedSender<String>,
    query: Option<String>,
}

impl Line {
    fn says(&self, event: &str) {
        let _ = self.events.send(format!("data: {event}\n\n"));
    }

    async fn is_left(&self) {
        soon(self.events.closed()).await;
    }
}

/// A server that plays OpenCode. It stops when dropped.
struct Server {
    url: String,
    lines: mpsc::UnboundedReceiver<Line>,
    asked: Arc<Mutex<Vec<String>>>,
    _serving: JoinSet<()>,
}

#[derive(Clone)]
struct Stage {
    password: bool,
    lines: mpsc::UnboundedSender<Line>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    async fn start(password: bool) -> Self {
        let socket = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", socket.local_addr().expect("an address"));
        let (sender, lines) = mpsc::unbounded_channel();
        let asked = Arc::default();
        let stage = Stage {
            password,
            lines: sender,
            asked: Arc::clone(&asked),
        };
        let router = Router::new()
            .route("/event", get(events))
            .route("/base/event", get(events))
            .fallback(answer)
            .with_state(stage);
        let mut serving = JoinSet::new();
        serving.spawn(async move { axum::serve(socket, router).await.expect("a server") });
        Self {
            url,
            lines,
            asked,
            _serving: serving,
        }
    }

    fn address(&self) -> Address {
        Address {
            url: self.url.clone(),
            directory: Some("/home/user/my project".to_owned()),
            password: None,
        }
    }

    fn connection(&self) -> HttpConnection {
        HttpConnection::new(self.address(), &HTTP).expect("a connection")
    }

    /// The next stream that somebody opens.
    async fn line(&mut self) -> Line {
        soon(self.lines.recv()).await.expect("a listener")
    }

    fn last(&self) -> String {
        let asked = self.asked.lock().expect("requests");
        asked.last().expect("a request").clone()
    }
}

async fn events(State(stage): State<Stage>, RawQuery(query): RawQuery) -> Response {
    let (events, queue) = mpsc::unbounded_channel();
    let _ = stage.lines.send(Line { events, query });
    let body = stream::unfold(queue, async |mut queue| {
        let event: String = queue.recv().await?;
        Some((Ok::<_, Infallible>(event), queue))
    });
    let kind = [(header::CONTENT_TYPE, "text/event-stream")];
    (kind, Body::from_stream(body)).into_response()
}

async fn answer(State(stage): State<Stage>, headers: HeaderMap, asked: Asked) -> Response {
    let allowed = headers
        .get("authorization")
        .is_some_and(|it| it == CREDENTIALS);
    if stage.password && !allowed {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let (method, uri) = (asked.method().clone(), asked.uri().clone());
    let kind = headers.get("content-type").map(|it| format!("{it:?} "));
    let body = axum::body::to_bytes(asked.into_body(), 1024)
        .await
        .expect("a body");
    let body = String::from_utf8_lossy(&body);
    let text = format!("{method} {uri} {}{body}", kind.unwrap_or_default());
    stage.asked.lock().expect("requests").push(text);
    match uri.path() {
        "/list" => ([("x-next-cursor", "page 2")], "[1]").into_response(),
        "/missing" => (StatusCode::NOT_FOUND, r#"{"name":"NotFoundError"}"#).into_response(),
        "/done" => StatusCode::NO_CONTENT.into_response(),
        "/moved" => (StatusCode::FOUND, [("location", "http://127.0.0.1:1/")]).into_response(),
        "/huge" => (
            [("content-length", "300000000")],
            Body::from_stream(endless()),
        )
            .into_response(),
        "/endless" => Body::from_stream(endless()).into_response(),
        _ => b"caf\xe9".into_response(),
    }
}

fn endless() -> impl futures_util::Stream<Item = Result<Vec<u8>, Infallible>> {
    stream::repeat_with(|| Ok(vec![b'x'; 1 << 20]))
}

/// Fails rather than hangs.
async fn soon<T>(future: impl Future<Output = T>) -> T {
    let waited = time::timeout(Duration::from_secs(60), future).await;
    waited.expect("an end within a minute")
}

async fn heard(signals: &mut mpsc::UnboundedReceiver<Signal>) -> String {
    match soon(signals.recv()).await {
        Some(Signal::Event(event)) => event.get().to_owned(),
        Some(Signal::Missed) => "missed".to_owned(),
        None => "the end".to_owned(),
    }
}

async fn get_of(connection: &HttpConnection, path: &str) -> Result<(u16, String), HostError> {
    let response = soon(connection.send(Request::get(path))).await?;
    Ok((response.status, response.body))
}

#[tokio::test]
async fn a_request_says_what_it_wants_of_which_folder() {
    let server = Server::start(false).await;
    let connection = server.connection();
    let list = Request::get("/list").query("limit", "1&2");
    let list = soon(connection.send(list)).await.expect("an answer");
    assert_eq!((list.status, list.body.as_str()), (200, "[1]"));
    assert_eq!(list.next.as_deref(), Some("page 2"));
    let folder = "directory=%2Fhome%2Fuser%2Fmy+project";
    assert_eq!(server.last(), format!("GET /list?limit=1%262&{folder} "));

    let patch = Request::patch("/session/a%20b", json!({"title": "é"}));
    soon(connection.send(patch)).await.expect("an answer");
    assert_eq!(
        server.last(),
        format!("PATCH /session/a%20b?{folder} \"application/json\" {{\"title\":\"é\"}}")
    );
    let done = soon(connection.send(Request::delete("/done"))).await;
    let done = done.expect("an answer");
    assert_eq!((done.status, done.body.as_str()), (204, ""));
    assert_eq!(server.last(), format!("DELETE /done?{folder} "));
}

#[tokio::test]
async fn what_opencode_says_no_to_is_an_answer() {
    let server = Server::start(false).await;
    let connection = server.connection();
    let missing = get_of(&connection, "/missing").await;
    let body = r#"{"name":"NotFoundError"}"#.to_owned();
    assert_eq!(missing, Ok((404, body)));
    let odd = get_of(&connection, "/odd").await;
    assert_eq!(odd, Ok((200, "caf\u{fffd}".to_owned())));
}

#[tokio::test]
async fn the_password_opens_the_door_and_is_never_shown() {
    let server = Server::start(true).await;
    let with = |password: Option<&str>| {
        let password = password.map(Secret::new);
        let address = Address {
            password,
            ..server.address()
        };
        assert!(!format!("{address:?}").contains("sesame"), "{address:?}");
        HttpConnection::new(address, &HTTP).expect("a connection")
    };
    let refusal = async |connection: &HttpConnection| match get_of(connection, "/list").await {
        Err(HostError::Refused(why)) => why,
        other => panic!("{other:?}"),
    };
    let none = refusal(&with(None)).await;
    assert!(
        none.contains("wants a password; set OPENCODE_SERVER_PASSWORD"),
        "{none}"
    );
    let wrong = refusal(&with(Some("open sesame"))).await;
    assert!(wrong.contains("refuses the password"), "{wrong}");
    assert!(!wrong.contains("sesame"), "{wrong}");
    let right = get_of(&with(Some(PASSWORD)), "/list").await;
    assert_eq!(right, Ok((200, "[1]".to_owned())));
    // Some write it into the address.
    let inside = server.url.replace("://", "://opencode:open%20sesame@");
    let address = Address {
        url: inside,
        ..server.address()
    };
    assert!(!format!("{address:?}").contains("sesame"), "{address:?}");
    let wrong = refusal(&HttpConnection::new(address, &HTTP).expect("a connection")).await;
    assert!(!wrong.contains("sesame"), "{wrong}");
}

#[tokio::test]
async fn an_address_that_is_none_is_refused() {
    for url in [
        "",
        "opencode",
        "ftp://127.0.0.1",
        "file:///tmp",
        "127.0.0.1:4096",
        "http://",
    ] {
        let address = Address {
            url: url.to_owned(),
            directory: None,
            password: None,
        };
        match HttpConnection::new(address, &HTTP).map(drop) {
            Err(HostError::Refused(why)) => assert!(why.contains("http://"), "{why}"),
            other => panic!("{url}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn nobody_there_is_unreachable() {
    let server = Server::start(false).await;
    let connection = server.connection();
    drop(server);
    let gone = get_of(&connection, "/list").await;
    assert!(matches!(gone, Err(HostError::Unreachable(_))), "{gone:?}");
}

#[tokio::test]
async fn nobody_is_followed_elsewhere() {
    let server = Server::start(false).await;
    let moved = get_of(&server.connection(), "/moved").await;
    assert!(matches!(moved, Err(HostError::Refused(_))), "{moved:?}");
}

#[tokio::test]
async fn an_answer_without_end_is_not_read() {
    let server = Server::start(false).await;
    let connection = server.connection();
    for path in ["/huge", "/endless"] {
        let long = get_of(&connection, path).await;
        let why = format!("the answer to GET {path} is longer than 256 MB");
        assert_eq!(long, Err(HostError::Refused(why)));
    }
}

#[tokio::test]
async fn all_who_listen_hear_the_same_stream() {
    let mut server = Server::start(false).await;
    let connection = server.connection();
    let mut signals = [connection.signals(), connection.signals()];
    let line = server.line().await;
    let folder = "directory=%2Fhome%2Fuser%2Fmy+project";
    assert_eq!(line.query.as_deref(), Some(folder));
    line.says(CONNECTED);
    line.says(HEARTBEAT);
    line.says("{}");
    line.says("nothing");
    line.says(IDLE);
    for signals in &mut signals {
        assert_eq!(heard(signals).await, "missed");
        assert_eq!(heard(signals).await, IDLE);
    }
    let mut third = connection.signals();
    let [mut first, second] = signals;
    drop(second);
    line.says(IDLE);
    assert_eq!(heard(&mut third).await, IDLE);
    assert_eq!(heard(&mut first).await, IDLE);
    assert!(server.lines.is_empty(), "one stream is enough");

    drop(connection);
    line.is_left().await;
    assert_eq!(heard(&mut first).await, "the end");
}

#[tokio::test]
async fn a_stream_that_breaks_is_opened_again() {
    let mut server = Server::start(false).await;
    let connection = server.connection();
    let mut signals = connection.signals();
    for _ in 0..3 {
        let line = server.line().await;
        line.says(CONNECTED);
        assert_eq!(heard(&mut signals).await, "missed");
        line.says(IDLE);
        assert_eq!(heard(&mut signals).await, IDLE);
    }
}

#[tokio::test]
async fn an_event_without_end_is_left_and_many_of_them_are_not() {
    let mut server = Server::start(false).await;
    let connection = server.connection();
    let mut signals = connection.signals();
    let line = server.line().await;
    line.says(CONNECTED);
    assert_eq!(heard(&mut signals).await, "missed");
    let megabyte = "x".repeat(1 << 20);
    for _ in 0..70 {
        line.says(&megabyte);
    }
    line.says(IDLE);
    assert_eq!(heard(&mut signals).await, IDLE);
    // Lines of one event: only an empty one would end it.
    for _ in 0..70 {
        let _ = line.events.send(format!("data: {megabyte}\n:\n"));
    }
    line.is_left().await;
    server.line().await.says(CONNECTED);
    assert_eq!(heard(&mut signals).await, "missed");
}

#[tokio::test]
async fn a_silent_stream_is_opened_again() {
    let mut server = Server::start(false).await;
    let connection = server.connection();
    let mut signals = connection.signals();
    let silent = server.line().await;
    silent.says(CONNECTED);
    assert_eq!(heard(&mut signals).await, "missed");

    time::pause();
    time::advance(Duration::from_secs(61)).await;
    time::resume();
    let line = server.line().await;
    silent.is_left().await;
    line.says(CONNECTED);
    assert_eq!(heard(&mut signals).await, "missed");
}

#[tokio::test]
async fn a_server_in_a_folder_is_found() {
    let mut server = Server::start(false).await;
    let address = Address {
        url: format!("{}/base/?x=1#y", server.url),
        directory: None,
        password: None,
    };
    let connection = HttpConnection::new(address, &HTTP).expect("a connection");
    soon(connection.send(Request::get("/list")))
        .await
        .expect("an answer");
    assert_eq!(server.last(), "GET /base/list ");
    let _signals = connection.signals();
    assert_eq!(server.line().await.query, None);
}
