//! What a client can ask for, one method each.

use std::{path::Path, sync::Arc};

use agent_client_protocol::{
    Client, Error, RequestCancellation,
    schema::ProtocolVersion,
    v1::{
        ConnectionTo,
        schema::{
            AgentCapabilities, ForkSessionRequest, ForkSessionResponse, Implementation,
            InitializeResponse, ListSessionsRequest, ListSessionsResponse, LoadSessionRequest,
            LoadSessionResponse, NewSessionRequest, NewSessionResponse, PromptCapabilities,
            PromptRequest, PromptResponse, ResumeSessionRequest, ResumeSessionResponse,
            SessionCapabilities, SessionCloseCapabilities, SessionForkCapabilities, SessionInfo,
            SessionListCapabilities, SessionResumeCapabilities, SetSessionModeRequest,
            SetSessionModeResponse,
        },
    },
};
use asyncagents_core::id::SessionId;
use asyncagents_runtime::{Manager, SessionSummary};
use asyncagents_views::time;

use super::{
    AgentError, BuiltInAgent, OpenSessions, Place, SessionMode,
    error::refused,
    prompt_text::prompt_text,
    session::{Around, Session},
    stdio::Unsent,
};

/// How many of the newest sessions are listed.
const MOST_LISTED: usize = 200;

/// The agent, as one client has it.
#[derive(Clone)]
pub(super) struct Agent {
    pub(super) built_in: Arc<dyn BuiltInAgent>,
    pub(super) manager: Manager,
    pub(super) sessions: OpenSessions,
    pub(super) unsent: Unsent,
}

impl Agent {
    /// What this agent is and can do.
    pub(super) fn initialize() -> InitializeResponse {
        let sessions = SessionCapabilities::new()
            .list(SessionListCapabilities::new())
            .fork(SessionForkCapabilities::new())
            .resume(SessionResumeCapabilities::new())
            .close(SessionCloseCapabilities::new());
        let capabilities = AgentCapabilities::new()
            .load_session(true)
            .prompt_capabilities(PromptCapabilities::new().embedded_context(true))
            .session_capabilities(sessions);
        let info = Implementation::new("asyncagents", env!("CARGO_PKG_VERSION"))
            .title("asyncagents".to_owned());
        InitializeResponse::new(ProtocolVersion::V1)
            .agent_capabilities(capabilities)
            .agent_info(info)
    }

    pub(super) fn new_session(
        &self,
        client: &ConnectionTo<Client>,
        request: &NewSessionRequest,
    ) -> Result<NewSessionResponse, Error> {
        let folder = self.folder(&request.cwd)?;
        let session = self.open(client, self.built_in.new_session(), folder, false);
        let modes = session.place().mode.state();
        Ok(NewSessionResponse::new(session.id.as_str().to_owned()).modes(modes))
    }

    pub(super) async fn load(
        &self,
        client: &ConnectionTo<Client>,
        request: &LoadSessionRequest,
    ) -> Result<LoadSessionResponse, Error> {
        let id = SessionId::from(&*request.session_id.0);
        let session = self.reopen(client, id, &request.cwd).await?;
        if session.is_begun() {
            session.replay().await?;
            session.look_at_tasks().await;
            session.tell_usage().await?;
        }
        Ok(LoadSessionResponse::new().modes(session.place().mode.state()))
    }

    pub(super) async fn resume(
        &self,
        client: &ConnectionTo<Client>,
        request: &ResumeSessionRequest,
    ) -> Result<ResumeSessionResponse, Error> {
        let id = SessionId::from(&*request.session_id.0);
        let session = self.reopen(client, id, &request.cwd).await?;
        Ok(ResumeSessionResponse::new().modes(session.place().mode.state()))
    }

    pub(super) async fn fork(
        &self,
        client: &ConnectionTo<Client>,
        request: &ForkSessionRequest,
    ) -> Result<ForkSessionResponse, Error> {
        let id = SessionId::from(&*request.session_id.0);
        let open = self.sessions.get(&id);
        let (forked, folder, begun) = match &open {
            // Nothing was said in it.
            Ok(session) if !session.is_begun() => {
                (self.built_in.new_session(), session.place().folder, false)
            }
            Ok(_) | Err(_) => {
                let folder = self.folder_of(&id, &request.cwd).await?;
                let place = self.place(id, folder.clone());
                (self.built_in.fork(&place).await?, folder, true)
            }
        };
        let session = self.open(client, forked, folder, begun);
        if let Ok(parent) = open {
            session.set_mode(parent.place().mode);
        }
        let modes = session.place().mode.state();
        Ok(ForkSessionResponse::new(session.id.as_str().to_owned()).modes(modes))
    }

    pub(super) async fn list(
        &self,
        request: &ListSessionsRequest,
    ) -> Result<ListSessionsResponse, Error> {
        let folder = request.cwd.as_deref().map(|cwd| {
            let real = cwd.canonicalize();
            real.as_deref().unwrap_or(cwd).display().to_string()
        });
        let listed = self.manager.sessions(folder, MOST_LISTED).await;
        let listed = listed.map_err(|problem| AgentError::Failed(problem.to_string()))?;
        let info = |SessionSummary {
                        session, newest, ..
                    }| {
            SessionInfo::new(session.id.as_str().to_owned(), session.workspace)
                .title(session.title)
                .updated_at(time(newest))
        };
        let sessions = listed.into_iter().map(info).collect();
        Ok(ListSessionsResponse::new(sessions))
    }

    pub(super) fn set_mode(
        &self,
        request: &SetSessionModeRequest,
    ) -> Result<SetSessionModeResponse, Error> {
        let session = self.session(&request.session_id.0)?;
        let mode = SessionMode::named(&request.mode_id).map_err(refused)?;
        session.set_mode(mode);
        Ok(SetSessionModeResponse::new())
    }

    /// Takes a prompt. Its place among the others is that of its arrival.
    pub(super) fn prompt(
        &self,
        request: &PromptRequest,
        cancellation: RequestCancellation,
    ) -> Result<impl Future<Output = Result<PromptResponse, Error>> + Send + 'static, Error> {
        let session = self.session(&request.session_id.0)?;
        let text = prompt_text(&request.prompt).map_err(refused)?;
        let cancelled = session.cancelled(cancellation);
        Ok(session.prompt(text, cancelled))
    }

    /// Stops what a session does.
    pub(super) fn cancel(&self, session: &str) {
        if let Ok(session) = self.session(session) {
            session.cancel();
        }
    }

    /// Stops what a session does, and forgets that it was open.
    pub(super) fn close(&self, session: &str) -> Result<(), Error> {
        self.session(session)?;
        if let Some(session) = self.sessions.close(&session.into()) {
            session.close();
        }
        Ok(())
    }

    fn session(&self, id: &str) -> Result<Arc<Session>, Error> {
        Ok(self.sessions.get(&id.into())?)
    }

    fn place(&self, session: SessionId, folder: String) -> Place {
        Place {
            session,
            folder,
            mode: self.built_in.usual_mode(),
        }
    }

    fn open(
        &self,
        client: &ConnectionTo<Client>,
        id: SessionId,
        folder: String,
        begun: bool,
    ) -> Arc<Session> {
        let around = Around {
            client: client.clone(),
            agent: self.built_in.clone(),
            manager: self.manager.clone(),
            unsent: self.unsent.clone(),
        };
        let new = Session::new(&around, self.place(id, folder), begun);
        let session = self.sessions.open(new.clone());
        if Arc::ptr_eq(&new, &session) {
            session.spawn(session.clone().watch_tasks());
        }
        session
    }

    /// A session from earlier.
    async fn reopen(
        &self,
        client: &ConnectionTo<Client>,
        id: SessionId,
        cwd: &Path,
    ) -> Result<Arc<Session>, Error> {
        if let Ok(session) = self.sessions.get(&id)
            && !session.is_begun()
        {
            return Ok(session);
        }
        let folder = self.folder_of(&id, cwd).await?;
        let place = self.place(id.clone(), folder.clone());
        self.built_in.until_free(&place).await?;
        Ok(self.open(client, id, folder, true))
    }

    /// The folder of a session from earlier, which the client has to name.
    async fn folder_of(&self, id: &SessionId, cwd: &Path) -> Result<String, Error> {
        let folder = self.folder(cwd)?;
        let known = self.built_in.session(&folder, id).await?;
        if known.task.is_some() {
            let why =
                format!("{id} is the session of a background task; `asyncagents output` shows it");
            return Err(refused(why));
        }
        if folder != known.workspace {
            let there = known.workspace;
            return Err(refused(format!(
                "{id} is a session of the folder {there}, not of {folder}"
            )));
        }
        Ok(folder)
    }

    /// The folder that a client names, if the agent can work there.
    fn folder(&self, cwd: &Path) -> Result<String, Error> {
        let shown = cwd.display();
        if !cwd.is_absolute() {
            return Err(refused(format!(
                "cwd must be an absolute path, and `{shown}` is not"
            )));
        }
        if !cwd.is_dir() {
            return Err(refused(format!(
                "cwd must be a folder, and `{shown}` is not"
            )));
        }
        Ok(self.built_in.check(cwd)?)
    }
}
