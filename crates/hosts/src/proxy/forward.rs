//! One request for a server that does not speak TLS, and its answer, both as they come.

use std::sync::Mutex;

use asyncagents_core::lock::lock;
use http_body_util::BodyExt;
use hyper::{
    Request, StatusCode, Uri,
    body::Incoming,
    client::conn::http1::handshake,
    header::{
        CONNECTION, HOST, HeaderMap, HeaderName, HeaderValue, PROXY_AUTHENTICATE,
        PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
    },
};
use hyper_util::rt::TokioIo;
use tokio::task::JoinSet;

use super::{
    answer::{Answer, says},
    target::Target,
    way_out::Reached,
};

/// What is between two neighbours only.
const OF_NEIGHBOURS: [HeaderName; 9] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    HeaderName::from_static("proxy-connection"),
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Passes a request on. Its server is the one that was checked, whatever its other headers say.
pub(super) async fn forward(
    mut request: Request<Incoming>,
    target: &Target,
    reached: Reached,
    tasks: &Mutex<JoinSet<()>>,
) -> Result<Answer, Answer> {
    let failed = |error: &dyn std::fmt::Display| {
        let why = format!("asyncagents: {target}: {error}");
        says(StatusCode::BAD_GATEWAY, &why)
    };
    let path = request.uri().path_and_query();
    let path = path.map_or("/", |path| path.as_str());
    let path: Uri = path.parse().map_err(|error| failed(&error))?;
    let host = HeaderValue::from_str(&target.to_string()).map_err(|error| failed(&error))?;
    *request.uri_mut() = path;
    drop_those_of_neighbours(request.headers_mut());
    request.headers_mut().insert(HOST, host);

    let Reached {
        stream,
        tasks: of_stream,
    } = reached;
    let connected = handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = connected.map_err(|error| failed(&error))?;
    go_on(tasks, async move {
        let _of_stream = of_stream;
        // Its end is noticed by who reads the answer.
        let _ = connection.await;
    });
    let answer = sender.send_request(request).await;
    let mut answer = answer.map_err(|error| failed(&error))?;
    drop_those_of_neighbours(answer.headers_mut());
    Ok(answer.map(BodyExt::boxed))
}

/// Has something go on as long as the agent's connection is there.
fn go_on(tasks: &Mutex<JoinSet<()>>, task: impl Future<Output = ()> + Send + 'static) {
    let mut tasks = lock(tasks);
    // Those of earlier requests.
    while tasks.try_join_next().is_some() {}
    tasks.spawn(task);
}

fn drop_those_of_neighbours(headers: &mut HeaderMap) {
    let named = headers.get_all(CONNECTION).into_iter();
    let named = named.filter_map(|value| value.to_str().ok());
    let named = named.flat_map(|value| value.split(','));
    let named: Vec<HeaderName> = named.filter_map(|name| name.trim().parse().ok()).collect();
    for name in OF_NEIGHBOURS.iter().chain(&named) {
        headers.remove(name);
    }
}
