//! OpenCode as a host: what the runtime asks of it.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use asyncagents_core::{
    fork::{Mode, Plan},
    id::{AgentName, ModelName, PostId, SessionId},
    model_choice::HostModel,
    moment::Moment,
    port::{
        Clock, Delivery, Host, HostError, HostEvents, Inheritance, Inspection, NewSession, Notice,
        OneAnswer, OneQuestion, Prompt, Recent, WantedModel,
    },
    question::{Answered, Reply},
    transcript::Transcript,
};
use serde_json::{Value, json};
use tokio::{sync::OnceCell, time};

use crate::{
    both::{
        AgentNote, conversation,
        pages::{MessagePages, PAGE, Pages},
        response::transient,
        role::{self, ModelSource},
        session_model::SessionModel,
    },
    connection::Connection,
};

use super::{
    activity::{self, Activity},
    agents::Agents,
    api::{Api, is_session},
    branch,
    events::EventStream,
    history, models,
    new_sessions::NewSessions,
    questions, session_model,
    session_rules::{self, SessionRules},
    version,
    wire::{self, Agent, Session},
};

/// OpenCode, in one folder.
pub struct OpenCode {
    pub(super) api: Api,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) settings: Settings,
    pub(super) activity: Arc<Activity>,
    agents: Agents,
    new_sessions: NewSessions,
    checked: OnceCell<()>,
}

#[derive(Debug, Clone)]
pub struct Settings {
    /// What the tools' names begin with: they are forbidden where tasks may go no deeper.
    pub prefix: String,
    /// When this OpenCode was started. A notice does not set a session to work that was not used
    /// since: a user who opens OpenCode the next day does not pay for it. Without, every session is
    /// set to work.
    pub began: Option<Moment>,
}

impl OpenCode {
    /// OpenCode at the other end of a connection.
    pub fn new(connection: Arc<dyn Connection>, clock: Arc<dyn Clock>, settings: Settings) -> Self {
        let api = Api::new(connection);
        Self {
            agents: Agents::new(api.clone()),
            api,
            clock,
            settings,
            activity: Arc::default(),
            new_sessions: NewSessions::default(),
            checked: OnceCell::new(),
        }
    }

    /// The host for the tasks of an OpenCode that has ended: its sessions count as used only from
    /// now on.
    #[must_use]
    pub fn successor(&self) -> Self {
        Self {
            api: self.api.clone(),
            clock: self.clock.clone(),
            settings: Settings {
                began: Some(self.clock.now()),
                ..self.settings.clone()
            },
            activity: self.activity.clone(),
            agents: Agents::new(self.api.clone()),
            new_sessions: NewSessions::default(),
            checked: OnceCell::new(),
        }
    }

    /// Notes that a session is used.
    pub fn wake(&self, session: &SessionId) {
        self.activity.wake(session);
    }

    /// The agents a task may be given to, with what they are for.
    ///
    /// # Errors
    /// When OpenCode does not say.
    pub async fn agent_notes(&self) -> Result<Vec<AgentNote>, HostError> {
        let agents = self.agents.list().await?;
        let note = |agent: Agent| AgentNote {
            name: agent.name,
            about: agent.description.unwrap_or_default(),
        };
        Ok(agents.into_iter().map(note).collect())
    }

    /// Shows a person something for a few seconds, if there is a screen.
    ///
    /// # Errors
    /// When OpenCode does not take it.
    pub async fn toast(&self, message: &str, variant: &str) -> Result<(), HostError> {
        let toast = json!({"title": "asyncagents", "message": message, "variant": variant});
        self.api.toast(toast).await
    }

    /// Whether a name is that of a session here: OpenCode gives all of them the same beginning.
    pub fn is_session(name: &SessionId) -> bool {
        name.as_str().starts_with("ses")
    }

    /// The folder a session works in.
    ///
    /// # Errors
    /// When there is no such session, or OpenCode does not say.
    pub async fn folder_of(&self, session: &SessionId) -> Result<Option<String>, HostError> {
        self.check_version().await?;
        Ok(self.existing(session).await?.directory)
    }

    /// Asks for the version, once.
    pub(super) async fn check_version(&self) -> Result<(), HostError> {
        let check = || async {
            let version = self.api.version().await?;
            version::check(&version)
        };
        self.checked.get_or_try_init(check).await.map(|_| ())
    }

    pub(super) async fn existing(&self, session: &SessionId) -> Result<Session, HostError> {
        let found = self.api.session(session).await?;
        found.ok_or_else(|| HostError::NoSession(session.clone()))
    }

    /// The session that was made for a task before, if one was.
    async fn made_before(&self, new: &NewSession) -> Result<Option<SessionId>, HostError> {
        let sessions = if is_session(&new.parent) {
            self.api.children(&new.parent).await?
        } else {
            self.api.newest_sessions(branch::SEARCHED).await?
        };
        Ok(wire::made_for(&new.task, sessions))
    }

    /// The rules of a new session.
    async fn rules(
        &self,
        new: &NewSession,
        parent: Option<&Session>,
    ) -> Result<SessionRules, HostError> {
        session_rules::of(new, parent, &self.agents, &self.settings.prefix).await
    }

    /// The model to use: the one that is wanted, or the session's unless the agent has its own.
    /// Nothing where OpenCode is to choose.
    pub(super) async fn choose_model(
        &self,
        wanted: Option<&ModelName>,
        agent: &AgentName,
        session: Option<&Session>,
    ) -> Result<Option<SessionModel>, HostError> {
        let parents = session.and_then(|session| session.model.clone());
        match ModelSource::of(wanted) {
            ModelSource::Named(name) => SessionModel::named(name.as_str()).map(Some),
            ModelSource::Agent if parents.is_some() => {
                let agent = self.agents.find(agent.as_str()).await?;
                let has_own = agent.is_some_and(|agent| agent.model.is_some());
                Ok(parents.filter(|_| !has_own))
            }
            ModelSource::Agent | ModelSource::Parent => Ok(parents),
        }
    }

    /// A message for the session's own agent and model, with what it is told of its skill. Without
    /// them OpenCode would change the first two to its defaults, and leave out the last.
    pub(super) async fn message_for(
        &self,
        session: &Session,
        parts: Value,
    ) -> Result<Value, HostError> {
        let mut body = json!({"parts": parts});
        // OpenCode refuses a message for an agent that was removed.
        if let Some(agent) = &session.agent
            && self.agents.find(agent).await?.is_some()
        {
            body["agent"] = json!(agent);
        }
        if let Some(system) = session.system() {
            body["system"] = json!(system);
        }
        session_model::set(&mut body, session.model.clone());
        Ok(body)
    }

    /// Tells a child that has its parent's messages what they are.
    async fn explain(
        &self,
        session: &SessionId,
        new: &NewSession,
        what: Inheritance,
    ) -> Result<(), HostError> {
        if history::find(&self.api, session, &what.id, None).await? {
            return Ok(());
        }
        let parent = self.existing(&new.parent).await?;
        let mut body = json!({
            "agent": new.agent.as_str(),
            "parts": [wire::text(&what.preamble, &what.id, true)],
        });
        let model = self.choose_model(new.model.as_ref(), &new.agent, Some(&parent));
        session_model::set(&mut body, model.await?);
        self.api.store(session, body).await
    }
}

#[async_trait]
impl Host for OpenCode {
    async fn agents(&self) -> Result<Vec<AgentName>, HostError> {
        self.check_version().await?;
        let agents = self.agents.list().await?;
        Ok(agents.into_iter().map(|agent| agent.name.into()).collect())
    }

    async fn models(&self) -> Result<Option<Vec<HostModel>>, HostError> {
        self.check_version().await?;
        models::list(&self.api).await
    }

    async fn model_of(&self, wanted: &WantedModel) -> Result<Option<HostModel>, HostError> {
        self.check_version().await?;
        models::wanted(&self.api, &self.agents, wanted).await
    }

    async fn create(&self, new: NewSession) -> Result<SessionId, HostError> {
        self.check_version().await?;
        if !new.first_attempt
            && let Some(made) = self.made_before(&new).await?
        {
            return Ok(made);
        }
        let parent = self.api.session(&new.parent).await?;
        if parent.is_none() && is_session(&new.parent) {
            return Err(HostError::NoSession(new.parent));
        }
        let SessionRules { rules, metadata } = self.rules(&new, parent.as_ref()).await?;
        let mut body = json!({
            "title": format!("{} (@{} in the background)", new.title, new.agent),
            "agent": new.agent.as_str(),
            "metadata": metadata,
            "permission": rules,
        });
        if let Some(parent) = &parent {
            body["parentID"] = json!(parent.id);
        }
        let wanted = role::wanted(new.model.as_ref(), new.role.as_ref());
        let model = self.choose_model(wanted, &new.agent, parent.as_ref());
        if let Some(model) = model.await? {
            body["model"] = json!(model);
        }
        let session = self.api.create(body).await?;
        let id = session.id.as_str().into();
        self.new_sessions.made(session);
        Ok(id)
    }

    async fn inject(&self, session: &SessionId, what: Inheritance) -> Result<(), HostError> {
        let there = match self.new_sessions.fill(session) {
            Some(there) => there,
            // Hardly anything is in it: if this is, it is on the first page.
            None if history::find(&self.api, session, &what.id, None).await? => return Ok(()),
            None => self.existing(session).await?,
        };
        let parts = json!([
            wire::text(&what.preamble, &what.id, true),
            wire::text(&what.context, &what.id, true),
        ]);
        let body = self.message_for(&there, parts).await?;
        self.api.store(session, body).await
    }

    async fn prompt(&self, session: &SessionId, prompt: Prompt) -> Result<(), HostError> {
        let there = match self.new_sessions.set_to_work(session) {
            Some(there) => there,
            None => self.existing(session).await?,
        };
        let mut body = json!({
            "agent": prompt.agent.as_str(),
            "parts": [wire::text(&prompt.text, &prompt.id, false)],
        });
        if let Some(role) = &prompt.role {
            body["system"] = json!(role::system_of(role));
        }
        let wanted = role::wanted(prompt.model.as_ref(), prompt.role.as_ref());
        let model = self.choose_model(wanted, &prompt.agent, Some(&there));
        session_model::set(&mut body, model.await?);
        session_model::set_effort(&mut body, prompt.effort);
        self.activity.prompting(session, self.clock.now());
        let prompted = self.api.prompt(session, body).await;
        if let Err(HostError::Refused(_) | HostError::NoSession(_)) = &prompted {
            self.activity.not_prompted(session);
        }
        prompted
    }

    async fn abort(&self, session: &SessionId) -> Result<(), HostError> {
        if !is_session(session) {
            return Ok(());
        }
        // An abort before the session is at work would be lost, and the session begin afterwards.
        let started = async {
            while self.activity.is_starting(session, self.clock.now()) {
                time::sleep(Duration::from_millis(20)).await;
            }
        };
        let _ = time::timeout(activity::START_TIMEOUT, started).await;
        self.api.abort(session).await
    }

    async fn ask_once(
        &self,
        session: &SessionId,
        question: OneQuestion,
    ) -> Result<Option<OneAnswer>, HostError> {
        self.ask_last_turn(session, question).await
    }

    async fn branch(&self, new: NewSession, plan: &Plan) -> Result<Option<SessionId>, HostError> {
        if plan.mode != Mode::Messages || !is_session(&new.parent) {
            return Ok(None);
        }
        self.check_version().await?;
        let parent = self.api.session(&new.parent).await?;
        let rules = self.rules(&new, parent.as_ref()).await?;
        let branched = branch::branch(&self.api, &new, plan, &self.settings.prefix, rules).await?;
        let Some((session, preamble)) = branched else {
            return Ok(None);
        };
        let what = Inheritance {
            id: new.task.inheritance(),
            preamble,
            context: String::new(),
        };
        self.explain(&session, &new, what).await?;
        Ok(Some(session))
    }

    async fn recent(&self, session: &SessionId, plan: &Plan) -> Result<Recent, HostError> {
        if !is_session(session) {
            return Err(HostError::Refused(format!(
                "`{session}` is no session of OpenCode and has no conversation"
            )));
        }
        let pages = Pages::new(&self.api, session, branch::FORK_PAGE);
        let end = conversation::end_of(pages, plan, &self.settings.prefix).await?;
        Ok(end.recent)
    }

    async fn messages(&self, session: &SessionId) -> Result<Transcript<'static>, HostError> {
        if !is_session(session) {
            return Err(HostError::NoSession(session.clone()));
        }
        conversation::all(Pages::new(&self.api, session, PAGE)).await
    }

    async fn exists(&self, session: &SessionId) -> Result<bool, HostError> {
        Ok(self.api.session(session).await?.is_some())
    }

    async fn inspect(&self, session: &SessionId, prompt: &PostId) -> Result<Inspection, HostError> {
        self.inspect_prompt(session, prompt).await
    }

    async fn deliver(&self, session: &SessionId, notice: Notice) -> Result<Delivery, HostError> {
        self.send_notice(session, notice).await.map_err(transient)
    }

    async fn confirm(&self, session: &SessionId, notice: &PostId) -> Result<bool, HostError> {
        self.has_notice(session, notice).await.map_err(transient)
    }

    async fn answer(
        &self,
        session: &SessionId,
        question: &str,
        reply: Reply,
    ) -> Result<Answered, HostError> {
        questions::answer(&self.api, session, question, reply).await
    }

    fn subscribe(&self) -> Box<dyn HostEvents> {
        Box::new(EventStream {
            signals: self.api.connection().signals(),
            activity: self.activity.clone(),
            clock: self.clock.clone(),
        })
    }

    async fn delete(&self, session: &SessionId) -> Result<(), HostError> {
        if is_session(session) {
            self.api.delete(session).await
        } else {
            Ok(())
        }
    }

    fn notices_wake(&self) -> bool {
        true
    }
}
