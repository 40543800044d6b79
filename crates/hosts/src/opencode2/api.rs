//! The requests we make, with their answers.

use std::{sync::Arc, time::Duration};

use asyncagents_core::{
    id::{PostId, SessionId},
    port::HostError,
    read::Format,
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json, value::RawValue};

use crate::{
    both::{
        pages::{MessagePages, Page},
        response::{CONFLICT, TOO_LONG, absent, answered, judged, parse},
        session_model::SessionModel,
    },
    connection::{Connection, Request, Response},
    http::Protocol,
};

use super::{
    id::{self, is_session},
    wire::{Active, Agent, Data, Form, Generated, InboxItem, Model, Permission, Session},
};

/// How it is reached over the network.
pub static HTTP: Protocol = Protocol {
    user: "opencode",
    events: "/api/event",
    folder: FOLDER,
    password: "OPENCODE_PASSWORD",
};
/// The parameter of a request that names a folder.
const FOLDER: &str = "location[directory]";
/// How many messages OpenCode gives at most.
pub(super) const WIDEST_PAGE: usize = 200;
/// Our key among the instructions of a session.
const INSTRUCTIONS: &str = "asyncagents";

/// The API of one OpenCode, in all folders.
#[derive(Clone)]
pub(super) struct Api {
    connection: Arc<dyn Connection>,
}

/// Where an OpenCode 2 says that it is one; releases differ.
pub const HEALTH: [&str; 2] = ["/api/health", "/api/info"];

/// What came of telling a session something.
pub(super) enum Told {
    Taken,
    /// Something else has its name, there or in another session.
    NameTaken(String),
}

impl Told {
    pub(super) fn or_refused(self) -> Result<(), HostError> {
        match self {
            Self::Taken => Ok(()),
            Self::NameTaken(why) => Err(HostError::Refused(why)),
        }
    }
}

impl Api {
    pub(super) fn new(connection: Arc<dyn Connection>) -> Self {
        Self { connection }
    }

    /// Whether it answers, and is an OpenCode 2 that has started. Later releases answer under
    /// another path.
    pub(super) async fn health(&self) -> Result<(), HostError> {
        for path in HEALTH {
            let Some(response) = absent(self.send(Request::get(path)).await)? else {
                continue;
            };
            let health: Value = serde_json::from_str(&response.body).unwrap_or_default();
            let data = &health["data"];
            let version = health["version"].as_str().or(data["version"].as_str());
            if version.is_some() || health["healthy"].as_bool() == Some(true) {
                return Ok(());
            }
        }
        let why = "this is no OpenCode 2: it does not say that it is healthy";
        Err(HostError::Refused(why.to_owned()))
    }

    /// What it says of its own API, if it does.
    pub(super) async fn description(&self) -> Result<Option<String>, HostError> {
        let sent = self.send(Request::get("/openapi.json")).await;
        Ok(absent(sent)?.map(|response| response.body))
    }

    /// The agents of a folder.
    pub(super) async fn agents(&self, folder: Option<&str>) -> Result<Vec<Agent>, HostError> {
        self.read(in_folder(Request::get("/api/agent"), folder))
            .await
    }

    /// The models of a folder.
    pub(super) async fn models(&self, folder: Option<&str>) -> Result<Vec<Model>, HostError> {
        self.read(in_folder(Request::get("/api/model"), folder))
            .await
    }

    /// The model of a folder's sessions that have none, where OpenCode says it.
    pub(super) async fn default_model(
        &self,
        folder: Option<&str>,
    ) -> Result<Option<Model>, HostError> {
        let request = in_folder(Request::get("/api/model/default"), folder);
        Ok(absent(self.read(request).await)?.flatten())
    }

    pub(super) async fn create(&self, body: Value) -> Result<Session, HostError> {
        self.read(Request::post("/api/session", body)).await
    }

    /// The session; nothing if there is none.
    pub(super) async fn session(&self, id: &SessionId) -> Result<Option<Session>, HostError> {
        if !is_session(id) {
            return Ok(None);
        }
        absent(self.read(Request::get(of(id, ""))).await)
    }

    pub(super) async fn delete(&self, id: &SessionId) -> Result<(), HostError> {
        absent(self.done(Request::delete(of(id, ""))).await).map(|_| ())
    }

    pub(super) async fn set_agent(&self, id: &SessionId, agent: &str) -> Result<(), HostError> {
        let body = json!({"agent": agent});
        self.done(Request::post(of(id, "/agent"), body)).await
    }

    pub(super) async fn set_model(
        &self,
        id: &SessionId,
        model: &SessionModel,
    ) -> Result<(), HostError> {
        let body = json!({"model": model});
        self.done(Request::post(of(id, "/model"), body)).await
    }

    /// Sets a session to work; returns when OpenCode has the message.
    pub(super) async fn prompt(&self, id: &SessionId, body: Value) -> Result<(), HostError> {
        self.done(Request::post(of(id, "/prompt"), body)).await
    }

    /// Tells a session something that no user wrote.
    pub(super) async fn tell(&self, id: &SessionId, body: Value) -> Result<Told, HostError> {
        let path = of(id, "/synthetic");
        let request = Request::post(path.clone(), body);
        let response = self.connection.send(request).await?;
        if response.status == CONFLICT {
            return Ok(Told::NameTaken(answered(&response)));
        }
        judged(response, &path).map(|_| Told::Taken)
    }

    /// Puts a text into the system prompt of a session; `false` if it is too long for that.
    pub(super) async fn instruct(
        &self,
        path: &str,
        id: &SessionId,
        text: &str,
    ) -> Result<bool, HostError> {
        let path = path.replacen("{}", id.as_str(), 1);
        let path = path.replacen("{}", INSTRUCTIONS, 1);
        let request = Request::put(path.clone(), json!({"value": text}));
        let response = self.connection.send(request).await?;
        if response.status == TOO_LONG {
            return Ok(false);
        }
        judged(response, &path).map(|_| true)
    }

    /// Asks a model one thing, without a session and without tools.
    pub(super) async fn generate(
        &self,
        path: &str,
        folder: Option<&str>,
        body: Value,
        within: Duration,
    ) -> Result<String, HostError> {
        let request = in_folder(Request::post(path, body), folder).within(within);
        Ok(self.read::<Generated>(request).await?.text)
    }

    pub(super) async fn interrupt(&self, id: &SessionId) -> Result<(), HostError> {
        let interrupted = self.done(Request::post(of(id, "/interrupt"), json!({})));
        absent(interrupted.await).map(|_| ())
    }

    /// The sessions that are at work, those that ask or wait among them.
    pub(super) async fn active(&self) -> Result<Active, HostError> {
        self.read(Request::get("/api/session/active")).await
    }

    /// What is admitted and not delivered yet.
    pub(super) async fn inbox(&self, id: &SessionId) -> Result<Vec<InboxItem>, HostError> {
        self.read(Request::get(of(id, "/inbox"))).await
    }

    /// Whether something of ours is in the history.
    pub(super) async fn is_delivered(
        &self,
        id: &SessionId,
        post: &PostId,
    ) -> Result<bool, HostError> {
        let path = of(id, &format!("/message/{}", id::message(post)));
        Ok(absent(self.done(Request::get(path)).await)?.is_some())
    }

    pub(super) async fn permissions(&self, id: &SessionId) -> Result<Vec<Permission>, HostError> {
        self.read(Request::get(of(id, "/permission"))).await
    }

    pub(super) async fn forms(&self, id: &SessionId) -> Result<Vec<Form>, HostError> {
        self.read(Request::get(of(id, "/form"))).await
    }

    /// Answers a permission; `false` if it is not open. A release that knows only one of the two
    /// names of the decision may refuse the other.
    pub(super) async fn reply_permission(
        &self,
        id: &SessionId,
        permission: &str,
        mut body: Value,
    ) -> Result<bool, HostError> {
        let path = of(id, &format!("/permission/{permission}/reply"));
        let answered = self.settle(Request::post(path.clone(), body.clone())).await;
        if let (Err(HostError::Refused(_)), Some(keys)) = (&answered, body.as_object_mut()) {
            keys.remove("reply");
            return self.settle(Request::post(path, body)).await;
        }
        answered
    }

    /// Answers a form; `false` if it is not open.
    pub(super) async fn reply_form(
        &self,
        id: &SessionId,
        form: &str,
        body: Value,
    ) -> Result<bool, HostError> {
        let path = of(id, &format!("/form/{form}/reply"));
        self.settle(Request::post(path, body)).await
    }

    /// Dismisses a form; `false` if it is not open. Later releases do so by its own path.
    pub(super) async fn cancel_form(&self, id: &SessionId, form: &str) -> Result<bool, HostError> {
        let path = of(id, &format!("/form/{form}"));
        let cancelled = Request::post(format!("{path}/cancel"), json!({}));
        Ok(self.settle(cancelled).await? || self.settle(Request::delete(path)).await?)
    }

    /// A request about a question; `false` if it is not open.
    async fn settle(&self, request: Request) -> Result<bool, HostError> {
        let path = request.path.clone();
        let response = self.connection.send(request).await?;
        // The one is unknown, the other was answered before.
        if matches!(response.status, 404 | CONFLICT) {
            return Ok(false);
        }
        judged(response, &path).map(|_| true)
    }

    pub(super) async fn read<T: DeserializeOwned>(&self, request: Request) -> Result<T, HostError> {
        let response = self.send(request).await?;
        Ok(parse::<Data<T>>(&response.body)?.data)
    }

    pub(super) async fn done(&self, request: Request) -> Result<(), HostError> {
        self.send(request).await.map(|_| ())
    }

    /// The answer to a request, or the error that its status means.
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
        Format::OpenCode2
    }

    fn widest(&self) -> usize {
        WIDEST_PAGE
    }

    fn cursor(&self) -> &'static str {
        "cursor"
    }

    fn request(&self, session: &SessionId) -> Result<Request, HostError> {
        if is_session(session) {
            Ok(Request::get(of(session, "/message")))
        } else {
            Err(HostError::NoSession(session.clone()))
        }
    }

    /// OpenCode lists the newest first, and names an older page also after the oldest message.
    fn page(&self, response: Response, path: &str, limit: usize) -> Result<Page, HostError> {
        #[derive(Deserialize)]
        struct Listed<'a> {
            #[serde(borrow)]
            data: Vec<&'a RawValue>,
            #[serde(default)]
            cursor: Value,
        }
        let response = judged(response, path)?;
        let Listed { mut data, cursor } = parse(&response.body)?;
        let older = cursor["next"].as_str().filter(|_| data.len() >= limit);
        data.reverse();
        let messages: Vec<&str> = data.iter().map(|message| message.get()).collect();
        Ok(Page {
            list: format!("[{}]", messages.join(",")),
            older: older.map(str::to_owned),
        })
    }
}

/// A path below a session's.
fn of(id: &SessionId, rest: &str) -> String {
    format!("/api/session/{id}{rest}")
}

/// A request about a folder, unless it is the connection's.
pub(super) fn in_folder(request: Request, folder: Option<&str>) -> Request {
    match folder {
        Some(folder) => request.query(FOLDER, folder),
        None => request,
    }
}
