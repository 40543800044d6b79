//! A server of OpenCode at an address: an `opencode serve` of either generation, or a background
//! server of OpenCode 2.

use std::{env, sync::Arc, time::Duration};

use anyhow::{Context, anyhow};
use asyncagents_core::{
    host_ref::{HostRef, HostSetup},
    id::SessionId,
    port::{Host, HostError},
    secret::Secret,
};
use asyncagents_engine::Unanswered;
use asyncagents_hosts::{
    Address, Connection, HttpConnection, Protocol, Request, Response,
    opencode::{self, OpenCode, version::Generation},
    opencode2::{self, OpenCode2},
};
use asyncagents_runtime::Problem;
use serde::Deserialize;
use tokio::time::timeout;

use super::{HostContext, HostKind, ShellLaunch, refused, wrong_kind};
use crate::{exit::Failure, launch_secrets::Overrides};

/// How long a server may take to say that it is there, and how often it is asked.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);
const TRIES: usize = 3;

pub(super) struct OpenCodeUrlHosts(pub(super) Arc<HostContext>);

/// The one setting of a launch that counts here, and what it says.
const UNANSWERED: &str = "permissions.unanswered";
const WAIT: &str = "wait";
const REFUSE: &str = "refuse";

/// Where a server is.
#[derive(Clone, Copy)]
struct Place<'a> {
    url: &'a str,
    folder: Option<&'a str>,
}

impl<'a> Place<'a> {
    fn of(host: &'a HostRef) -> Option<(Generation, Self)> {
        match host {
            HostRef::OpenCodeUrl { url, folder } => {
                let folder = folder.as_deref();
                Some((Generation::One, Self { url, folder }))
            }
            HostRef::OpenCode2Url { url, folder } => {
                let folder = folder.as_deref();
                Some((Generation::Two, Self { url, folder }))
            }
            HostRef::Engine { .. }
            | HostRef::OpenCodeBridge { .. }
            | HostRef::OpenCode2Bridge { .. }
            | HostRef::ClaudeCode { .. }
            | HostRef::Codex { .. }
            | HostRef::McpClient
            | HostRef::Agent { .. }
            | HostRef::Other(_) => None,
        }
    }

    fn host(self, generation: Generation) -> HostRef {
        let (url, folder) = (self.url.into(), self.folder.map(Into::into));
        match generation {
            Generation::One => HostRef::OpenCodeUrl { url, folder },
            Generation::Two => HostRef::OpenCode2Url { url, folder },
        }
    }

    fn connect(self, generation: Generation) -> Result<HttpConnection, HostError> {
        let protocol: &'static Protocol = match generation {
            Generation::One => &opencode::HTTP,
            Generation::Two => &opencode2::HTTP,
        };
        let address = Address {
            url: self.url.to_owned(),
            directory: self.folder.map(str::to_owned),
            password: password(generation),
        };
        HttpConnection::new(address, protocol)
    }
}

/// The password of a server. Each generation has its own name for it first.
fn password(generation: Generation) -> Option<Secret> {
    let mut names = ["OPENCODE_SERVER_PASSWORD", "OPENCODE_PASSWORD"];
    if generation == Generation::Two {
        names.reverse();
    }
    let mut set = names.into_iter().filter_map(|name| env::var(name).ok());
    set.find(|value| !value.is_empty()).map(Secret::new)
}

/// Which generation answers at an address. Each has a path of its own for that; for the other's
/// path it has no answer, or a page for people.
async fn generation_at(place: Place<'_>) -> Result<Generation, HostError> {
    #[derive(Deserialize)]
    struct Health {
        healthy: Option<bool>,
        version: Option<String>,
    }
    let is_healthy = |health: Health| health.healthy.unwrap_or(health.version.is_some());
    let mut refusal = None;
    let two = opencode2::HEALTH.map(|path| (Generation::Two, path));
    let paths = [(Generation::One, "/global/health")].into_iter().chain(two);
    for (generation, path) in paths {
        match ask(&place.connect(generation)?, path).await {
            Ok(response) => {
                let health = serde_json::from_str::<Health>(&response.body);
                if response.status == 200 && health.is_ok_and(is_healthy) {
                    return Ok(generation);
                }
            }
            // Its password may have the other generation's name.
            Err(error @ HostError::Refused(_)) => refusal = Some(error),
            Err(error) => return Err(error),
        }
    }
    Err(refusal.unwrap_or_else(|| {
        let url = place.url;
        HostError::Refused(format!("what answers at {url} is no OpenCode"))
    }))
}

/// Asks a server that may just have begun to listen: what comes then is never answered.
async fn ask(connection: &HttpConnection, path: &str) -> Result<Response, HostError> {
    for _ in 1..TRIES {
        let asked = timeout(ANSWER_TIMEOUT, connection.send(Request::get(path))).await;
        if let Ok(answer) = asked {
            return answer;
        }
    }
    connection.send(Request::get(path)).await
}

/// A server, as it is opened.
enum Server {
    One(OpenCode),
    Two(OpenCode2),
}

impl Server {
    async fn folder_of(&self, session: &SessionId) -> Result<Option<String>, HostError> {
        match self {
            Self::One(server) => server.folder_of(session).await,
            Self::Two(server) => server.folder_of(session).await,
        }
    }
}

impl OpenCodeUrlHosts {
    /// Address, folder and settings are sealed: where and how something runs is for the user to
    /// say, and others may have changed the database.
    fn seal(&self, host: HostRef, settings: String) -> anyhow::Result<HostSetup> {
        Ok(self.0.launches()?.seal(host, settings))
    }

    /// What goes with a launch. Where nobody could answer what a task asks, it does not wait.
    fn settings(&self, overrides: &Overrides) -> anyhow::Result<String> {
        let waits = match self.0.config.agent_config.unanswered {
            Some(said) => said == Unanswered::Wait,
            None => overrides.get(UNANSWERED).is_some_and(|said| said == WAIT),
        };
        let unanswered = if waits { WAIT } else { REFUSE };
        let settings = Overrides::from([(UNANSWERED.to_owned(), unanswered.to_owned())]);
        Ok(serde_json::to_string(&settings)?)
    }

    /// The server is asked which generation it is. A child works in the folder of its parent;
    /// without one, in this folder if the server is on this machine.
    pub(super) async fn check(&self, launch: &mut ShellLaunch<'_>) -> Result<(), Failure> {
        let Some((_, place)) = Place::of(&launch.host.host) else {
            return Ok(());
        };
        let has_parent = OpenCode::is_session(&launch.session);
        if launch.request.fork && !has_parent {
            return Err(Failure::Input(anyhow!(
                "say with --session which session of OpenCode is to be inherited"
            )));
        }
        let generation = generation_at(place).await.map_err(Problem::from)?;
        let is_here = ["://127.0.0.1", "://localhost", "://[::1]"];
        let folder = if has_parent {
            let server = self.connect(generation, place).map_err(Problem::from)?;
            let folder = server.folder_of(&launch.session).await;
            folder.map_err(Problem::from)?
        } else if is_here.iter().any(|here| place.url.contains(here)) {
            let here = env::current_dir()
                .context("this folder")
                .map_err(Failure::Machine)?;
            here.to_str().map(str::to_owned)
        } else {
            None
        };
        let place = Place {
            folder: folder.as_deref(),
            ..place
        };
        let settings = launch.host.settings.json.to_string();
        let host = self.seal(place.host(generation), settings);
        launch.host = host.map_err(Failure::Input)?;
        Ok(())
    }

    fn connect(&self, generation: Generation, place: Place<'_>) -> Result<Server, HostError> {
        let connection = Arc::new(place.connect(generation)?);
        let manager = self.0.manager().ok();
        let prefix = manager.map(|manager| manager.settings().wording.prefix.clone());
        let prefix = prefix.unwrap_or_default();
        let clock = self.0.clock.clone();
        Ok(match generation {
            Generation::One => {
                let began = None;
                let settings = opencode::Settings { prefix, began };
                Server::One(OpenCode::new(connection, clock, settings))
            }
            Generation::Two => {
                let settings = opencode2::Settings {
                    prefix,
                    folder: place.folder.map(str::to_owned),
                    ..opencode2::Settings::default()
                };
                Server::Two(OpenCode2::new(connection, clock, settings))
            }
        })
    }
}

impl HostKind for OpenCodeUrlHosts {
    /// The generation is found out before the launch.
    fn named(&self, rest: Option<&str>, overrides: &Overrides) -> anyhow::Result<HostSetup> {
        let url = rest.unwrap_or_default().trim_end_matches('/');
        if !(url.starts_with("http://") || url.starts_with("https://")) {
            anyhow::bail!(
                "`{url}` is no address of an OpenCode; it begins with http:// or https://"
            );
        }
        if url.contains(['?', '#']) {
            anyhow::bail!("`{url}` is no address of an OpenCode; it has neither ? nor #");
        }
        if url.contains('@') {
            anyhow::bail!(
                "the password of OpenCode is not part of its address; set \
                 OPENCODE_SERVER_PASSWORD"
            );
        }
        let place = Place { url, folder: None };
        self.seal(place.host(Generation::One), self.settings(overrides)?)
    }

    fn rejects_questions(&self, setup: &HostSetup) -> Option<bool> {
        // A launch of an older version has no settings.
        let settings: Overrides = serde_json::from_str(&setup.settings.json).ok()?;
        settings.get(UNANSWERED).map(|said| said == REFUSE)
    }

    fn open(&self, setup: &HostSetup) -> Result<Arc<dyn Host>, HostError> {
        let place = Place::of(&setup.host);
        let (generation, place) = place.ok_or_else(|| wrong_kind(&setup.host))?;
        let checked = self.0.launches().and_then(|ours| ours.check(setup));
        checked.map_err(refused)?;
        Ok(match self.connect(generation, place)? {
            Server::One(server) => Arc::new(server),
            Server::Two(server) => Arc::new(server),
        })
    }
}

#[cfg(test)]
mod tests {
    use axum::{Router, response::IntoResponse, routing::get};
    use tokio::net::TcpListener;

    use super::*;

    const PAGE: &str = "<!doctype html><title>opencode</title>";

    /// A server with one path that says how it is, and a page for people at all others.
    async fn generation_of(
        path: &'static str,
        says: &'static str,
    ) -> Result<Generation, HostError> {
        let health = get(async move || says.into_response());
        let router = Router::new().route(path, health).fallback(async || PAGE);
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.unwrap_or_else(|error| panic!("{error}"));
        let at = listener.local_addr();
        let at = at.unwrap_or_else(|error| panic!("{error}"));
        let serving = tokio::spawn(async move { axum::serve(listener, router).await });
        let url = &format!("http://{at}");
        let found = generation_at(Place { url, folder: None }).await;
        serving.abort();
        found
    }

    #[tokio::test]
    async fn the_generation_that_answers_is_the_one_that_says_how_it_is() {
        let (healthy, ill) = (
            r#"{"healthy":true,"version":"1.18.3"}"#,
            r#"{"healthy":false}"#,
        );
        let informs = r#"{"version":"2.0.22","pid":1,"urls":[]}"#;
        for (path, says, expected) in [
            ("/global/health", healthy, Some(Generation::One)),
            ("/api/health", healthy, Some(Generation::Two)),
            ("/api/info", informs, Some(Generation::Two)),
            ("/api/health", ill, None),
            ("/api/health", PAGE, None),
            ("/health", healthy, None),
        ] {
            let found = generation_of(path, says).await;
            match (found, expected) {
                (Ok(found), Some(expected)) => assert_eq!(found, expected, "{path} {says}"),
                (Err(HostError::Refused(why)), None) => {
                    assert!(why.ends_with("is no OpenCode"), "{why}");
                }
                (found, _) => panic!("{path} {says}: {found:?}"),
            }
        }
    }
}
