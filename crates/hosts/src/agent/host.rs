//! Another agent as a host: what the runtime asks of it. Everything that happened is in the journal;
//! drivers see to what has to happen.

use std::sync::Arc;

use async_trait::async_trait;
use asyncagents_core::{
    agent::{End, Entry, Kind, Tools},
    fork::{BRANCHED, Plan},
    id::{AgentName, ModelName, OwnerId, PostId, SessionId},
    lifecycle::Standing,
    port::{
        Base, Clock, Delivery, Host, HostError, HostEvents, Inheritance, Inspection, NewSession,
        Notice, Prompt, Recent, Report, Session, SessionEvent, Store, WholeSession,
    },
    question::{Answered, Reply},
    skill::{self, Role},
    task::Outcome,
    transcript::Transcript,
};
use tokio::sync::{broadcast, oneshot};

use super::{
    AskedCall, Prices, Wire,
    drive::Driver,
    drivers::{Command, Drivers},
    grants::Grants,
    journal::JournalSessions,
};
use crate::outside::Outside;

/// How many reports a slow listener may be behind before it misses some.
const MOST_BEHIND: usize = 8_192;

/// How an agent is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentSettings {
    /// What the user's settings call it.
    pub name: String,
    /// The folder that it works in.
    pub folder: String,
    /// What the names of our tools begin with in sessions of the built-in agent.
    pub prefix: String,
    /// Who can be at work: what `agent` names at a launch.
    pub profiles: Vec<Profile>,
}

/// Who is at work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    pub name: AgentName,
    /// What it is told beside the agent's own system prompt.
    pub instructions: String,
    /// Whether it may only read.
    pub reads_only: bool,
}

/// What is decided about a call before anybody is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Allow,
    /// Not allowed, for a reason.
    Deny(String),
    /// Somebody is asked.
    Ask,
    /// Somebody is asked about each such call: what is always allowed of its kind does not cover it.
    AskEach,
}

/// Decides by the user's rules.
pub trait Judge: Send + Sync {
    /// What the rules say about a call.
    fn judge(&self, call: &AskedCall) -> Verdict;

    /// Whether a call changes nothing, whatever the rules say.
    fn only_reads(&self, call: &AskedCall) -> bool {
        call.kind == Some(Kind::Read)
    }
}

/// Returns the worker of this process.
pub type Owner = Arc<dyn Fn() -> Option<OwnerId> + Send + Sync>;

/// What a host is made of.
pub struct Parts {
    pub settings: AgentSettings,
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
    /// Starts its processes.
    pub wire: Arc<dyn Wire>,
    pub judge: Arc<dyn Judge>,
    pub prices: Arc<Prices>,
    pub owner: Owner,
}

/// What all parts of a host share.
pub(super) struct Shared {
    pub(super) settings: AgentSettings,
    pub(super) sessions: JournalSessions,
    pub(super) wire: Arc<dyn Wire>,
    pub(super) judge: Arc<dyn Judge>,
    pub(super) prices: Arc<Prices>,
    pub(super) owner: Owner,
    pub(super) drivers: Drivers,
    pub(super) grants: Grants,
    reports: broadcast::Sender<Report>,
}

impl Shared {
    pub(super) fn report(&self, session: &SessionId, event: SessionEvent) {
        // Without a listener there is nothing to do.
        let _ = self.reports.send(Report::Session(session.clone(), event));
    }

    pub(super) fn profile(&self, name: &AgentName) -> Option<&Profile> {
        let mut profiles = self.settings.profiles.iter();
        profiles.find(|profile| profile.name == *name)
    }
}

/// Another agent, in one folder.
#[derive(Clone)]
pub struct AgentHost {
    shared: Arc<Shared>,
}

impl AgentHost {
    /// A host of these parts.
    pub fn new(parts: Parts) -> Self {
        let prefix = parts.settings.prefix.clone();
        Self {
            shared: Arc::new(Shared {
                settings: parts.settings,
                sessions: JournalSessions::new(parts.store, parts.clock, prefix),
                wire: parts.wire,
                judge: parts.judge,
                prices: parts.prices,
                owner: parts.owner,
                drivers: Drivers::default(),
                grants: Grants::default(),
                reports: broadcast::channel(MOST_BEHIND).0,
            }),
        }
    }

    /// Ends all its processes. Their sessions can be gone on with.
    pub async fn stop(&self) {
        self.shared.drivers.stop().await;
    }

    /// Makes sure that a session is driven.
    fn attend(&self, session: &SessionId) {
        let (shared, id) = (self.shared.clone(), session.clone());
        self.shared
            .drivers
            .attend(session, |orders| Driver::drive(shared, id, orders));
    }

    /// What a session of a task is like.
    fn session(&self, new: NewSession, base: Option<Base>) -> Result<Session, HostError> {
        let settings = &self.shared.settings;
        let profile = self.known(&new.agent)?;
        check_tools(&settings.name, new.role.as_ref(), &new.within)?;
        let of_skill = new.role.as_ref().map(|role| {
            let tools = [("those of your agent", "")];
            skill::isolated(&role.terms.skill, &role.instructions, tools)
        });
        let system = [Some(profile.instructions.clone()), of_skill];
        let system: Vec<String> = system.into_iter().flatten().collect();
        let own = || ModelName::from(settings.name.as_str());
        Ok(Session {
            id: new.task.session(),
            task: Some(new.task),
            title: new.title,
            agent: new.agent,
            model: new.model.unwrap_or_else(own),
            system: system.join("\n\n"),
            // Whoever may change nothing has nobody change it.
            delegates: new.may_delegate && !profile.reads_only,
            workspace: settings.folder.clone(),
            terms: new.role.map(|role| role.terms),
            base,
            begun: self.shared.sessions.now(),
        })
    }

    fn known(&self, agent: &AgentName) -> Result<&Profile, HostError> {
        let profile = self.shared.profile(agent);
        profile.ok_or_else(|| HostError::Refused(format!("there is no agent `{agent}`")))
    }

    /// The session that was made for a task, or a new one that begins with an entry.
    async fn make(&self, session: Session, first: Option<Entry>) -> Result<SessionId, HostError> {
        let now = self.shared.sessions.now();
        let made = self.shared.sessions.write(move |journal| {
            if let Some(task) = &session.task
                && let Some(made) = journal.session_for(task)?
            {
                return Ok(made);
            }
            journal.begin_session(&session)?;
            if let Some(first) = &first {
                journal.file(&session.id, first, now)?;
            }
            Ok(session.id.clone())
        });
        Ok(made.await?)
    }
}

/// The tools of a skill limit what its sub-agent may do. Nobody could hold another agent to that.
fn check_tools(agent: &str, role: Option<&Role>, within: &[Tools]) -> Result<(), HostError> {
    let limits = |tools: &Tools| tools.only.is_some() || !tools.not.is_empty();
    let own = role.is_some_and(|role| limits(&role.terms.tools));
    if own || within.iter().any(limits) {
        let why = format!(
            "a skill limits the tools of this task, and {agent} cannot be held to that; leave \
             `host` out"
        );
        return Err(HostError::Refused(why));
    }
    Ok(())
}

#[async_trait]
impl Host for AgentHost {
    async fn agents(&self) -> Result<Vec<AgentName>, HostError> {
        let profiles = self.shared.settings.profiles.iter();
        Ok(profiles.map(|profile| profile.name.clone()).collect())
    }

    async fn create(&self, new: NewSession) -> Result<SessionId, HostError> {
        let session = self.session(new, None)?;
        self.make(session, None).await
    }

    /// With all that its parent has, where that is a session of the same agent, which can fork it.
    async fn branch(&self, new: NewSession, plan: &Plan) -> Result<Option<SessionId>, HostError> {
        if !plan.limits.are_exact() {
            return Ok(None);
        }
        let parent = match self.shared.sessions.whole(&new.parent).await {
            Ok(parent) => parent,
            Err(HostError::NoSession(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        let forks = parent
            .own
            .iter()
            .rev()
            .find_map(|filed| match &filed.entry {
                Entry::AgentSession { forks, .. } => Some(*forks),
                _ => None,
            });
        if forks != Some(true) {
            return Ok(None);
        }
        let base = Base {
            session: parent.session.id.clone(),
            until: parent.own.last().map_or(0, |filed| filed.seq),
        };
        let told = Entry::Inherited {
            post: new.task.inheritance(),
            preamble: BRANCHED.to_owned(),
            context: String::new(),
        };
        let session = self.session(new, Some(base))?;
        self.make(session, Some(told)).await.map(Some)
    }

    async fn inject(&self, session: &SessionId, what: Inheritance) -> Result<(), HostError> {
        let entry = Entry::Inherited {
            post: what.id,
            preamble: what.preamble,
            context: what.context,
        };
        if self.shared.sessions.file(session, entry).await? {
            Ok(())
        } else {
            Err(HostError::NoSession(session.clone()))
        }
    }

    async fn prompt(&self, session: &SessionId, prompt: Prompt) -> Result<(), HostError> {
        self.known(&prompt.agent)?;
        let (id, now) = (session.clone(), self.shared.sessions.now());
        let filed = self.shared.sessions.write(move |journal| {
            if journal.session(&id)?.is_none() {
                return Ok(false);
            }
            if let Some(before) = journal.open_prompt(&id)?.filter(|it| *it != prompt.id) {
                let why = "a newer prompt took its place".to_owned();
                let ended = Entry::Ended {
                    prompt: before,
                    end: End::Failed { why },
                    answer: None,
                };
                journal.file(&id, &ended, now)?;
            }
            let entry = Entry::Prompted {
                post: prompt.id.clone(),
                text: prompt.text.clone(),
                agent: prompt.agent.clone(),
                model: prompt.model.clone(),
                chain: None,
            };
            journal.file(&id, &entry, now)?;
            Ok(true)
        });
        if !filed.await? {
            return Err(HostError::NoSession(session.clone()));
        }
        self.attend(session);
        Ok(())
    }

    async fn abort(&self, session: &SessionId) -> Result<(), HostError> {
        let (done, is_done) = oneshot::channel();
        if self.shared.drivers.tell(session, Command::Abort(done)) {
            // A driver that ends meanwhile has dropped it.
            let _ = is_done.await;
        }
        let (id, now) = (session.clone(), self.shared.sessions.now());
        let aborted = self.shared.sessions.write(move |journal| {
            let Some(prompt) = journal.open_prompt(&id)? else {
                return Ok(());
            };
            let answer = WholeSession::read(journal, &id)?;
            let answer = answer.and_then(|whole| whole.conversation().run()?.answer.clone());
            // A driver in another process may write no more.
            journal.drive(&id, "")?;
            let ended = Entry::Ended {
                prompt,
                end: End::Aborted,
                answer,
            };
            journal.file(&id, &ended, now)?;
            Ok(())
        });
        aborted.await?;
        self.shared.report(session, SessionEvent::Idle);
        Ok(())
    }

    async fn recent(&self, session: &SessionId, plan: &Plan) -> Result<Recent, HostError> {
        self.shared.drivers.until_launch_told(session).await;
        self.shared.sessions.recent(session, plan).await
    }

    async fn messages(&self, session: &SessionId) -> Result<Transcript<'static>, HostError> {
        let recent = self
            .shared
            .sessions
            .recent(session, &Plan::default())
            .await?;
        Ok(recent.transcript)
    }

    async fn exists(&self, session: &SessionId) -> Result<bool, HostError> {
        self.shared.sessions.exists(session).await
    }

    async fn inspect(&self, session: &SessionId, prompt: &PostId) -> Result<Inspection, HostError> {
        let (id, post) = (session.clone(), prompt.clone());
        let seen = self.shared.sessions.read(move |journal| {
            let there = journal.session(&id)?.is_some();
            Ok((
                there,
                journal.end_of(&id, &post)?,
                journal.posted(&id, &post)?,
            ))
        });
        let (mut totals, mut asking) = (None, None);
        let standing = match seen.await? {
            (false, ..) => Standing::Gone,
            (true, Some(Entry::Ended { end, answer, .. }), _) => {
                let whole = self.shared.sessions.whole(session).await?;
                totals = Some(whole.conversation().totals().clone());
                let outcome = Outcome::from(end);
                Standing::Done { outcome, answer }
            }
            (true, _, false) => Standing::Unprompted,
            (true, _, true) => {
                // What the process before this one was asked is open no more.
                asking = Some(self.shared.drivers.questions(session).unwrap_or_default());
                // Only the process that owns the task asks, so the session is driven here from now
                // on.
                self.attend(session);
                Standing::Working
            }
        };
        Ok(Inspection {
            standing,
            totals,
            asking,
        })
    }

    fn counts_at_the_end(&self) -> bool {
        true
    }

    async fn deliver(&self, session: &SessionId, notice: Notice) -> Result<Delivery, HostError> {
        let delivered = self.shared.sessions.deliver(session, notice).await?;
        if delivered == Delivery::Taken {
            self.shared.drivers.tell(session, Command::Look);
        }
        Ok(delivered)
    }

    async fn confirm(&self, session: &SessionId, notice: &PostId) -> Result<bool, HostError> {
        self.shared.sessions.confirm(session, notice).await
    }

    async fn answer(
        &self,
        session: &SessionId,
        question: &str,
        reply: Reply,
    ) -> Result<Answered, HostError> {
        if !self.shared.drivers.take_question(session, question) {
            return Ok(Answered::NotAsked);
        }
        let command = Command::Reply(question.to_owned(), reply);
        if self.shared.drivers.tell(session, command) {
            Ok(Answered::Taken)
        } else {
            Ok(Answered::NotAsked)
        }
    }

    fn subscribe(&self) -> Box<dyn HostEvents> {
        Box::new(Listener(self.shared.reports.subscribe()))
    }

    async fn delete(&self, session: &SessionId) -> Result<(), HostError> {
        self.abort(session).await?;
        let id = session.clone();
        let deleted = self.shared.sessions.write(move |journal| {
            journal.delete_session(&id)?;
            Ok(())
        });
        deleted.await?;
        self.shared.grants.forget(session);
        self.shared.report(session, SessionEvent::Deleted);
        Ok(())
    }
}

struct Listener(broadcast::Receiver<Report>);

#[async_trait]
impl HostEvents for Listener {
    async fn next(&mut self) -> Option<Report> {
        match self.0.recv().await {
            Ok(report) => Some(report),
            Err(broadcast::error::RecvError::Lagged(_)) => Some(Report::Missed),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}
