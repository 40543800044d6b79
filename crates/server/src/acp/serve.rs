//! Serves one client, on standard input and output.

use std::{future::pending, sync::Arc, time::Duration};

use agent_client_protocol::{
    Agent as AgentRole, Client, Error, Responder, V1, on_receive_notification, on_receive_request,
    v1::{
        ConnectionTo,
        schema::{
            CancelNotification, CloseSessionRequest, CloseSessionResponse, ForkSessionRequest,
            InitializeRequest, ListSessionsRequest, LoadSessionRequest, NewSessionRequest,
            PromptRequest, ResumeSessionRequest, SetSessionModeRequest,
        },
    },
};
use asyncagents_runtime::Manager;
use thiserror::Error as ThisError;
use tokio::{sync::watch, time};

use super::{
    BuiltInAgent, OpenSessions,
    agent::Agent,
    stdio::{Unsent, stdio},
};

/// For how long a client that has closed the connection is waited for to read what it was told.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(3);

/// Why a client could not be served.
#[derive(Debug, ThisError)]
#[error("the editor could not be served: {0}")]
pub struct ServeError(String);

/// Serves one client until it closes the connection.
///
/// # Errors
/// When it cannot be read from or written to.
pub async fn serve_stdio(
    manager: Manager,
    built_in: Arc<dyn BuiltInAgent>,
    sessions: OpenSessions,
) -> Result<(), ServeError> {
    let unsent = Unsent::new();
    let closed = Arc::new(watch::Sender::new(false));
    let is_closed = closed.subscribe();
    let agent = Agent {
        built_in,
        manager,
        sessions,
        unsent: unsent.clone(),
    };
    let served = AgentRole
        .v1()
        .name("asyncagents")
        .on_receive_request(
            async |_: InitializeRequest, responder, _| responder.respond(Agent::initialize()),
            on_receive_request!(),
        )
        .on_receive_request(
            {
                let agent = agent.clone();
                async move |request: NewSessionRequest, responder, client: ConnectionTo<Client>| {
                    responder.respond_with_result(agent.new_session(&client, &request))
                }
            },
            on_receive_request!(),
        )
        .on_receive_request(
            {
                let agent = agent.clone();
                async move |request: LoadSessionRequest, responder, client: ConnectionTo<Client>| {
                    let (agent, of) = (agent.clone(), client.clone());
                    beside(&client, responder, async move {
                        agent.load(&of, &request).await
                    })
                }
            },
            on_receive_request!(),
        )
        .on_receive_request(
            {
                let agent = agent.clone();
                async move |request: ResumeSessionRequest,
                            responder,
                            client: ConnectionTo<Client>| {
                    let (agent, of) = (agent.clone(), client.clone());
                    beside(&client, responder, async move {
                        agent.resume(&of, &request).await
                    })
                }
            },
            on_receive_request!(),
        )
        .on_receive_request(
            {
                let agent = agent.clone();
                async move |request: ForkSessionRequest, responder, client: ConnectionTo<Client>| {
                    let (agent, of) = (agent.clone(), client.clone());
                    beside(&client, responder, async move {
                        agent.fork(&of, &request).await
                    })
                }
            },
            on_receive_request!(),
        )
        .on_receive_request(
            {
                let agent = agent.clone();
                async move |request: ListSessionsRequest,
                            responder,
                            client: ConnectionTo<Client>| {
                    let agent = agent.clone();
                    beside(
                        &client,
                        responder,
                        async move { agent.list(&request).await },
                    )
                }
            },
            on_receive_request!(),
        )
        .on_receive_request(
            {
                let agent = agent.clone();
                async move |request: SetSessionModeRequest, responder, _| {
                    responder.respond_with_result(agent.set_mode(&request))
                }
            },
            on_receive_request!(),
        )
        .on_receive_request(
            {
                let agent = agent.clone();
                async move |request: PromptRequest,
                            responder: Responder<_, V1>,
                            client: ConnectionTo<Client>| {
                    let turn = agent.prompt(&request, responder.cancellation());
                    beside(&client, responder, async move { turn?.await })
                }
            },
            on_receive_request!(),
        )
        .on_receive_request(
            {
                let agent = agent.clone();
                async move |request: CloseSessionRequest, responder, _| {
                    let closed = agent.close(&request.session_id.0);
                    responder.respond_with_result(closed.map(|()| CloseSessionResponse::new()))
                }
            },
            on_receive_request!(),
        )
        .on_receive_notification(
            async move |cancel: CancelNotification, _| {
                agent.cancel(&cancel.session_id.0);
                Ok(())
            },
            on_receive_notification!(),
        )
        .connect_to(stdio(unsent, closed));
    tokio::select! {
        served = served => match served {
            // What could not be written any more is of no use to a client that has gone.
            Err(error) if *is_closed.borrow() => {
                tracing::debug!(%error, "the editor has closed the connection");
                Ok(())
            }
            served => served.map_err(|error| ServeError(error.to_string())),
        },
        () = late(is_closed.clone()) => {
            tracing::warn!("the editor has closed the connection and does not read what is left");
            Ok(())
        }
    }
}

/// Returns a while after the client has closed the connection.
async fn late(mut is_closed: watch::Receiver<bool>) {
    match is_closed.wait_for(|closed| *closed).await {
        Ok(_) => {}
        Err(_) => return pending().await,
    }
    time::sleep(LEAVE_TIMEOUT).await;
}

/// Answers a request when its work is done. Others are answered meanwhile.
fn beside<T: agent_client_protocol::JsonRpcResponse + Send>(
    client: &ConnectionTo<Client>,
    responder: Responder<T, V1>,
    work: impl Future<Output = Result<T, Error>> + Send + 'static,
) -> Result<(), Error> {
    client.spawn(async move {
        if responder.respond_with_result(work.await).is_err() {
            tracing::debug!("the client has gone");
        }
        Ok(())
    })
}
