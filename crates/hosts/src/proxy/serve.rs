//! One connection of an agent to its proxy: requests, one after the other, each checked for itself,
//! until one of them makes a tunnel of it.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use asyncagents_core::lock::lock;
use hyper::{
    Method, Request, StatusCode,
    body::Incoming,
    server::conn::http1,
    service::service_fn,
    upgrade::{OnUpgrade, on},
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{io::copy_bidirectional, net::TcpStream, task::JoinSet};

use super::{
    allowed_hosts::Network,
    answer::{Answer, connected, says, unknown},
    door::{Door, DoorStream},
    forward::forward,
    listener::Shared,
    target::Target,
    way_out::{Reached, Unreached},
};

/// How long the head of a request may take.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// How long it may be.
const LONGEST_HEAD: usize = 32 * 1024;

/// Serves one connection to its end.
pub(super) async fn connection(shared: Arc<Shared>, stream: TcpStream) {
    stream.set_nodelay(true).ok();
    let opened = Opened {
        shared,
        tunnel: Mutex::default(),
        tasks: Mutex::default(),
    };
    let answer = |request| {
        let opened = &opened;
        async move { Ok::<_, hyper::Error>(opened.answer(request).await) }
    };
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(LONGEST_HEAD)
        .serve_connection(TokioIo::new(stream), service_fn(answer))
        .with_upgrades();
    if let Err(error) = served.await {
        tracing::debug!(%error, "a connection of an agent");
    }
    let tunnel = lock(&opened.tunnel).take();
    if let Some(tunnel) = tunnel {
        tunnel.run().await;
    }
}

/// A connection that is open.
struct Opened {
    shared: Arc<Shared>,
    /// What it becomes after the answer.
    tunnel: Mutex<Option<Tunnel>>,
    /// What its requests need to go on.
    tasks: Mutex<JoinSet<()>>,
}

/// What a connection becomes.
enum Tunnel {
    Server(OnUpgrade, Reached),
    Door(OnUpgrade, Arc<dyn DoorStream>),
}

impl Opened {
    async fn answer(&self, request: Request<Incoming>) -> Answer {
        if !self.shared.login.is_in(request.headers()) {
            return unknown();
        }
        let answered = if request.method() == Method::CONNECT {
            self.connect(request).await
        } else {
            self.forward(request).await
        };
        answered.unwrap_or_else(|refusal| refusal)
    }

    /// `CONNECT host:port`: whatever is sent afterwards is for that server.
    async fn connect(&self, mut request: Request<Incoming>) -> Result<Answer, Answer> {
        let authority = request.uri().authority();
        let authority = authority.map_or("", |authority| authority.as_str());
        let target = Target::parse(authority, None).ok_or_else(|| self.refused(authority))?;
        let tunnel = if let Some(door) = target.door() {
            let door = self.door(door);
            let none = |why| says(StatusCode::FORBIDDEN, &format!("asyncagents: {why}"));
            Tunnel::Door(on(&mut request), door.map_err(none)?)
        } else {
            let reached = self.reach(&target, "https").await?;
            Tunnel::Server(on(&mut request), reached)
        };
        *lock(&self.tunnel) = Some(tunnel);
        Ok(connected())
    }

    /// `POST http://host:port/path`: for a server that does not speak TLS.
    async fn forward(&self, request: Request<Incoming>) -> Result<Answer, Answer> {
        let uri = request.uri();
        let (scheme, authority) = match (uri.scheme_str(), uri.authority()) {
            (Some(scheme), Some(authority)) => (scheme, authority.as_str()),
            _ => {
                let why = "asyncagents: this is a proxy; it has no pages of its own";
                return Err(says(StatusCode::BAD_REQUEST, why));
            }
        };
        if scheme != "http" {
            let why = "asyncagents: only http:// is passed on; for all else there is CONNECT";
            return Err(says(StatusCode::BAD_REQUEST, why));
        }
        let target = Target::parse(authority, Some(80)).ok_or_else(|| self.refused(authority))?;
        let reached = self.reach(&target, "http").await?;
        forward(request, &target, reached, &self.tasks).await
    }

    /// Who serves a door to this agent, or why nobody does.
    fn door(&self, door: Door) -> Result<Arc<dyn DoorStream>, &'static str> {
        let setup = &self.shared.setup;
        let (door, why) = match door {
            Door::Tools => (&setup.tools, "this agent has no tools of asyncagents"),
            Door::Permissions => (&setup.permissions, "this agent does not ask by a hook"),
        };
        door.clone().ok_or(why)
    }

    async fn reach(&self, target: &Target, scheme: &str) -> Result<Reached, Answer> {
        let setup = &self.shared.setup;
        let may_be: Network = setup
            .allowed
            .find(target)
            .ok_or_else(|| self.refused(&target.to_string()))?;
        let reached = setup.way_out.reach(target, scheme, may_be).await;
        reached.map_err(|unreached| match unreached {
            Unreached::Refused(why) => {
                self.shared.refused.add(&target.to_string());
                says(StatusCode::FORBIDDEN, &format!("asyncagents: {why}"))
            }
            Unreached::Failed(why) => says(StatusCode::BAD_GATEWAY, &format!("asyncagents: {why}")),
        })
    }

    fn refused(&self, host: &str) -> Answer {
        self.shared.refused.add(host);
        says(
            StatusCode::FORBIDDEN,
            "asyncagents: agents reach the hosts of their model, and nothing else of the network",
        )
    }
}

impl Tunnel {
    async fn run(self) {
        match self {
            Tunnel::Server(upgrade, mut reached) => {
                if let Ok(upgraded) = upgrade.await {
                    // Either side may end it at any time.
                    let mut agent = TokioIo::new(upgraded);
                    let _ = copy_bidirectional(&mut agent, &mut reached.stream).await;
                }
            }
            Tunnel::Door(upgrade, door) => {
                if let Ok(upgraded) = upgrade.await {
                    door.serve(Box::new(TokioIo::new(upgraded))).await;
                }
            }
        }
    }
}
