//! Serves one client, on standard input and output or on another connection.

use std::sync::Arc;

use asyncagents_runtime::Manager;
use rmcp::{
    ServerHandler, ServiceExt,
    model::{Implementation, ServerCapabilities, ServerConfig},
    service::ServerInitializeError,
    transport::{async_rw::AsyncRwTransport, io::stdio_pipes},
};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};

use super::{WhoCalls, connection::Connection, server::Server};

/// Why a client could not be served.
#[derive(Debug, Error)]
#[error("the MCP client could not be served: {0}")]
pub struct ServeError(String);

/// In what form calls are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Answers {
    /// As text: models read it, and known hosts show them only structured content if there is some.
    #[default]
    Text,
    /// As structured content too, for programs.
    Structured,
}

/// Serves one client until it closes the connection.
///
/// # Errors
/// When it does not speak the protocol.
pub async fn serve_stdio(
    manager: Manager,
    who: Arc<dyn WhoCalls>,
    answers: Answers,
) -> Result<(), ServeError> {
    let (input, output) = stdio_pipes();
    serve(manager, who, answers, (input, output)).await
}

/// A server that offers nothing.
struct WithoutTools;

impl ServerHandler for WithoutTools {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        let name = Implementation::new("asyncagents", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(capabilities).with_server_info(name)
    }
}

/// Serves one client that gets no tools, until it closes the connection.
///
/// # Errors
/// When it does not speak the protocol.
pub async fn serve_without_tools() -> Result<(), ServeError> {
    let failed = |error: &dyn std::fmt::Display| ServeError(error.to_string());
    match WithoutTools.serve(stdio_pipes()).await {
        Ok(running) => running
            .waiting()
            .await
            .map(drop)
            .map_err(|error| failed(&error)),
        // It was only tried whether the program starts.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(failed(&error)),
    }
}

/// Serves one client on a connection, until it closes that.
///
/// # Errors
/// When it does not speak the protocol.
pub async fn serve<R, W>(
    manager: Manager,
    who: Arc<dyn WhoCalls>,
    answers: Answers,
    (input, output): (R, W),
) -> Result<(), ServeError>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let (connection, gone) = Connection::new(AsyncRwTransport::new_server(input, output));
    let server = Server::new(manager, who.clone(), answers, gone);
    let lists = server.lists.clone();
    let failed = |error: &dyn std::fmt::Display| ServeError(error.to_string());
    let running = match server.serve(connection).await {
        Ok(running) => running,
        // It was only tried whether the program starts.
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(failed(&error)),
    };
    let peer = running.peer().clone();
    // A client of the newer era subscribes to changes.
    let has_initialized = peer.peer_info().is_some();
    tokio::select! {
        ended = running.waiting() => ended.map(drop).map_err(|error| failed(&error)),
        () = lists.tell(&who, &peer), if has_initialized => Ok(()),
    }
}
