//! The server.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
};

use axum::{
    Json, Router,
    body::{Body, to_bytes},
    extract::{ConnectInfo, Path, State},
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
    routing::{MethodRouter, get, post},
};
use serde_json::{Value, json};
use tokio::{
    net::{TcpListener, TcpSocket},
    sync::watch,
    task::JoinHandle,
};

use crate::{
    answer::tokens,
    connection::{CutSwitch, CuttableListener, stopped},
    protocol::Wire,
    record::{Counts, Recorded},
    request::{Address, Request},
    respond::{Incoming, Responder},
    script::Script,
};

/// A model server on this machine. It stops when dropped, and all its connections with it.
pub struct ModelServer {
    address: SocketAddr,
    responder: Arc<Responder>,
    stop: watch::Sender<bool>,
    serving: JoinHandle<io::Result<()>>,
}

impl ModelServer {
    /// Plays `script` on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// When there is no port, or a capture of the script is not a regular expression.
    pub async fn start(script: Script) -> io::Result<Self> {
        Self::start_on(script, 0).await
    }

    /// Plays `script` on this port of 127.0.0.1; 0 means a free one.
    ///
    /// # Errors
    /// When the port is taken, or a capture of the script is not a regular expression.
    pub async fn start_on(script: Script, port: u16) -> io::Result<Self> {
        script
            .check()
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let socket = listen(port)?;
        let address = socket.local_addr()?;
        let responder = Arc::new(Responder::new(script));
        let (stop, stopping) = watch::channel(false);
        let listener = CuttableListener {
            socket,
            stopped: stopping.clone(),
        };
        let service =
            router(Arc::clone(&responder)).into_make_service_with_connect_info::<CutSwitch>();
        let serving = axum::serve(listener, service).with_graceful_shutdown(stopped(stopping));
        Ok(Self {
            address,
            responder,
            stop,
            serving: tokio::spawn(serving.into_future()),
        })
    }

    /// Where it is, without the `/v1` or `/v1beta` that clients add.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// All requests so far, in order of arrival. None if the script forgets them.
    pub fn requests(&self) -> Vec<Recorded> {
        self.responder.record.requests()
    }

    /// The requests no rule had a reply for. None if the script forgets them.
    pub fn unanswered(&self) -> Vec<Recorded> {
        self.responder.record.without_reply()
    }

    /// How many requests there were, forgotten or not.
    pub fn counts(&self) -> Counts {
        self.responder.record.counts()
    }

    /// How many requests are in flight: neither answered to the end nor given up by the client.
    pub fn in_flight(&self) -> usize {
        self.responder.in_flight.now()
    }

    /// The most requests that were in flight at once.
    pub fn in_flight_peak(&self) -> usize {
        self.responder.in_flight.peak()
    }

    /// Waits until `what` holds of the requests so far. It is asked again whenever a request
    /// arrives or is answered; it must not ask the server for its requests itself.
    pub async fn wait_for(&self, what: impl Fn(&[Recorded]) -> bool) {
        self.responder.record.wait_for(what).await;
    }

    /// Stops, and waits until all connections are closed.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        // How serving ended does not matter any more.
        let _ = (&mut self.serving).await;
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.stop.send_replace(true);
    }
}

/// The usual queue for new connections is short: a crowd that comes at once would be reset.
fn listen(port: u16) -> io::Result<TcpListener> {
    const WAITING: u32 = 4096;
    let socket = TcpSocket::new_v4()?;
    // A port that was in use a moment ago can be had again.
    socket.set_reuseaddr(true)?;
    socket.bind((Ipv4Addr::LOCALHOST, port).into())?;
    socket.listen(WAITING)
}

fn router(responder: Arc<Responder>) -> Router {
    Router::new()
        // Claude Code asks for this to see whether there is a server.
        .route("/", get(async || Json(json!({}))))
        .route("/v1/messages", model(Wire::Anthropic))
        .route("/v1/messages/count_tokens", post(count_messages))
        .route(
            "/v1/responses",
            model(Wire::Responses).get(refuse_web_socket),
        )
        .route("/v1/chat/completions", model(Wire::Chat))
        .route("/v1beta/models/{call}", post(gemini))
        .route("/v1/models", get(models))
        .with_state(responder)
}

fn model(wire: Wire) -> MethodRouter<Arc<Responder>> {
    post(
        async move |State(responder): State<Arc<Responder>>, ConnectInfo(switch), headers, body| {
            let incoming = Incoming {
                wire,
                address: None,
                switch,
                headers,
                body,
            };
            responder.answer(incoming).await
        },
    )
}

/// Gemini's protocol has the model and what is wanted of it in the address.
async fn gemini(
    State(responder): State<Arc<Responder>>,
    ConnectInfo(switch): ConnectInfo<CutSwitch>,
    Path(call): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let (model, wanted) = call.rsplit_once(':').unwrap_or((&call, ""));
    let stream = match wanted {
        "generateContent" => false,
        "streamGenerateContent" => true,
        "countTokens" => return count_tokens(Wire::Gemini, body).await,
        _ => return StatusCode::NOT_FOUND.into_response(),
    };
    let incoming = Incoming {
        wire: Wire::Gemini,
        address: Some(Address {
            model: model.to_owned(),
            stream,
        }),
        switch,
        headers,
        body,
    };
    responder.answer(incoming).await
}

async fn count_messages(body: Body) -> Response {
    count_tokens(Wire::Anthropic, body).await
}

/// How many tokens a request would have, as the answer to it would count them.
async fn count_tokens(wire: Wire, body: Body) -> Response {
    // A client that broke off does not read what is said to its empty body.
    let body = to_bytes(body, usize::MAX).await.unwrap_or_default();
    match Request::read_to_count(wire, &String::from_utf8_lossy(&body)) {
        Ok(request) => {
            let name = match wire {
                Wire::Gemini => "totalTokens",
                Wire::Anthropic | Wire::Responses | Wire::Chat => "input_tokens",
            };
            Json(json!({name: tokens(request.prompt())})).into_response()
        }
        Err(failure) => {
            let status = StatusCode::from_u16(failure.status).unwrap_or(StatusCode::BAD_REQUEST);
            let document = wire.failure(&failure, "req_count");
            (status, Json(document)).into_response()
        }
    }
}

/// Responses can be had over a web socket too, but not here. Codex then goes on over HTTP at once;
/// after other errors it would try again first.
async fn refuse_web_socket() -> StatusCode {
    StatusCode::UPGRADE_REQUIRED
}

/// One list that clients of either maker understand, Codex among them, which reads `models` and
/// knows its models itself if that is empty.
async fn models() -> Json<Value> {
    const NAME: &str = "scripted";
    Json(json!({
        "object": "list",
        "data": [{
            "id": NAME,
            "object": "model",
            "created": 0,
            "owned_by": "asyncagents",
            "type": "model",
            "display_name": "Scripted",
            "created_at": "1970-01-01T00:00:00Z",
        }],
        "has_more": false,
        "first_id": NAME,
        "last_id": NAME,
        "models": [],
    }))
}
