//! The requests that a server of OpenCode 2 has got, as its own traces tell.

use std::sync::{Arc, Mutex};

use asyncagents_core::lock::lock;
use axum::{Router, body::Bytes, extract::State, routing::post};
use serde_json::Value;
use tokio::{net::TcpListener, runtime::Runtime};

/// Requests with this user agent are the test's own, and are not kept.
pub(super) const OURSELVES: &str = "asyncagents-stories";

type Requests = Arc<Mutex<Vec<String>>>;

/// Where OpenCode sends its traces, some seconds after what they tell of.
pub(super) struct Traces {
    requests: Requests,
    url: String,
}

impl Traces {
    /// For as long as the runtime lasts.
    pub(super) fn collect(runtime: &Runtime) -> Self {
        let requests = Requests::default();
        let app = Router::new()
            .route("/v1/traces", post(keep))
            .route("/v1/logs", post(async || ()))
            .with_state(Arc::clone(&requests));
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"));
        let listener = listener.expect("a port");
        let port = listener.local_addr().expect("its address").port();
        runtime.spawn(async move { axum::serve(listener, app).await });
        Self {
            requests,
            url: format!("http://127.0.0.1:{port}"),
        }
    }

    /// Where OpenCode is to send them.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// The requests so far, as `GET /api/session`.
    pub(super) fn requests(&self) -> Vec<String> {
        lock(&self.requests).clone()
    }
}

async fn keep(State(requests): State<Requests>, body: Bytes) {
    let traces: Value = serde_json::from_slice(&body).unwrap_or_default();
    let mut spans = Vec::new();
    for resource in list(&traces["resourceSpans"]) {
        for scope in list(&resource["scopeSpans"]) {
            spans.extend(list(&scope["spans"]).iter().filter_map(request));
        }
    }
    lock(&requests).extend(spans);
}

/// The request that a span tells of, unless it is the test's own.
fn request(span: &Value) -> Option<String> {
    if !span["name"].as_str()?.starts_with("http.server ") {
        return None;
    }
    let value = |name: &str| {
        let mut attributes = list(&span["attributes"]).iter();
        let found = attributes.find(|attribute| attribute["key"] == name)?;
        found["value"]["stringValue"].as_str()
    };
    if value("user_agent.original") == Some(OURSELVES) {
        return None;
    }
    let method = value("http.request.method")?;
    Some(format!("{method} {}", value("url.path")?))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
