//! OpenCode 2 as a host: what the runtime asks of it.

use std::{collections::HashMap, sync::Arc};

use async_trait::async_trait;
use asyncagents_core::{
    fork::Plan,
    id::{AgentName, ModelName, PostId, SessionId},
    model_choice::HostModel,
    moment::Moment,
    port::{
        Clock, Delivery, Host, HostError, HostEvents, Inheritance, Inspection, NewSession, Notice,
        OneAnswer, OneQuestion, Prompt, Recent, WantedModel,
    },
    question::{Answered, Reply},
    skill::Role,
    transcript::Transcript,
};
use serde_json::{Value, json};

use crate::{
    both::{
        AgentNote,
        conversation::{self, End},
        metadata,
        pages::{MessagePages, Pages},
        role::{self, ModelSource},
        session_model::SessionModel,
    },
    connection::Connection,
};

use super::{
    activity::Activity,
    agents::Agents,
    api::{Api, Told, WIDEST_PAGE},
    capabilities::{Capabilities, Offer},
    events::EventStream,
    id::{self, is_session},
    session_model, session_rules,
    wire::{Agent, Session},
};

/// OpenCode 2, in all folders.
pub struct OpenCode2 {
    pub(super) api: Api,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) settings: Settings,
    pub(super) activity: Arc<Activity>,
    pub(super) capabilities: Arc<Capabilities>,
    pub(super) agents: Agents,
}

#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// What the tools' names begin with: they are forbidden where tasks may go no deeper.
    pub prefix: String,
    /// The folder of sessions without a parent; without, the one that the server was started in.
    pub folder: Option<String>,
    /// When this OpenCode was started. A notice does not set a session to work that was not used
    /// since: a user who opens OpenCode the next day does not pay for it. Without, every session is
    /// set to work.
    pub began: Option<Moment>,
    /// Whether a plugin of ours keeps sessions to the bounds of their tasks, where OpenCode has no
    /// rules for sessions. Without either, a task that is to be bound is refused.
    pub plugin_binds: bool,
}

impl OpenCode2 {
    /// OpenCode at the other end of a connection.
    pub fn new(connection: Arc<dyn Connection>, clock: Arc<dyn Clock>, settings: Settings) -> Self {
        let api = Api::new(connection);
        Self {
            agents: Agents::new(api.clone()),
            api,
            clock,
            settings,
            activity: Arc::default(),
            capabilities: Arc::default(),
        }
    }

    /// The host for the tasks of an OpenCode that has ended: its sessions count as used only from
    /// now on, unless every session does.
    #[must_use]
    pub fn successor(&self) -> Self {
        Self {
            api: self.api.clone(),
            clock: self.clock.clone(),
            settings: Settings {
                began: self.settings.began.map(|_| self.clock.now()),
                ..self.settings.clone()
            },
            activity: self.activity.clone(),
            capabilities: self.capabilities.clone(),
            agents: Agents::new(self.api.clone()),
        }
    }

    /// Notes that a session is used.
    pub fn wake(&self, session: &SessionId) {
        self.activity.wake(session);
    }

    /// The agents that a task may be given to in a folder, with what they are for.
    ///
    /// # Errors
    /// When OpenCode does not say.
    pub async fn agent_notes(&self, folder: Option<&str>) -> Result<Vec<AgentNote>, HostError> {
        let agents = self.agents.list(folder.or(self.folder())).await?;
        let note = |agent: Agent| AgentNote {
            name: agent.id,
            about: agent.description.unwrap_or_default(),
        };
        Ok(agents.into_iter().map(note).collect())
    }

    /// The folder a session works in.
    ///
    /// # Errors
    /// When there is no such session, or OpenCode does not say.
    pub async fn folder_of(&self, session: &SessionId) -> Result<Option<String>, HostError> {
        let there = self.existing(session).await?;
        Ok(there.folder().map(str::to_owned))
    }

    /// Whether an OpenCode 2 answers.
    ///
    /// # Errors
    /// When none does.
    pub async fn check(&self) -> Result<(), HostError> {
        self.api.health().await
    }

    pub(super) fn folder(&self) -> Option<&str> {
        self.settings.folder.as_deref()
    }

    pub(super) async fn existing(&self, session: &SessionId) -> Result<Session, HostError> {
        let found = self.api.session(session).await?;
        found.ok_or_else(|| HostError::NoSession(session.clone()))
    }

    /// The end of a session's conversation, as far back as a fork reaches.
    pub(super) async fn end_of(&self, session: &SessionId, plan: &Plan) -> Result<End, HostError> {
        let pages = Pages::new(&self.api, session, WIDEST_PAGE);
        conversation::end_of(pages, plan, &self.settings.prefix).await
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
        let parents = parents.map(SessionModel::plain);
        match ModelSource::of(wanted) {
            ModelSource::Named(name) => session_model::parse(name).map(Some),
            ModelSource::Agent if parents.is_some() => {
                let folder = session.and_then(Session::folder);
                let agent = self.agents.find(folder, agent.as_str()).await?;
                let has_own = agent.is_some_and(|agent| agent.model.is_some());
                Ok(parents.filter(|_| !has_own))
            }
            ModelSource::Agent | ModelSource::Parent => Ok(parents),
        }
    }

    /// Makes the session of a task, or finds it. One that a crash has left is checked like a new one.
    async fn make(&self, new: &NewSession) -> Result<(), HostError> {
        let parent = self.api.session(&new.parent).await?;
        let body = self.new_session(new, parent.as_ref()).await?;
        let before = if new.first_attempt {
            None
        } else {
            self.api.session(&id::child_session(&new.task)).await?
        };
        let made = match before {
            Some(made) => made,
            None if parent.is_none() && is_session(&new.parent) => {
                return Err(HostError::NoSession(new.parent.clone()));
            }
            None => self.api.create(body.clone()).await?,
        };
        let unbound = session_rules::are_missing(&body, &made, &self.settings.prefix);
        if unbound && !self.settings.plugin_binds {
            let id = made.id.as_str().into();
            self.api.delete(&id).await?;
            return Err(HostError::Refused(session_rules::WHY_REFUSED.to_owned()));
        }
        Ok(())
    }

    /// What is asked for when the session of a task is made. What this OpenCode does not know of it,
    /// it leaves alone.
    pub(super) async fn new_session(
        &self,
        new: &NewSession,
        parent: Option<&Session>,
    ) -> Result<Value, HostError> {
        let folder = parent.and_then(Session::folder).or(self.folder());
        let mut body = json!({
            "id": id::child_session(&new.task).as_str(),
            "title": format!("{} (@{} in the background)", new.title, new.agent),
            "agent": new.agent.as_str(),
            "metadata": metadata::made_for(&new.task, &new.parent),
        });
        if let Some(parent) = parent {
            body["parentID"] = json!(parent.id);
        }
        if let Some(folder) = folder {
            body["location"] = json!({"directory": folder});
        }
        let wanted = role::wanted(new.model.as_ref(), new.role.as_ref());
        let model = self.choose_model(wanted, &new.agent, parent).await?;
        let model = self.with_effort(model, new.effort, folder, &new.agent);
        if let Some(model) = model.await? {
            body["model"] = json!(model);
        }
        let agent = self.agents.find(folder, new.agent.as_str()).await?;
        session_rules::put(
            &mut body,
            new,
            parent,
            agent.as_ref(),
            &self.settings.prefix,
        );
        Ok(body)
    }

    /// Gives the session the agent and the model that a prompt is for, if it has others.
    async fn prepare(&self, session: &SessionId, prompt: &Prompt) -> Result<(), HostError> {
        let there = self.existing(session).await?;
        if there.agent.as_deref() != Some(prompt.agent.as_str()) {
            self.api.set_agent(session, prompt.agent.as_str()).await?;
        }
        let wanted = role::wanted(prompt.model.as_ref(), prompt.role.as_ref());
        let model = self.choose_model(wanted, &prompt.agent, Some(&there));
        let model = model.await?.or_else(|| there.model.clone());
        let model = model.map(SessionModel::plain);
        let model = self.with_effort(model, prompt.effort, there.folder(), &prompt.agent);
        if let Some(model) = model.await?
            && there.model.map(SessionModel::plain).as_ref() != Some(&model)
        {
            self.api.set_model(session, &model).await?;
        }
        if let Some(role) = &prompt.role {
            self.instruct(session, &prompt.id, role).await?;
        }
        Ok(())
    }

    /// Gives a session the instructions of the skill that it runs: in its system prompt where that
    /// can be, else as a message before the prompt.
    async fn instruct(
        &self,
        session: &SessionId,
        prompt: &PostId,
        role: &Role,
    ) -> Result<(), HostError> {
        let text = role::system_of(role);
        let offer = Offer::Instructions;
        if let Some(path) = self.capabilities.path(&self.api, offer).await?
            && self.api.instruct(path, session, &text).await?
        {
            return Ok(());
        }
        let body = json!({
            "id": format!("{}_role", id::message(prompt)),
            "text": text,
            "metadata": metadata::posted(prompt),
            "resume": false,
        });
        self.api.tell(session, body).await?.or_refused()
    }
}

#[async_trait]
impl Host for OpenCode2 {
    async fn agents(&self) -> Result<Vec<AgentName>, HostError> {
        let agents = self.agents.list(self.folder()).await?;
        Ok(agents.into_iter().map(|agent| agent.id.into()).collect())
    }

    async fn models(&self) -> Result<Option<Vec<HostModel>>, HostError> {
        self.models_in(self.folder()).await
    }

    async fn model_of(&self, wanted: &WantedModel) -> Result<Option<HostModel>, HostError> {
        self.wanted_model(wanted).await
    }

    async fn create(&self, new: NewSession) -> Result<SessionId, HostError> {
        self.make(&new).await?;
        Ok(id::child_session(&new.task))
    }

    async fn inject(&self, session: &SessionId, what: Inheritance) -> Result<(), HostError> {
        let text = [what.preamble.as_str(), what.context.as_str()];
        let text: Vec<&str> = text.into_iter().filter(|text| !text.is_empty()).collect();
        let body = json!({
            "id": id::message(&what.id),
            "text": text.join("\n\n"),
            "metadata": metadata::posted(&what.id),
            "resume": false,
        });
        let told = self.api.tell(session, body).await?;
        // The parent may have gone on since an attempt whose answer was lost: that one counts.
        match told {
            Told::NameTaken(_) if self.is_there(session, &what.id).await? => Ok(()),
            told => told.or_refused(),
        }
    }

    async fn prompt(&self, session: &SessionId, prompt: Prompt) -> Result<(), HostError> {
        self.prepare(session, &prompt).await?;
        let message = id::message(&prompt.id);
        let body = json!({
            "id": message,
            "text": prompt.text,
            "metadata": metadata::posted(&prompt.id),
        });
        self.activity.prompting(session, &message, self.clock.now());
        let prompted = self.api.prompt(session, body).await;
        if let Err(HostError::Refused(_) | HostError::NoSession(_)) = &prompted {
            self.activity.not_prompted(session);
        }
        prompted
    }

    async fn abort(&self, session: &SessionId) -> Result<(), HostError> {
        if is_session(session) {
            self.api.interrupt(session).await
        } else {
            Ok(())
        }
    }

    async fn ask_once(
        &self,
        session: &SessionId,
        question: OneQuestion,
    ) -> Result<Option<OneAnswer>, HostError> {
        self.ask_last_turn(session, question).await
    }

    async fn branch(&self, new: NewSession, plan: &Plan) -> Result<Option<SessionId>, HostError> {
        self.make_branch(&new, plan).await
    }

    async fn recent(&self, session: &SessionId, plan: &Plan) -> Result<Recent, HostError> {
        if !is_session(session) {
            return Err(HostError::Refused(format!(
                "`{session}` is no session of OpenCode and has no conversation"
            )));
        }
        Ok(self.end_of(session, plan).await?.recent)
    }

    async fn messages(&self, session: &SessionId) -> Result<Transcript<'static>, HostError> {
        let pages = Pages::new(&self.api, session, WIDEST_PAGE);
        conversation::all(pages).await
    }

    async fn exists(&self, session: &SessionId) -> Result<bool, HostError> {
        Ok(self.api.session(session).await?.is_some())
    }

    async fn inspect(&self, session: &SessionId, prompt: &PostId) -> Result<Inspection, HostError> {
        self.inspect_prompt(session, prompt).await
    }

    async fn deliver(&self, session: &SessionId, notice: Notice) -> Result<Delivery, HostError> {
        self.send_notice(session, notice).await
    }

    async fn confirm(&self, session: &SessionId, notice: &PostId) -> Result<bool, HostError> {
        self.has_notice(session, notice).await
    }

    async fn answer(
        &self,
        session: &SessionId,
        question: &str,
        reply: Reply,
    ) -> Result<Answered, HostError> {
        self.answer_question(session, question, reply).await
    }

    fn subscribe(&self) -> Box<dyn HostEvents> {
        Box::new(EventStream {
            signals: self.api.connection().signals(),
            activity: self.activity.clone(),
            capabilities: self.capabilities.clone(),
            clock: self.clock.clone(),
            calls: HashMap::new(),
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
