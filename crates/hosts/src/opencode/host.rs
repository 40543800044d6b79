//! OpenCode as a host: what the runtime asks of it.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use asyncagents_core::{
    agent::Tools,
    budget::Spent,
    fork::Plan,
    id::{AgentName, ModelName, PostId, SessionId},
    lifecycle::Standing,
    lock::lock,
    moment::Moment,
    port::{
        Clock, Delivery, Host, HostError, HostEvents, Inheritance, Inspection, NewSession, Notice,
        OneAnswer, OneQuestion, Prompt, Recent,
    },
    progress::Totals,
    skill::{self, Role},
    task::Outcome,
    transcript::Transcript,
};
use serde_json::{Value, json};
use tokio::{sync::OnceCell, time};

use super::{
    api::{self, Api, is_session},
    branch,
    connection::Connection,
    events::{self, Ears},
    history::{self, Run},
    known::{self, BadEnd, Known},
    skill_rules, version,
    wire::{self, Agent, Message, Rule, Session},
};

/// How long OpenCode may take to keep a message that it has taken.
const KEPT: Duration = Duration::from_secs(30);
/// How long OpenCode may live on after it has stopped its sessions to end.
const LAST_WORDS: Duration = Duration::from_millis(1_500);
/// How often a session that is asked one thing is looked at.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Clocks of two machines may differ by this much.
const CLOCK_SKEW: Duration = Duration::from_secs(10 * 60);

/// OpenCode, in one folder.
pub struct OpenCode {
    api: Api,
    clock: Arc<dyn Clock>,
    settings: Settings,
    known: Arc<Known>,
    agents: Mutex<Vec<Agent>>,
    checked: OnceCell<()>,
}

/// How OpenCode is dealt with.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What the tools' names begin with: they are forbidden where tasks may go no deeper.
    pub prefix: String,
    /// When this OpenCode was started. A session that nobody has worked in since is told things
    /// without being set to work: whoever opens OpenCode the next day does not pay for it.
    /// Without, every session is set to work.
    pub began: Option<Moment>,
}

/// An agent, as a model has to know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentNote {
    /// What it is called.
    pub name: String,
    /// What it is for.
    pub about: String,
}

impl OpenCode {
    /// OpenCode at the other end of a connection.
    pub fn new(connection: Arc<dyn Connection>, clock: Arc<dyn Clock>, settings: Settings) -> Self {
        Self {
            api: Api::new(connection),
            clock,
            settings,
            known: Arc::default(),
            agents: Mutex::default(),
            checked: OnceCell::new(),
        }
    }

    /// The same for the tasks of an OpenCode that has ended: what was done in its sessions
    /// until now was done there, and nobody looks at them here.
    #[must_use]
    pub fn successor(&self) -> Self {
        Self {
            api: self.api.clone(),
            clock: self.clock.clone(),
            settings: Settings {
                began: Some(self.clock.now()),
                ..self.settings.clone()
            },
            known: self.known.clone(),
            agents: Mutex::default(),
            checked: OnceCell::new(),
        }
    }

    /// Somebody works in this session.
    pub fn wake(&self, session: &SessionId) {
        self.known.wake(session);
    }

    /// The agents a task may be given to, with what they are for.
    ///
    /// # Errors
    /// When OpenCode does not say.
    pub async fn agent_notes(&self) -> Result<Vec<AgentNote>, HostError> {
        let agents = self.ask_for_agents().await?;
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

    /// Asks which version it is, once.
    async fn check_version(&self) -> Result<(), HostError> {
        let check = || async {
            let version = self.api.version().await?;
            version::check(&version)
        };
        self.checked.get_or_try_init(check).await.map(|_| ())
    }

    async fn ask_for_agents(&self) -> Result<Vec<Agent>, HostError> {
        let mut agents = self.api.agents().await?;
        agents.retain(|agent| !agent.hidden);
        let known = &mut *lock(&self.agents);
        known.clone_from(&agents);
        Ok(agents)
    }

    /// Whether an agent has a model of its own.
    async fn has_model(&self, agent: &AgentName) -> Result<bool, HostError> {
        let agent = self.agent(agent).await?;
        Ok(agent.is_some_and(|agent| agent.model.is_some()))
    }

    /// An agent. OpenCode is asked only about those it has not named before.
    async fn agent(&self, name: &AgentName) -> Result<Option<Agent>, HostError> {
        let find = |agents: &[Agent]| {
            let mut agents = agents.iter();
            agents.find(|known| known.name == name.as_str()).cloned()
        };
        let known = find(&lock(&self.agents));
        match known {
            Some(agent) => Ok(Some(agent)),
            None => Ok(find(&self.ask_for_agents().await?)),
        }
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
        let task = Some(new.task.as_str());
        let made = sessions.into_iter().find(|session| session.task() == task);
        Ok(made.map(|session| session.id.as_str().into()))
    }

    /// What a child may not do: what its parent may not, and where tasks may go no deeper,
    /// launch any.
    fn rules(&self, parent: Option<&Session>, may_delegate: bool) -> Vec<Rule> {
        let mut rules = parent
            .and_then(|parent| parent.permission.clone())
            .unwrap_or_default();
        // What a skill allows is worked out anew for the agent of each session that it binds.
        if let Some(inherited) = parent.and_then(Session::inherited_rules) {
            rules.truncate(inherited);
        }
        let ours = format!("{}*", self.settings.prefix);
        rules.retain(|rule| rule.permission != ours || rule.action != "deny");
        if !may_delegate {
            rules.push(Rule {
                permission: ours,
                pattern: "*".to_owned(),
                action: "deny".to_owned(),
            });
        }
        rules
    }

    /// The rules of a new session and what is noted with it. The skills above bind it, the
    /// outermost first, and then its own.
    async fn ruled(&self, parent: Option<&Session>, new: &NewSession) -> Result<Ruled, HostError> {
        let mut rules = self.rules(parent, new.may_delegate);
        let mut metadata = wire::metadata(&new.task, &new.parent);
        let terms = new.role.as_ref().map(|role| &role.terms);
        if let Some(effort) = terms.and_then(|terms| terms.effort) {
            tracing::warn!(task = %new.task, effort = effort.word(), "OpenCode has its own effort; a skill's is not used");
        }
        let own = terms.map(|terms| &terms.tools);
        let limits: Vec<&Tools> = new.within.iter().chain(own).collect();
        if limits.is_empty() {
            return Ok(Ruled { rules, metadata });
        }
        wire::note_inherited_rules(&mut metadata, rules.len());
        let agent = self.agent(&new.agent).await?;
        let mut theirs = agent.map(|agent| agent.permission).unwrap_or_default();
        theirs.extend(rules.clone());
        for tools in limits {
            let narrower = skill_rules::rules(tools, &theirs, &self.settings.prefix);
            theirs.extend(narrower.clone());
            rules.extend(narrower);
        }
        Ok(Ruled { rules, metadata })
    }

    /// The model that a session is asked to use: the one it was given, or nothing where the
    /// agent has its own.
    async fn model_for(
        &self,
        asked: Option<&ModelName>,
        agent: &AgentName,
        session: &Session,
    ) -> Result<Vec<(&'static str, Value)>, HostError> {
        let inherits = inherits(asked);
        if let Some(asked) = asked.filter(|_| !inherits) {
            return Ok(vec![("model", api::model(asked)?)]);
        }
        match &session.model {
            Some(model) if inherits || !self.has_model(agent).await? => Ok(same_model(model)),
            Some(_) | None => Ok(Vec::new()),
        }
    }

    /// OpenCode takes a message before it keeps it, and other plugins may look at it first. Until
    /// it is there nobody can say whether it was sent.
    async fn wait_for(&self, session: &SessionId, post: &PostId) -> Result<(), HostError> {
        let since = self.known.sent_at(post).map(|at| at.before(CLOCK_SKEW));
        let kept = async {
            let mut pause = Duration::from_millis(20);
            while !history::find(&self.api, session, post, since).await? {
                time::sleep(pause).await;
                pause = (pause * 2).min(Duration::from_secs(1));
            }
            Ok(())
        };
        time::timeout(KEPT, kept).await.unwrap_or(Ok(()))
    }

    /// Whether somebody has worked in a session since OpenCode was started.
    async fn is_awake(&self, session: &SessionId) -> Result<bool, HostError> {
        match self.settings.began {
            None => Ok(true),
            Some(_) if self.known.is_awake(session) => Ok(true),
            Some(began) => history::has_worked(&self.api, session, began).await,
        }
    }

    /// The session's own agent and model. Without them OpenCode would change both to its
    /// defaults.
    async fn as_it_is(&self, session: &Session) -> Result<Value, HostError> {
        let mut body = json!({});
        // One that is no more would keep OpenCode from taking anything.
        if let Some(agent) = &session.agent
            && self.agent(&agent.as_str().into()).await?.is_some()
        {
            body["agent"] = json!(agent);
        }
        for (key, value) in session.model.iter().flat_map(same_model) {
            body[key] = value;
        }
        Ok(body)
    }

    /// What became of a prompt, by the last message of the agent and not by silence.
    fn judge(&self, session: &SessionId, run: &Run) -> Standing {
        let starting = self.known.is_starting(session, self.clock.now());
        // OpenCode says why it stopped before it writes that into the message, and it says it
        // also when there is no message.
        let told = self.known.end(session);
        let Some(messages) = &run.since else {
            return match told {
                Some(end) => ended(end, None),
                None if starting => Standing::Working,
                None => Standing::Unprompted,
            };
        };
        let mut of_agent = messages.iter().filter(|message| message.is_of_agent());
        let answer = of_agent.clone().find_map(Message::said);
        let Some(last) = of_agent.next() else {
            return match told {
                Some(end) => ended(end, None),
                None if starting => Standing::Working,
                None => Standing::Interrupted,
            };
        };
        // It was told something and has not begun to answer.
        if starting && !messages.first().is_some_and(Message::is_of_agent) {
            return Standing::Working;
        }
        match (&last.info.error, last.info.finish.as_deref()) {
            (Some(problem), _) if problem.is_abort() => ended(BadEnd::Aborted, answer),
            (Some(problem), _) => ended(BadEnd::Failed(problem.sentence()), answer),
            // It was to go on and did not. Where the user has refused something it does not.
            (None, None | Some("tool-calls" | "unknown")) => {
                let refused = || last.refusal().map(|why| BadEnd::Failed(why.to_owned()));
                let end = told.or_else(refused);
                end.map_or(Standing::Interrupted, |end| ended(end, answer))
            }
            (None, Some(_)) => Standing::Done {
                outcome: Outcome::Completed,
                answer,
            },
        }
    }
}

fn ended(end: BadEnd, answer: Option<String>) -> Standing {
    let outcome = match end {
        BadEnd::Aborted => Outcome::Cancelled,
        BadEnd::Failed(why) => Outcome::Failed { why },
    };
    Standing::Done { outcome, answer }
}

/// The rules of a new session.
pub(super) struct Ruled {
    pub(super) rules: Vec<Rule>,
    /// What is noted with the session.
    pub(super) metadata: Value,
}

/// A notice waits until it can be sent: a server that refuses a password today may take another
/// tomorrow.
fn for_now(error: HostError) -> HostError {
    match error {
        HostError::Refused(why) => HostError::Unreachable(why),
        HostError::Unreachable(_) | HostError::NoSession(_) => error,
    }
}

/// The model that is asked for, or else the one that a skill would like. A skill may name it by
/// another agent's word for it, which OpenCode does not know.
fn wanted<'m>(asked: Option<&'m ModelName>, role: Option<&'m Role>) -> Option<&'m ModelName> {
    let liked = role.and_then(|role| role.terms.model.as_ref());
    let known = |model: &&ModelName| {
        let known = model.as_str().contains('/') || inherits(Some(model));
        if !known {
            tracing::warn!(%model, "OpenCode has no such model; another is used");
        }
        known
    };
    asked.or_else(|| liked.filter(known))
}

/// Whether the parent's model is wanted, whatever the agent has.
fn inherits(asked: Option<&ModelName>) -> bool {
    asked.is_some_and(|asked| asked.as_str() == ModelName::INHERIT)
}

/// What a sub-agent that runs a skill is told, beside what OpenCode tells its agent.
fn system_of(role: &Role) -> String {
    let terms = &role.terms;
    let listed = terms.tools.only.as_ref();
    let names: Vec<String> = match listed {
        Some(rules) => rules.iter().map(ToString::to_string).collect(),
        None => vec!["those of your agent".to_owned()],
    };
    let names = names.iter().map(|name| (name.as_str(), ""));
    skill::isolated(&terms.skill, &role.instructions, names)
}

/// The model of a session, as a prompt names it.
fn same_model(model: &wire::SessionModel) -> Vec<(&'static str, Value)> {
    let name = json!({"providerID": model.provider, "modelID": model.id});
    let mut said = vec![("model", name)];
    // What OpenCode calls the default is no variant one can ask for.
    if let Some(variant) = model
        .variant
        .as_ref()
        .filter(|variant| *variant != "default")
    {
        said.push(("variant", json!(variant)));
    }
    said
}

#[async_trait]
impl Host for OpenCode {
    async fn agents(&self) -> Result<Vec<AgentName>, HostError> {
        self.check_version().await?;
        let agents = self.ask_for_agents().await?;
        Ok(agents.into_iter().map(|agent| agent.name.into()).collect())
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
        let Ruled { rules, metadata } = self.ruled(parent.as_ref(), &new).await?;
        let mut body = json!({
            "title": format!("{} (@{} in the background)", new.title, new.agent),
            "agent": new.agent.as_str(),
            "metadata": metadata,
            "permission": rules,
        });
        if let Some(parent) = &parent {
            body["parentID"] = json!(parent.id);
        }
        let asked = wanted(new.model.as_ref(), new.role.as_ref());
        let inherits = inherits(asked);
        if let Some(model) = asked.filter(|_| !inherits) {
            let model = api::model(model)?;
            body["model"] = json!({"providerID": model["providerID"], "id": model["modelID"]});
        } else if let Some(model) = parent.as_ref().and_then(|parent| parent.model.as_ref())
            && (inherits || !self.has_model(&new.agent).await?)
        {
            body["model"] = json!({"providerID": model.provider, "id": model.id});
            if let Some(variant) = &model.variant {
                body["model"]["variant"] = json!(variant);
            }
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
        let mut body = self.as_it_is(&there).await?;
        body["parts"] = json!([
            wire::text(&what.preamble, &what.id, true),
            wire::text(&what.context, &what.id, true),
        ]);
        self.api.store(session, body).await
    }

    async fn prompt(&self, session: &SessionId, prompt: Prompt) -> Result<(), HostError> {
        let there = self.existing(session).await?;
        let mut body = json!({
            "agent": prompt.agent.as_str(),
            "parts": [wire::text(&prompt.text, &prompt.id, false)],
        });
        if let Some(role) = &prompt.role {
            body["system"] = json!(system_of(role));
        }
        let asked = wanted(prompt.model.as_ref(), prompt.role.as_ref());
        let model = self.model_for(asked, &prompt.agent, &there);
        for (key, value) in model.await? {
            body[key] = value;
        }
        self.known.prompting(session, self.clock.now());
        let prompted = self.api.prompt(session, body).await;
        if let Err(HostError::Refused(_) | HostError::NoSession(_)) = &prompted {
            self.known.not_prompted(session);
        }
        prompted
    }

    async fn abort(&self, session: &SessionId) -> Result<(), HostError> {
        if !is_session(session) {
            return Ok(());
        }
        // What OpenCode has not set to work yet it does not stop, and sets to work afterwards.
        let started = async {
            while self.known.is_starting(session, self.clock.now()) {
                time::sleep(Duration::from_millis(20)).await;
            }
        };
        let _ = time::timeout(known::START, started).await;
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
        let asked = wanted(question.model.as_ref(), question.role.as_ref());
        let model = self.model_for(asked, &question.agent, &there);
        let mut body = json!({
            "agent": question.agent.as_str(),
            "parts": [wire::text(&question.text, &question.id, false)],
        });
        for (key, value) in model.await? {
            body[key] = value;
        }
        let beside = json!({
            "title": "The last turn of a background task",
            "parentID": there.id,
            "agent": question.agent.as_str(),
            "permission": [{"permission": "*", "pattern": "*", "action": "deny"}],
        });
        let beside = self.api.create(beside).await?;
        let beside: SessionId = beside.id.as_str().into();
        let answer = self.answered(&beside, &question.id, body);
        let answer = time::timeout(question.within, answer).await;
        if answer.is_err()
            && let Err(error) = self.abort(&beside).await
        {
            tracing::warn!(session = %beside, %error, "not stopped");
        }
        if let Err(error) = self.api.delete(&beside).await {
            tracing::warn!(session = %beside, %error, "not removed");
        }
        answer.unwrap_or(Ok(None))
    }

    async fn branch(&self, new: NewSession, plan: &Plan) -> Result<Option<SessionId>, HostError> {
        self.check_version().await?;
        let parent = self.api.session(&new.parent).await?;
        let ruled = self.ruled(parent.as_ref(), &new).await?;
        let branched = branch::branch(&self.api, &new, plan, &self.settings.prefix, ruled).await?;
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
        history::recent(&self.api, session, plan, &self.settings.prefix).await
    }

    async fn messages(&self, session: &SessionId) -> Result<Transcript<'static>, HostError> {
        if !is_session(session) {
            return Err(HostError::NoSession(session.clone()));
        }
        history::all(&self.api, session).await
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
        if self.known.is_busy(session, self.clock.now()) {
            return Ok(working(None));
        }
        // First whether it works, then what it has said: what is said later is not missed.
        let statuses = self.api.statuses().await?;
        if statuses.contains_key(session.as_str()) {
            // It may have asked something while nobody listened.
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
        let standing = self.judge(session, &run);
        if standing == Standing::Interrupted {
            // It may have begun to work again since.
            let statuses = self.api.statuses().await?;
            if statuses.contains_key(session.as_str()) {
                return Ok(working(None));
            }
        }
        let cancelled = |standing: &Standing| match standing {
            Standing::Done { outcome, .. } => *outcome == Outcome::Cancelled,
            _ => false,
        };
        if cancelled(&standing) {
            // An OpenCode that ends stops its sessions first. Nobody has cancelled them then.
            time::sleep(LAST_WORDS).await;
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
        self.tell(session, notice).await.map_err(for_now)
    }

    async fn confirm(&self, session: &SessionId, notice: &PostId) -> Result<bool, HostError> {
        self.is_told(session, notice).await.map_err(for_now)
    }

    fn subscribe(&self) -> Box<dyn HostEvents> {
        let signals = self.api.connection().signals();
        Box::new(Ears::new(signals, self.known.clone(), self.clock.clone()))
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
    /// Sets a session to work, and returns what it says.
    async fn answered(
        &self,
        session: &SessionId,
        post: &PostId,
        body: Value,
    ) -> Result<Option<OneAnswer>, HostError> {
        self.known.prompting(session, self.clock.now());
        self.api.prompt(session, body).await?;
        loop {
            time::sleep(POLL_INTERVAL).await;
            let Inspection {
                standing, totals, ..
            } = self.inspect(session, post).await?;
            match standing {
                Standing::Working | Standing::Unprompted => {}
                Standing::Gone | Standing::Interrupted => return Ok(None),
                Standing::Done { answer, .. } => {
                    let totals = totals.unwrap_or_default();
                    return Ok(Some(OneAnswer {
                        text: answer.unwrap_or_default(),
                        spent: Spent::answer(totals.tokens, totals.cost, totals.unpriced),
                    }));
                }
            }
        }
    }

    async fn tell(&self, session: &SessionId, notice: Notice) -> Result<Delivery, HostError> {
        self.check_version().await?;
        let Some(there) = self.api.session(session).await? else {
            return Ok(Delivery::Gone);
        };
        let mut body = self.as_it_is(&there).await?;
        body["parts"] = json!([
            wire::text(&notice.message.visible, &notice.id, false),
            wire::text(&notice.message.hidden, &notice.id, true),
        ]);
        self.known.sending(&notice.id, self.clock.now());
        if !self.is_awake(session).await? {
            self.api.store(session, body).await?;
            return Ok(Delivery::Taken);
        }
        self.known.nudged(session, self.clock.now());
        self.api.prompt(session, body).await?;
        self.wait_for(session, &notice.id).await?;
        Ok(Delivery::Taken)
    }

    async fn is_told(&self, session: &SessionId, notice: &PostId) -> Result<bool, HostError> {
        if !is_session(session) {
            return Ok(false);
        }
        let sent = self.known.sent_at(notice);
        let since = sent.map(|at| at.before(CLOCK_SKEW));
        let found = history::find(&self.api, session, notice, since).await;
        let found = match found {
            Err(HostError::NoSession(_)) => false,
            found => found?,
        };
        if found {
            self.known.arrived(notice);
        }
        Ok(found)
    }

    /// What a session has asked its user and waits for.
    async fn asking(&self, session: &SessionId) -> Result<BTreeMap<String, String>, HostError> {
        let open = self.api.questions().await?;
        let open = open.iter().filter(|open| open.is_of(session));
        Ok(open.filter_map(events::question).collect())
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
        let model = self.model_for(new.model.as_ref(), &new.agent, &parent);
        for (key, value) in model.await? {
            body[key] = value;
        }
        self.api.store(session, body).await
    }
}
