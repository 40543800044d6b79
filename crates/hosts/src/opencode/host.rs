//! OpenCode as a host: what the runtime asks of it.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use asyncagents_core::{
    fork::Plan,
    id::{AgentName, ModelName, PostId, SessionId},
    lifecycle::Standing,
    model_choice::HostModel,
    moment::Moment,
    port::{
        Clock, Delivery, Host, HostError, HostEvents, Inheritance, Inspection, NewSession, Notice,
        OneAnswer, OneQuestion, Prompt, Recent, WantedModel,
    },
    progress::Totals,
    question::{Answered, Question, Reply},
    task::Outcome,
    transcript::Transcript,
};
use serde_json::{Value, json};
use tokio::{sync::OnceCell, time};

use crate::{
    both::{
        AgentNote, conversation, one_answer,
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
    history, models, questions, session_model,
    session_rules::{self, SessionRules},
    version,
    wire::{self, Agent, Session, Statuses},
};

/// How long OpenCode may take to store a message that it has accepted.
const STORE_TIMEOUT: Duration = Duration::from_secs(30);
/// How long OpenCode may live on after it has aborted its sessions in order to end.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(1_500);
/// Clocks of two machines may differ by this much.
const CLOCK_SKEW: Duration = Duration::from_secs(10 * 60);

/// OpenCode, in one folder.
pub struct OpenCode {
    api: Api,
    clock: Arc<dyn Clock>,
    settings: Settings,
    activity: Arc<Activity>,
    agents: Agents,
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
    async fn check_version(&self) -> Result<(), HostError> {
        let check = || async {
            let version = self.api.version().await?;
            version::check(&version)
        };
        self.checked.get_or_try_init(check).await.map(|_| ())
    }

    async fn existing(&self, session: &SessionId) -> Result<Session, HostError> {
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
    async fn choose_model(
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

    /// OpenCode accepts a message before it stores it, and other plugins may look at it first. Until
    /// it is in the history, another attempt could not tell that it was sent.
    async fn wait_until_stored(&self, session: &SessionId, post: &PostId) -> Result<(), HostError> {
        let since = self.activity.sent_at(post).map(|at| at.before(CLOCK_SKEW));
        let stored = async {
            let mut pause = Duration::from_millis(20);
            while !history::find(&self.api, session, post, since).await? {
                time::sleep(pause).await;
                pause = (pause * 2).min(Duration::from_secs(1));
            }
            Ok(())
        };
        time::timeout(STORE_TIMEOUT, stored).await.unwrap_or(Ok(()))
    }

    /// Whether a session was used since OpenCode was started.
    async fn is_awake(&self, session: &SessionId) -> Result<bool, HostError> {
        match self.settings.began {
            None => Ok(true),
            Some(_) if self.activity.is_awake(session) => Ok(true),
            Some(began) => history::has_worked(&self.api, session, began).await,
        }
    }

    /// A message for the session's own agent and model, with what it is told of its skill. Without
    /// them OpenCode would change the first two to its defaults, and leave out the last.
    async fn message_for(&self, session: &Session, parts: Value) -> Result<Value, HostError> {
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
        if let Some(made) = self.made_before(&new).await? {
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
        Ok(session.id.as_str().into())
    }

    async fn inject(&self, session: &SessionId, what: Inheritance) -> Result<(), HostError> {
        // A new session: if it is there, it is on the first page.
        if history::find(&self.api, session, &what.id, None).await? {
            return Ok(());
        }
        let there = self.existing(session).await?;
        let parts = json!([
            wire::text(&what.preamble, &what.id, true),
            wire::text(&what.context, &what.id, true),
        ]);
        let body = self.message_for(&there, parts).await?;
        self.api.store(session, body).await
    }

    async fn prompt(&self, session: &SessionId, prompt: Prompt) -> Result<(), HostError> {
        let there = self.existing(session).await?;
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
        if question.within.is_zero() {
            return Ok(None);
        }
        let there = self.existing(session).await?;
        let mut body = json!({
            "agent": question.agent.as_str(),
            "parts": [wire::text(&question.text, &question.id, false)],
        });
        let wanted = role::wanted(question.model.as_ref(), question.role.as_ref());
        let model = self.choose_model(wanted, &question.agent, Some(&there));
        session_model::set(&mut body, model.await?);
        session_model::set_effort(&mut body, question.effort);
        let side_session = json!({
            "title": "The last turn of a background task",
            "parentID": there.id,
            "agent": question.agent.as_str(),
            "permission": [{"permission": "*", "pattern": "*", "action": "deny"}],
        });
        let session: SessionId = self.api.create(side_session).await?.id.as_str().into();
        let answer = self.answer_to(&session, &question.id, body);
        let answer = time::timeout(question.within, answer).await;
        if answer.is_err()
            && let Err(error) = self.abort(&session).await
        {
            tracing::warn!(%session, %error, "cannot abort the last turn");
        }
        if let Err(error) = self.api.delete(&session).await {
            tracing::warn!(%session, %error, "cannot delete the session of a last turn");
        }
        answer.unwrap_or(Ok(None))
    }

    async fn branch(&self, new: NewSession, plan: &Plan) -> Result<Option<SessionId>, HostError> {
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
        let pages = Pages::new(&self.api, session, PAGE);
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
        let working = |asking| Inspection {
            standing: Standing::Working,
            totals: None,
            asking,
        };
        if self.activity.is_busy(session, self.clock.now()) {
            return Ok(working(None));
        }
        // First whether the session is at work, then its messages: none that is written between the
        // two requests is missed.
        let statuses = self.api.statuses().await?;
        if let Some(why) = self.long_wait(&statuses, session) {
            let run = history::run(&self.api, session, prompt).await?;
            return Ok(Inspection {
                standing: Standing::ModelUnavailable(run.waits(why)),
                totals: None,
                asking: None,
            });
        }
        if statuses.contains_key(session.as_str()) {
            // A question may have come while events were lost.
            return Ok(working(Some(self.asking(session).await?)));
        }
        if self.api.session(session).await?.is_none() {
            return Ok(Inspection {
                standing: Standing::Gone,
                totals: None,
                asking: None,
            });
        }
        let run = history::run(&self.api, session, prompt).await?;
        let is_starting = self.activity.is_starting(session, self.clock.now());
        let standing = run.standing(self.activity.end(session), is_starting);
        if standing == Standing::Interrupted {
            // The session may have begun to work again since.
            let statuses = self.api.statuses().await?;
            if statuses.contains_key(session.as_str()) {
                return Ok(working(None));
            }
        }
        let cancelled = Outcome::Cancelled;
        if matches!(&standing, Standing::Done { outcome, .. } if *outcome == cancelled) {
            // An OpenCode that ends aborts its sessions first: that is no cancelled run.
            time::sleep(SHUTDOWN_TIMEOUT).await;
            self.api.version().await?;
        }
        let totals = Some(run.totals).filter(|totals| *totals != Totals::default());
        Ok(Inspection {
            standing,
            totals,
            asking: None,
        })
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

impl OpenCode {
    /// Prompts a session and waits for the answer.
    async fn answer_to(
        &self,
        session: &SessionId,
        post: &PostId,
        body: Value,
    ) -> Result<Option<OneAnswer>, HostError> {
        self.activity.prompting(session, self.clock.now());
        self.api.prompt(session, body).await?;
        one_answer::wait_for(self, session, post).await
    }

    async fn send_notice(
        &self,
        session: &SessionId,
        notice: Notice,
    ) -> Result<Delivery, HostError> {
        self.check_version().await?;
        let Some(there) = self.api.session(session).await? else {
            return Ok(Delivery::Gone);
        };
        let parts = json!([
            wire::text(&notice.message.visible, &notice.id, false),
            wire::text(&notice.message.hidden, &notice.id, true),
        ]);
        let body = self.message_for(&there, parts).await?;
        self.activity.sending(&notice.id, self.clock.now());
        if !self.is_awake(session).await? {
            self.api.store(session, body).await?;
            return Ok(Delivery::Taken);
        }
        self.activity.notified(session, self.clock.now());
        self.api.prompt(session, body).await?;
        self.wait_until_stored(session, &notice.id).await?;
        Ok(Delivery::Taken)
    }

    async fn has_notice(&self, session: &SessionId, notice: &PostId) -> Result<bool, HostError> {
        if !is_session(session) {
            return Ok(false);
        }
        let sent = self.activity.sent_at(notice);
        let since = sent.map(|at| at.before(CLOCK_SKEW));
        let found = match history::find(&self.api, session, notice, since).await {
            Err(HostError::NoSession(_)) => false,
            found => found?,
        };
        if found {
            self.activity.arrived(notice);
        }
        Ok(found)
    }

    /// What a provider says that does not want to be asked for a long time, if the session waits for
    /// that.
    fn long_wait(&self, statuses: &Statuses, session: &SessionId) -> Option<String> {
        let status = statuses.get(session.as_str())?;
        status.long_wait(self.clock.now())
    }

    /// What a session has asked its user and waits for.
    async fn asking(&self, session: &SessionId) -> Result<BTreeMap<String, Question>, HostError> {
        let open = self.api.questions().await?;
        let open = open.iter().filter(|open| open.is_of(session));
        Ok(open.filter_map(questions::question).collect())
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
