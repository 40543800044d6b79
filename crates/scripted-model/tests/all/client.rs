//! A plain HTTP client that speaks all protocols.

use std::sync::OnceLock;

use asyncagents_scripted_model::{ModelServer, Reply, Script, When, Wire};
use reqwest::{Client, RequestBuilder, Response, Url};
use serde_json::{Value, json};

/// A server that always says this.
pub(crate) async fn serving(reply: Reply) -> ModelServer {
    start(Script::new().rule(When::always(), reply)).await
}

pub(crate) async fn start(script: Script) -> ModelServer {
    ModelServer::start(script).await.expect("a server")
}

/// A request with one user message.
pub(crate) fn body(wire: Wire, text: &str, stream: bool) -> Value {
    let messages = json!([{"role": "user", "content": text}]);
    match wire {
        Wire::Anthropic => {
            json!({"model": "m", "max_tokens": 100, "messages": messages, "stream": stream})
        }
        Wire::Responses => json!({"model": "m", "input": text, "stream": stream}),
        Wire::Chat => json!({"model": "m", "messages": messages, "stream": stream}),
        // Its server is told the others by the address, and does not mind them here.
        Wire::Gemini => json!({"model": "m", "stream": stream,
            "contents": [{"role": "user", "parts": [{"text": text}]}]}),
    }
}

pub(crate) fn request(server: &ModelServer, wire: Wire, body: &Value) -> RequestBuilder {
    let path = match wire {
        Wire::Anthropic => "v1/messages".to_owned(),
        Wire::Responses => "v1/responses".to_owned(),
        Wire::Chat => "v1/chat/completions".to_owned(),
        Wire::Gemini => {
            let model = body["model"].as_str().expect("a model");
            let how = if body["stream"] == true {
                "streamGenerateContent?alt=sse"
            } else {
                "generateContent"
            };
            format!("v1beta/models/{model}:{how}")
        }
    };
    client(server)
        .post(format!("{}/{path}", server.url()))
        .header("content-type", "application/json")
        .body(body.to_string())
}

/// Making one is slow. Tests have runtimes of their own, so connections are not kept.
pub(crate) fn client(server: &ModelServer) -> &'static Client {
    static CLIENT: OnceLock<Client> = OnceLock::new();
    CLIENT.get_or_init(|| {
        let url = Url::parse(&server.url()).expect("a URL");
        let client = asyncagents_http::builder(&url).pool_max_idle_per_host(0);
        client.build().expect("a client")
    })
}

pub(crate) async fn post(server: &ModelServer, wire: Wire, body: &Value) -> Response {
    let sent = request(server, wire, body).send().await;
    sent.expect("a response")
}

/// Asks "hello", to be answered at once.
pub(crate) async fn ask(server: &ModelServer, wire: Wire) -> (u16, Value) {
    let response = post(server, wire, &body(wire, "hello", false)).await;
    document(response).await
}

pub(crate) async fn document(response: Response) -> (u16, Value) {
    let status = response.status().as_u16();
    let text = response.text().await.expect("a body");
    (status, serde_json::from_str(&text).expect("JSON"))
}

/// Asks "hello", to be answered in a stream.
pub(crate) async fn stream(server: &ModelServer, wire: Wire) -> Vec<Event> {
    let response = post(server, wire, &body(wire, "hello", true)).await;
    assert_eq!(response.status(), 200);
    events(&response.text().await.expect("a whole stream"))
}

/// A server-sent event.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) name: Option<String>,
    pub(crate) data: String,
}

impl Event {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap_or_default()
    }
}

pub(crate) fn events(text: &str) -> Vec<Event> {
    let field = |block: &str, name: &str| {
        let mut lines = block.lines();
        lines.find_map(|line| line.strip_prefix(name).map(|value| value.trim().to_owned()))
    };
    let event = |block: &str| Event {
        name: field(block, "event:"),
        data: field(block, "data:").unwrap_or_default(),
    };
    text.split_terminator("\n\n").map(event).collect()
}

/// All text at this place of the events, put together.
pub(crate) fn joined(events: &[Event], pointer: &str) -> String {
    let at = |event: &Event| event.json().pointer(pointer)?.as_str().map(str::to_owned);
    events.iter().filter_map(at).collect()
}
