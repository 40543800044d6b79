//! How a server is reached: directly, or through the proxy that the user's own environment names.

use std::{io, sync::Arc, time::Duration};

use bytes::Bytes;
use http_body_util::Empty;
use hyper::{
    Method, Request, StatusCode, Uri,
    client::conn::http1::handshake,
    header::{HOST, PROXY_AUTHORIZATION},
};
use hyper_util::{
    client::proxy::matcher::{Intercept, Matcher},
    rt::TokioIo,
};
use tokio::{
    net::{TcpStream, lookup_host},
    task::JoinSet,
    time::timeout,
};

use super::{
    allowed_hosts::Network,
    door::TwoWay,
    target::{HostName, Target, is_public},
};

/// How long a server, or the user's proxy, may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// How servers are reached.
#[derive(Clone, Default)]
pub struct WayOut(Option<Arc<Matcher>>);

/// Why a server was not reached.
pub(super) enum Unreached {
    /// Its name leads to where it must not lead.
    Refused(String),
    Failed(String),
}

/// A connection to a server.
pub(super) struct Reached {
    pub(super) stream: Box<dyn TwoWay>,
    /// What the connection needs to go on.
    pub(super) tasks: JoinSet<()>,
}

impl WayOut {
    /// Without any other proxy.
    pub fn direct() -> Self {
        Self(None)
    }

    /// Through what `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` name, as our own clients
    /// read them: a proxy with an address that begins with `http://`, with or without a password. It
    /// is asked for a tunnel, for servers without TLS too, and never for this machine. It looks up the
    /// names of hosts, so that it is the one who has to refuse those that lead to private addresses.
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Self {
        let first = |names: [&str; 2]| {
            let mut set = names.into_iter().filter_map(&variable);
            set.find(|value| !value.is_empty()).unwrap_or_default()
        };
        let matcher = Matcher::builder()
            .all(first(["ALL_PROXY", "all_proxy"]))
            .https(first(["HTTPS_PROXY", "https_proxy"]))
            .http(first(["HTTP_PROXY", "http_proxy"]))
            .no(first(["NO_PROXY", "no_proxy"]));
        Self(Some(Arc::new(matcher.build())))
    }

    /// Connects to a server that may be there.
    pub(super) async fn reach(
        &self,
        target: &Target,
        scheme: &str,
        may_be: Network,
    ) -> Result<Reached, Unreached> {
        let reached = async {
            match self.other_proxy(target, scheme) {
                Some(proxy) => through(&proxy, target).await,
                None => directly(target, may_be).await,
            }
        };
        let too_long = |_| Unreached::Failed(format!("{target} did not answer in time"));
        timeout(CONNECT_TIMEOUT, reached).await.map_err(too_long)?
    }

    fn other_proxy(&self, target: &Target, scheme: &str) -> Option<Intercept> {
        let is_here = match &target.host {
            HostName::Name(name) => name == "localhost",
            HostName::Address(address) => address.is_loopback(),
        };
        let uri: Uri = format!("{scheme}://{target}/").parse().ok()?;
        self.0.as_ref()?.intercept(&uri).filter(|_| !is_here)
    }
}

async fn directly(target: &Target, may_be: Network) -> Result<Reached, Unreached> {
    let failed = |error: io::Error| Unreached::Failed(format!("{target}: {error}"));
    let addresses: Vec<_> = match &target.host {
        HostName::Address(address) => vec![(*address, target.port).into()],
        HostName::Name(name) => {
            let found = lookup_host((name.as_str(), target.port)).await;
            found.map_err(failed)?.collect()
        }
    };
    // The addresses that were checked are those that are connected to: the name is not looked up again.
    let usable = addresses.iter().filter(|address| match may_be {
        Network::Anywhere => true,
        Network::Internet => is_public(address.ip()),
    });
    let usable: Vec<_> = usable.copied().collect();
    if usable.is_empty() && !addresses.is_empty() {
        return Err(Unreached::Refused(format!(
            "{target} leads to this machine or to a private network"
        )));
    }
    let stream = TcpStream::connect(&usable[..]).await.map_err(failed)?;
    // Small pieces are for now, not for later.
    stream.set_nodelay(true).ok();
    Ok(Reached {
        stream: Box::new(stream),
        tasks: JoinSet::new(),
    })
}

/// Has another proxy connect to the server.
async fn through(proxy: &Intercept, target: &Target) -> Result<Reached, Unreached> {
    let uri = proxy.uri();
    let host = uri.host().unwrap_or_default();
    let name = format!("the proxy {host}");
    if uri.scheme_str() != Some("http") {
        let scheme = uri.scheme_str().unwrap_or_default();
        let why = format!("{name} is reached by {scheme}, and agents can use http:// proxies only");
        return Err(Unreached::Failed(why));
    }
    let failed = |error: &dyn std::fmt::Display| Unreached::Failed(format!("{name}: {error}"));
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let port = uri.port_u16().unwrap_or(80);
    let stream = TcpStream::connect((host, port)).await;
    let stream = stream.map_err(|error| failed(&error))?;
    stream.set_nodelay(true).ok();
    let connected = handshake::<_, Empty<Bytes>>(TokioIo::new(stream)).await;
    let (mut sender, connection) = connected.map_err(|error| failed(&error))?;
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        // Its end is noticed by who reads from it.
        let _ = connection.with_upgrades().await;
    });
    let mut request = Request::builder()
        .method(Method::CONNECT)
        .uri(target.to_string())
        .header(HOST, target.to_string());
    if let Some(login) = proxy.basic_auth() {
        request = request.header(PROXY_AUTHORIZATION, login);
    }
    let request = request.body(Empty::new()).map_err(|error| failed(&error))?;
    let answer = sender.send_request(request).await;
    let answer = answer.map_err(|error| failed(&error))?;
    if answer.status() != StatusCode::OK {
        return Err(failed(&format!("{target}: {}", answer.status())));
    }
    let stream = hyper::upgrade::on(answer).await;
    Ok(Reached {
        stream: Box::new(TokioIo::new(stream.map_err(|error| failed(&error))?)),
        tasks,
    })
}
