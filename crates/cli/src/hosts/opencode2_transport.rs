//! How a bridge reaches the OpenCode 2 that has started it.

use std::{env, fs, path::Path, sync::Arc, time::Duration};

use asyncagents_core::port::HostError;
use asyncagents_hosts::{
    Address, HttpConnection,
    opencode2::{
        self,
        service::{Service, password, service_file},
    },
    plugin::{PluginLink, Relay},
};
use tokio::time::{Instant, sleep, timeout};

use super::opencode2_bridge::Connected;

/// How long a server may take to confirm that it is the one.
const CONFIRM_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a background server may take from its start to its file. It goes on with sessions, and
/// so loads plugins, at about the same time.
const FILE_TIMEOUT: Duration = Duration::from_secs(5);

/// How often its file is looked for.
const FILE_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Reaches the OpenCode 2 of a plugin: over HTTP if its address and password are known, else through
/// the plugin.
///
/// # Errors
/// When neither can be.
pub(crate) async fn reach(link: Arc<PluginLink>) -> Result<Connected, HostError> {
    let (pid, began) = (link.pid(), link.began());
    if let Some(service) = background_server(pid).await {
        return connected_to(&service);
    }
    if let Some((service, connection)) = plain_server(pid).await {
        tracing::info!(url = service.url, "server of OpenCode 2");
        return Ok(Connected {
            connection: Arc::new(connection),
            pid,
            began,
            resumes: false,
            relayed: false,
        });
    }
    tracing::info!(pid, "OpenCode 2 is reached through its plugin");
    Ok(Connected {
        connection: Arc::new(Relay::new(link, opencode2::EVENTS)?),
        pid,
        began,
        resumes: false,
        relayed: true,
    })
}

/// The background server, if it is this process and its file has come by now. Where the system does
/// not say how a process was started, its file is not waited for before.
pub(crate) fn late_background_server(pid: u32) -> Option<Connected> {
    let service = in_file(&service_file(|name| env::var_os(name))?, pid)?;
    let connected = connected_to(&service);
    connected
        .inspect_err(|error| tracing::warn!(%error, "background server cannot be used"))
        .ok()
}

fn connected_to(service: &Service) -> Result<Connected, HostError> {
    tracing::info!(url = service.url, "background server of OpenCode 2");
    Ok(Connected {
        connection: Arc::new(over_http(service)?),
        pid: service.pid,
        // It wakes every session.
        began: None,
        resumes: true,
        relayed: false,
    })
}

/// The background server that a file tells of, if it is this process.
fn in_file(file: &Path, pid: u32) -> Option<Service> {
    match Service::of_process(file, pid) {
        Ok(Some(service)) => return Some(service),
        Ok(None) => tracing::debug!(file = %file.display(), "no background server"),
        Err(error) => tracing::debug!(%error, "not the background server"),
    }
    None
}

/// A server over HTTP.
///
/// # Errors
/// When there can be no HTTP client.
pub(super) fn over_http(service: &Service) -> Result<HttpConnection, HostError> {
    let address = Address {
        url: service.url.clone(),
        directory: None,
        password: Some(service.password.clone()),
    };
    HttpConnection::new(address, &opencode2::HTTP)
}

/// The background server, if it is this process.
async fn background_server(pid: u32) -> Option<Service> {
    let file = service_file(|name| env::var_os(name))?;
    let begun = Instant::now();
    loop {
        let found = in_file(&file, pid);
        if found.is_some() || !is_background(pid) || begun.elapsed() > FILE_TIMEOUT {
            return found;
        }
        sleep(FILE_POLL_INTERVAL).await;
    }
}

/// Whether a process was started as a background server, where the system tells.
fn is_background(pid: u32) -> bool {
    let line = fs::read(Path::new("/proc").join(pid.to_string()).join("cmdline"));
    let line = line.unwrap_or_default();
    line.split(|byte| *byte == 0)
        .any(|word| word == b"--service")
}

/// A `serve` whose password is in our environment, which was its own.
async fn plain_server(pid: u32) -> Option<(Service, HttpConnection)> {
    let password = password(|name| env::var(name).ok())?;
    for service in Service::candidates(pid, &password) {
        let Ok(connection) = over_http(&service) else {
            continue;
        };
        match timeout(CONFIRM_TIMEOUT, service.confirm(&connection)).await {
            Ok(Ok(())) => return Some((service, connection)),
            Ok(Err(error)) => tracing::debug!(%error, url = service.url, "not its server"),
            Err(_) => tracing::debug!(url = service.url, "does not answer"),
        }
    }
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::{io, net::TcpListener, os::unix::fs::PermissionsExt, process};

    use super::*;

    /// Puts the file of a background server at this process and its port.
    fn write(file: &Path, pid: u32, port: u16) -> io::Result<()> {
        let url = format!("http://127.0.0.1:{port}");
        let text = serde_json::json!({"url": url, "pid": pid, "password": "secret"});
        fs::write(file, text.to_string())?;
        fs::set_permissions(file, fs::Permissions::from_mode(0o600))
    }

    #[test]
    fn a_file_that_comes_late_is_used_once_it_passes_its_checks() {
        let folder = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
        let (file, pid) = (folder.path().join("service.json"), process::id());
        let listener = TcpListener::bind("127.0.0.1:0");
        let listener = listener.unwrap_or_else(|error| panic!("{error}"));
        let port = listener
            .local_addr()
            .map(|at| at.port())
            .unwrap_or_default();
        assert!(in_file(&file, pid).is_none(), "it is not there yet");
        write(&file, pid, 1).unwrap_or_else(|error| panic!("{error}"));
        assert!(in_file(&file, pid).is_none(), "nobody listens there");
        write(&file, pid, port).unwrap_or_else(|error| panic!("{error}"));
        assert!(in_file(&file, pid + 1).is_none(), "it is another process's");
        let found = in_file(&file, pid).unwrap_or_else(|| panic!("a server"));
        let connected = connected_to(&found).unwrap_or_else(|error| panic!("{error}"));
        assert!(connected.resumes && !connected.relayed);
        assert_eq!((connected.pid, connected.began), (pid, None));
    }
}
