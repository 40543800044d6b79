//! The proxy of one agent: it listens on this machine as long as it is held.

use std::{io, net::Ipv4Addr, sync::Arc, time::Duration};

use tokio::{net::TcpListener, task::JoinSet, time::sleep};

use super::{
    DOORS_VARIABLE, allowed_hosts::AllowedHosts, door::DoorStream, login::Login, peer,
    refused::Refused, serve, way_out::WayOut,
};

/// How many connections there are at once. Further ones wait; half of them are kept for the agent's user. Each takes two files of the process, which
/// all agents share.
const MOST_CONNECTIONS: usize = 64;

/// After a connection could not be accepted, as when all files of the process are open.
const PAUSE: Duration = Duration::from_millis(50);

/// What a proxy is started with.
pub struct ProxySetup {
    /// Which hosts the agent may reach.
    pub allowed: AllowedHosts,
    /// Who serves our tools, if the agent gets them.
    pub tools: Option<Arc<dyn DoorStream>>,
    /// Who says whether a call may be made, if a hook of the agent asks.
    pub permissions: Option<Arc<dyn DoorStream>>,
    /// How servers are reached.
    pub way_out: WayOut,
}

/// The proxy of one agent. All its connections end when it is dropped.
pub struct Proxy {
    port: u16,
    shared: Arc<Shared>,
    _listening: JoinSet<()>,
}

/// What all connections know.
pub(super) struct Shared {
    pub(super) setup: ProxySetup,
    pub(super) login: Login,
    pub(super) refused: Refused,
}

impl Proxy {
    /// Listens on a port of this machine that was free. For a thread of a runtime.
    ///
    /// # Errors
    /// If there is no free port.
    pub fn start(setup: ProxySetup) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let shared = Arc::new(Shared {
            setup,
            login: Login::new(),
            refused: Refused::default(),
        });
        let accepting = accept_all(TcpListener::from_std(listener)?, Arc::clone(&shared));
        let mut listening = JoinSet::new();
        listening.spawn(accepting);
        Ok(Self {
            port,
            shared,
            _listening: listening,
        })
    }

    /// Where it listens, on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The variables by which programs find it. Servers on this machine are asked for through it too.
    pub fn environment(&self) -> Vec<(String, String)> {
        let address = self.shared.login.address(self.port);
        let names = ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"];
        let both = names.map(|name| [name.to_owned(), name.to_ascii_lowercase()]);
        let through = both.into_iter().flatten();
        let through = through.map(|name| (name, address.clone()));
        let fixed = [
            ("NO_PROXY", ""),
            ("no_proxy", ""),
            // Node looks at the others only if it is told to.
            ("NODE_USE_ENV_PROXY", "1"),
        ];
        let fixed = fixed.map(|(name, value)| (name.to_owned(), value.to_owned()));
        through.chain(fixed).collect()
    }

    /// The variable by which `asyncagents mcp --connect` and `asyncagents hook ask` find it.
    pub fn doors_environment(&self) -> (String, String) {
        let address = self.shared.login.address(self.port);
        (DOORS_VARIABLE.to_owned(), address)
    }

    /// The newest servers that the agent has tried to reach and must not, the last at the end.
    pub fn refused(&self) -> Vec<String> {
        self.shared.refused.newest()
    }
}

/// Accepts connections until it is dropped, and all of them with it.
async fn accept_all(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if connections.len() < MOST_CONNECTIONS => match accepted {
                Ok((_, peer)) if connections.len() >= MOST_CONNECTIONS / 2
                    && peer::is_another_users(peer) => {}
                Ok((stream, _)) => {
                    connections.spawn(serve::connection(Arc::clone(&shared), stream));
                }
                Err(error) => {
                    tracing::debug!(%error, "a connection of an agent");
                    sleep(PAUSE).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
}
