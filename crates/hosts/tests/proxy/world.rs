//! A proxy, servers that it may and may not reach, and a client without manners.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use asyncagents_hosts::proxy::{AllowedHosts, DoorStream, Proxy, ProxySetup, WayOut};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::timeout,
};

/// After this a story has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) fn proxy(allowed: AllowedHosts) -> Proxy {
    with(allowed, None, WayOut::direct())
}

pub(crate) fn with(
    allowed: AllowedHosts,
    tools: Option<Arc<dyn DoorStream>>,
    way_out: WayOut,
) -> Proxy {
    Proxy::start(ProxySetup {
        allowed,
        tools,
        permissions: None,
        way_out,
    })
    .expect("a proxy")
}

/// A server on this machine that answers everything that it hears with what it has heard, until the
/// other side has said all.
pub(crate) struct Echo {
    pub(crate) port: u16,
    connections: Arc<AtomicUsize>,
}

impl Echo {
    pub(crate) async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("its port").port();
        let connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(async move {
                    let (mut read, mut write) = stream.split();
                    let _ = tokio::io::copy(&mut read, &mut write).await;
                });
            }
        });
        Self { port, connections }
    }

    /// How often it was connected to.
    pub(crate) fn visits(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

/// The header by which the agent says who it is.
pub(crate) fn login(proxy: &Proxy) -> String {
    use base64::{Engine, engine::general_purpose::STANDARD};
    let (_, address) = proxy.doors_environment();
    let user = address
        .strip_prefix("http://")
        .and_then(|address| address.split_once('@'));
    let (user, _) = user.expect("a login");
    format!("Proxy-Authorization: Basic {}\r\n", STANDARD.encode(user))
}

pub(crate) async fn connect(proxy: &Proxy) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", proxy.port())).await;
    stream.expect("the proxy listens")
}

/// Asks for a tunnel, and returns the head of the answer.
pub(crate) async fn tunnel(proxy: &Proxy, to: &str) -> (TcpStream, String) {
    let mut stream = connect(proxy).await;
    let request = format!(
        "CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n{}\r\n",
        login(proxy)
    );
    stream.write_all(request.as_bytes()).await.expect("sent");
    let head = head(&mut stream).await;
    (stream, head)
}

/// Sends something and returns all that comes until the proxy closes.
pub(crate) async fn say(proxy: &Proxy, words: &str) -> String {
    let mut stream = connect(proxy).await;
    stream.write_all(words.as_bytes()).await.expect("sent");
    rest(&mut stream).await
}

/// The head of an answer, up to the empty line.
pub(crate) async fn head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let read = timeout(PATIENCE, stream.read_u8()).await.expect("in time");
        match read {
            Ok(byte) => head.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8(head).expect("text")
}

/// All that comes until the end.
pub(crate) async fn rest(stream: &mut TcpStream) -> String {
    let mut rest = Vec::new();
    let read = timeout(PATIENCE, stream.read_to_end(&mut rest)).await;
    // One that is cut off has said what it has said.
    let _ = read.expect("in time");
    String::from_utf8_lossy(&rest).into_owned()
}

/// So many bytes.
pub(crate) async fn exactly(stream: &mut TcpStream, count: usize) -> String {
    let mut bytes = vec![0; count];
    let read = timeout(PATIENCE, stream.read_exact(&mut bytes)).await;
    read.expect("in time").expect("bytes");
    String::from_utf8(bytes).expect("text")
}

/// The number of an answer's first line.
pub(crate) fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or("none")
}
