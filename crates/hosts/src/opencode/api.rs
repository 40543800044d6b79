//! The requests we make, with their answers.

use std::sync::Arc;

use asyncagents_core::{id::SessionId, port::HostError, read::Format};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{
    both::{
        pages::{MessagePages, Page},
        response::{self, CONFLICT, TOO_LONG, absent, answered, parse},
    },
    connection::{Connection, Request, Response},
    http::Protocol,
};

use super::wire::{Agent, Configured, Properties, Providers, Session, Statuses};

/// How it is reached over the network.
pub static HTTP: Protocol = Protocol {
    user: "opencode",
    events: "/event",
    folder: "directory",
    password: "OPENCODE_SERVER_PASSWORD",
};

/// The API of one OpenCode, in one folder.
#[derive(Clone)]
pub(super) struct Api {
    connection: Arc<dyn Connection>,
}

impl Api {
    pub(super) fn new(connection: Arc<dyn Connection>) -> Self {
        Self { connection }
    }

    /// The version of OpenCode; nothing if something else answers.
    pub(super) async fn version(&self) -> Result<String, HostError> {
        let path = "/global/health";
        let response = self.connection.send(Request::get(path)).await?;
        if response.status == 404 {
            return Ok(String::new());
        }
        let health = judged(response, path)?.body;
        let health: Value = serde_json::from_str(&health).unwrap_or_default();
        Ok(health["version"].as_str().unwrap_or_default().to_owned())
    }

    pub(super) async fn agents(&self) -> Result<Vec<Agent>, HostError> {
        self.read(Request::get("/agent")).await
    }

    /// The providers that can be used, unless that is too long to get through.
    pub(super) async fn providers(&self) -> Result<Option<Providers>, HostError> {
        let path = "/config/providers";
        let response = self.connection.send(Request::get(path)).await?;
        if response.status == TOO_LONG {
            return Ok(None);
        }
        parse(&judged(response, path)?.body).map(Some)
    }

    pub(super) async fn configured(&self) -> Result<Configured, HostError> {
        self.read(Request::get("/config")).await
    }

    pub(super) async fn create(&self, body: Value) -> Result<Session, HostError> {
        self.read(Request::post("/session", body)).await
    }

    /// The session; nothing if there is none.
    pub(super) async fn session(&self, id: &SessionId) -> Result<Option<Session>, HostError> {
        if !is_session(id) {
            return Ok(None);
        }
        let found = self.read(Request::get(format!("/session/{id}"))).await;
        absent(found)
    }

    pub(super) async fn children(&self, id: &SessionId) -> Result<Vec<Session>, HostError> {
        self.read(Request::get(format!("/session/{id}/children")))
            .await
    }

    /// The newest sessions of the folder.
    pub(super) async fn newest_sessions(&self, limit: usize) -> Result<Vec<Session>, HostError> {
        let request = Request::get("/session").query("limit", limit.to_string());
        self.read(request).await
    }

    pub(super) async fn change(&self, id: &SessionId, body: Value) -> Result<(), HostError> {
        self.done(Request::patch(format!("/session/{id}"), body))
            .await
    }

    pub(super) async fn fork(
        &self,
        id: &SessionId,
        before: Option<&str>,
    ) -> Result<Session, HostError> {
        let body = before.map_or_else(|| json!({}), |message| json!({"messageID": message}));
        self.read(Request::post(format!("/session/{id}/fork"), body))
            .await
    }

    /// Puts a message into a session without asking for an answer.
    pub(super) async fn store(&self, id: &SessionId, mut body: Value) -> Result<(), HostError> {
        body["noReply"] = json!(true);
        self.done(Request::post(format!("/session/{id}/message"), body))
            .await
    }

    /// Sets a session to work; returns when OpenCode has the message.
    pub(super) async fn prompt(&self, id: &SessionId, body: Value) -> Result<(), HostError> {
        self.done(Request::post(format!("/session/{id}/prompt_async"), body))
            .await
    }

    pub(super) async fn abort(&self, id: &SessionId) -> Result<(), HostError> {
        let aborted = self
            .done(Request::post(format!("/session/{id}/abort"), json!({})))
            .await;
        absent(aborted).map(|_| ())
    }

    pub(super) async fn delete(&self, id: &SessionId) -> Result<(), HostError> {
        let deleted = self.done(Request::delete(format!("/session/{id}"))).await;
        absent(deleted).map(|_| ())
    }

    pub(super) async fn statuses(&self) -> Result<Statuses, HostError> {
        self.read(Request::get("/session/status")).await
    }

    /// What all sessions have asked their users and wait for.
    pub(super) async fn questions(&self) -> Result<Vec<Properties>, HostError> {
        let mut open: Vec<Properties> = self.read(Request::get("/permission")).await?;
        let questions: Vec<Properties> = self.read(Request::get("/question")).await?;
        open.extend(questions);
        Ok(open)
    }

    /// False if nothing of that name is asked.
    pub(super) async fn reply_permission(&self, id: &str, body: Value) -> Result<bool, HostError> {
        self.reply(format!("/permission/{id}/reply"), body).await
    }

    /// False if nothing of that name is asked.
    pub(super) async fn reply_question(&self, id: &str, body: Value) -> Result<bool, HostError> {
        self.reply(format!("/question/{id}/reply"), body).await
    }

    /// False if nothing of that name is asked.
    pub(super) async fn reject_question(&self, id: &str) -> Result<bool, HostError> {
        self.reply(format!("/question/{id}/reject"), json!({}))
            .await
    }

    async fn reply(&self, path: String, body: Value) -> Result<bool, HostError> {
        let taken = absent(self.done(Request::post(path, body)).await)?;
        Ok(taken.is_some())
    }

    pub(super) async fn change_part(
        &self,
        id: &SessionId,
        message: &str,
        part: &str,
        body: Value,
    ) -> Result<(), HostError> {
        let path = format!("/session/{id}/message/{message}/part/{part}");
        self.done(Request::patch(path, body)).await
    }

    pub(super) async fn delete_message(
        &self,
        id: &SessionId,
        message: &str,
    ) -> Result<(), HostError> {
        let path = format!("/session/{id}/message/{message}");
        self.done(Request::delete(path)).await
    }

    pub(super) async fn toast(&self, body: Value) -> Result<(), HostError> {
        self.done(Request::post("/tui/show-toast", body)).await
    }

    async fn read<T: DeserializeOwned>(&self, request: Request) -> Result<T, HostError> {
        let response = self.send(request).await?;
        parse(&response.body)
    }

    async fn done(&self, request: Request) -> Result<(), HostError> {
        self.send(request.quiet()).await.map(|_| ())
    }

    async fn send(&self, request: Request) -> Result<Response, HostError> {
        let path = request.path.clone();
        judged(self.connection.send(request).await?, &path)
    }
}

impl MessagePages for Api {
    fn connection(&self) -> &dyn Connection {
        &*self.connection
    }

    fn format(&self) -> Format {
        Format::OpenCode
    }

    fn widest(&self) -> usize {
        400
    }

    fn cursor(&self) -> &'static str {
        "before"
    }

    fn request(&self, session: &SessionId) -> Result<Request, HostError> {
        if is_session(session) {
            Ok(Request::get(format!("/session/{session}/message")))
        } else {
            Err(HostError::NoSession(session.clone()))
        }
    }

    fn page(&self, response: Response, path: &str, _: usize) -> Result<Page, HostError> {
        let response = judged(response, path)?;
        Ok(Page {
            list: response.body,
            older: response.next,
        })
    }
}

/// Whether a session can be one of OpenCode's. It answers others with an internal error.
pub(super) fn is_session(id: &SessionId) -> bool {
    let name = id.as_str().strip_prefix("ses_").unwrap_or_default();
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// The response, or the error that its status means.
fn judged(response: Response, path: &str) -> Result<Response, HostError> {
    // A session that is at work: a retry may succeed.
    if response.status == CONFLICT {
        return Err(HostError::Unreachable(answered(&response)));
    }
    response::judged(response, path)
}
