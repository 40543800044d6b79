//! Streamable HTTP in front of `asyncagents mcp`, for a suite of tests that speaks nothing else. It
//! carries messages and judges none: what is under test is the program behind it.

use std::{
    collections::HashMap,
    process::{Command, Stdio},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing::post,
};
use futures_util::stream;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::TcpListener,
    process::{Child, ChildStdin, ChildStdout},
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
};

use crate::client::STATELESS;

const SESSION: &str = "mcp-session-id";
const VERSION: &str = "mcp-protocol-version";
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// A server of HTTP. A client that initializes gets a process of its own; all others share one.
pub(crate) struct Bridge {
    url: String,
    doors: Arc<Doors>,
}

struct Doors {
    command: Mutex<tokio::process::Command>,
    sessions: Mutex<HashMap<String, Arc<Process>>>,
    /// For clients that do not initialize.
    shared: Mutex<Option<Arc<Process>>>,
    /// What the program asked of a client, which it never should.
    requests: Arc<Mutex<Vec<Value>>>,
}

impl Bridge {
    /// Listens on a port of its own; `command` is what each process is started by.
    pub(crate) async fn start(command: Command) -> Self {
        let mut command = tokio::process::Command::from(command);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(Stdio::null()).kill_on_drop(true);
        let doors = Arc::new(Doors {
            command: Mutex::new(command),
            sessions: Mutex::default(),
            shared: Mutex::default(),
            requests: Arc::default(),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
        // It has nothing to send unasked, so there is no GET.
        let routes = post(take).delete(end);
        let routes = Router::new()
            .route("/mcp", routes)
            .with_state(doors.clone());
        tokio::spawn(async { axum::serve(listener, routes).await });
        Self { url, doors }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// What the program has asked of clients.
    pub(crate) fn requests(&self) -> Vec<Value> {
        lock(&self.doors.requests).clone()
    }
}

impl Doors {
    fn begin(&self) -> Arc<Process> {
        let started = lock(&self.command).spawn().expect("starts");
        Process::new(started, self.requests.clone())
    }

    fn shared(&self) -> Arc<Process> {
        let mut shared = lock(&self.shared);
        shared.get_or_insert_with(|| self.begin()).clone()
    }
}

/// One message of a client.
async fn take(State(doors): State<Arc<Doors>>, headers: HeaderMap, body: Bytes) -> Response {
    let Ok(message) = serde_json::from_slice::<Value>(&body) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let said = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let initializes = message["method"] == "initialize" && said(VERSION) != Some(STATELESS);
    let mut new = None;
    let process = if let Some(session) = said(SESSION) {
        let known = lock(&doors.sessions).get(session).cloned();
        match known {
            Some(process) => process,
            None => return StatusCode::NOT_FOUND.into_response(),
        }
    } else if initializes {
        let session = uuid::Uuid::new_v4().to_string();
        let process = doors.begin();
        lock(&doors.sessions).insert(session.clone(), process.clone());
        new = Some(session);
        process
    } else {
        doors.shared()
    };
    if message.get("id").is_none() || message.get("method").is_none() {
        process.send(&message);
        return StatusCode::ACCEPTED.into_response();
    }
    let has_session = new.is_some() || said(SESSION).is_some();
    let mut response = process.ask(message, has_session).await;
    if let Some(session) = new {
        let session = session.parse().expect("a header's value");
        response.headers_mut().insert(SESSION, session);
    }
    response
}

/// A client has done with its session.
async fn end(State(doors): State<Arc<Doors>>, headers: HeaderMap) -> StatusCode {
    let session = headers.get(SESSION).and_then(|value| value.to_str().ok());
    let ended = session.and_then(|session| lock(&doors.sessions).remove(session));
    match ended {
        Some(_) => StatusCode::OK,
        None => StatusCode::NOT_FOUND,
    }
}

/// A program that runs, and who waits for its answers.
struct Process {
    input: UnboundedSender<String>,
    waiting: Arc<Waiting>,
    _child: Child,
}

/// Who waits for what, by the IDs that the program sees: those of its clients may be alike.
#[derive(Default)]
struct Waiting(Mutex<(u64, HashMap<u64, Asked>)>);

struct Asked {
    id: Value,
    progress: Option<Value>,
    answers: UnboundedSender<Value>,
}

impl Process {
    fn new(mut child: Child, requests: Arc<Mutex<Vec<Value>>>) -> Arc<Self> {
        let (input, lines) = unbounded_channel();
        let waiting = Arc::<Waiting>::default();
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        tokio::spawn(write(stdin.expect("an input"), lines));
        let read = read(stdout.expect("an output"), waiting.clone(), requests);
        tokio::spawn(read);
        Arc::new(Self {
            input,
            waiting,
            _child: child,
        })
    }

    fn send(&self, message: &Value) {
        // One that has ended answers nobody.
        let _ = self.input.send(message.to_string());
    }

    /// Asks, and answers with what comes of it: the response, or a stream that ends with it.
    async fn ask(self: &Arc<Self>, message: Value, has_session: bool) -> Response {
        let mut answers = self.begin(message, has_session);
        let Some(first) = answers.next().await else {
            return StatusCode::BAD_GATEWAY.into_response();
        };
        if first.get("method").is_none() {
            let status = if has_session {
                StatusCode::OK
            } else {
                status(&first)
            };
            let kind = (header::CONTENT_TYPE, "application/json");
            return (status, [kind], first.to_string()).into_response();
        }
        let events = stream::unfold((Some(first), answers), |(first, mut answers)| async {
            let next = match first {
                Some(first) => first,
                None => answers.next().await?,
            };
            let event = format!("event: message\ndata: {next}\n\n");
            Some((Ok::<_, std::io::Error>(event), (None, answers)))
        });
        let kind = (header::CONTENT_TYPE, "text/event-stream");
        ([kind], Body::from_stream(events)).into_response()
    }

    fn begin(self: &Arc<Self>, mut message: Value, has_session: bool) -> Answers {
        let (sender, answers) = unbounded_channel();
        let progress = message.pointer_mut("/params/_meta/progressToken");
        let mut waiting = lock(&self.waiting.0);
        waiting.0 += 1;
        let number = waiting.0;
        let asked = Asked {
            progress: progress.map(|token| std::mem::replace(token, json!(number))),
            id: std::mem::replace(&mut message["id"], json!(number)),
            answers: sender,
        };
        waiting.1.insert(number, asked);
        drop(waiting);
        self.send(&message);
        Answers {
            answers,
            number,
            process: self.clone(),
            has_session,
        }
    }
}

/// What is said to one request.
struct Answers {
    answers: UnboundedReceiver<Value>,
    number: u64,
    process: Arc<Process>,
    has_session: bool,
}

impl Answers {
    async fn next(&mut self) -> Option<Value> {
        self.answers.recv().await
    }
}

impl Drop for Answers {
    fn drop(&mut self) {
        let left = lock(&self.process.waiting.0).1.remove(&self.number);
        // Who hangs up does not want it any more; with a session that has to be said.
        if left.is_some() && !self.has_session {
            let params = json!({"requestId": self.number});
            self.process.send(&json!({
                "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params,
            }));
        }
    }
}

async fn write(mut input: ChildStdin, mut lines: UnboundedReceiver<String>) {
    while let Some(line) = lines.recv().await {
        if input
            .write_all(format!("{line}\n").as_bytes())
            .await
            .is_err()
        {
            return;
        }
    }
}

/// Hands on what a program says to whom it is for, with the ID that they know.
async fn read(output: ChildStdout, waiting: Arc<Waiting>, requests: Arc<Mutex<Vec<Value>>>) {
    let mut lines = BufReader::new(output).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let mut message: Value = serde_json::from_str(&line).expect("only JSON is printed");
        let is_response = message.get("method").is_none();
        if !is_response && message.get("id").is_some() {
            lock(&requests).push(message);
            continue;
        }
        let mut waiting = lock(&waiting.0);
        if is_response {
            let asked = message["id"].as_u64().and_then(|id| waiting.1.remove(&id));
            if let Some(asked) = asked {
                message["id"] = asked.id;
                let _ = asked.answers.send(message);
            }
            continue;
        }
        let meta = message.pointer("/params/_meta");
        let subscription = meta.and_then(|meta| meta[SUBSCRIPTION].as_u64());
        let progress = message["params"]["progressToken"].as_u64();
        let Some(asked) = subscription.or(progress).and_then(|id| waiting.1.get(&id)) else {
            continue;
        };
        if subscription.is_some() {
            message["params"]["_meta"][SUBSCRIPTION] = asked.id.clone();
        } else {
            message["params"]["progressToken"] = asked.progress.clone().unwrap_or_default();
        }
        let _ = asked.answers.send(message);
    }
    // Whoever still waits is told that nothing comes.
    lock(&waiting.0).1.clear();
}

/// The status that the protocol without sessions has for some errors.
fn status(response: &Value) -> StatusCode {
    match response["error"]["code"].as_i64() {
        Some(-32601) => StatusCode::NOT_FOUND,
        Some(-32600 | -32602 | -32022..=-32020) => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
