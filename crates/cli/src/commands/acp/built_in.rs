//! The built-in agent as the protocol needs it: an engine for each folder and mode.

use std::{
    collections::HashMap,
    path::Path,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use asyncagents_core::{
    agent::{End, Filed, Mode, agent_meant},
    budget::Price,
    id::{AgentName, PostId, SessionId},
    lock::lock,
    port::{Host, HostError, Prompt, Session},
};
use asyncagents_engine::{Begin, Engine};
use asyncagents_runtime::Manager;
use asyncagents_server::acp::{AgentError, BuiltInAgent, Place, PromptRun, SessionMode, Used};
use tokio::time;
use uuid::Uuid;

use super::happenings::LiveHappenings;
use crate::{
    commands::CommandContext,
    compose::App,
    exit::{Failure, refused},
    folders::real_folder,
    hosts::KnownHosts,
};

/// The agent that only reads.
const PLAN: &str = "plan";

/// How often it is looked whether another process has left a session.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

pub(super) struct BuiltIn {
    context: CommandContext,
    hosts: Arc<KnownHosts>,
    manager: Manager,
    may_ask: bool,
    /// What a session launches has the permissions of its engine, so each mode has one of its own.
    engines: Mutex<HashMap<(String, &'static str), Engine>>,
    /// The engine that each session was prompted in last.
    driving: Mutex<HashMap<SessionId, Engine>>,
}

impl BuiltIn {
    pub(super) fn new(context: &CommandContext, app: &App, may_ask: bool) -> Self {
        Self {
            context: context.clone(),
            hosts: app.hosts.clone(),
            manager: app.manager.clone(),
            may_ask,
            engines: Mutex::default(),
            driving: Mutex::default(),
        }
    }

    fn usual(&self) -> Mode {
        self.context.config.agent_config.permissions.mode
    }

    /// The agent in a folder, in a mode.
    fn engine(&self, folder: &str, mode: Mode) -> Result<Engine, AgentError> {
        let mut engines = lock(&self.engines);
        let key = (folder.to_owned(), mode.word());
        if let Some(known) = engines.get(&key) {
            return Ok(known.clone());
        }
        // What is asked for waits until it is answered: somebody sits at the editor.
        let parent = Engine::new_session_id();
        let mut settings = self.context.launch_settings(Some(&parent));
        settings.insert("permissions.mode".to_owned(), mode.word().to_owned());
        let host = self.hosts.named(&format!("engine:{folder}"), &settings);
        let host = host.map_err(|error| AgentError::Refused(format!("{error:#}")))?;
        let engine = self.hosts.engine(&host).map_err(told)?;
        engines.insert(key, engine.clone());
        Ok(engine)
    }

    fn engine_of(&self, place: &Place) -> Result<Engine, AgentError> {
        self.engine(&place.folder, place.mode.permission())
    }

    /// The engine that works in a session, or would.
    fn driving(&self, place: &Place) -> Result<Engine, AgentError> {
        let driving = lock(&self.driving).get(&place.session).cloned();
        driving.map_or_else(|| self.engine_of(place), Ok)
    }

    /// The agent of new sessions, as it is called here.
    async fn agent(&self, engine: &Engine) -> Result<AgentName, AgentError> {
        let asked = self.context.config.agent.as_str();
        let known = engine.agents().await.map_err(told)?;
        let meant = agent_meant(asked, known.iter().map(AgentName::as_str));
        Ok(meant.unwrap_or(asked).into())
    }
}

#[async_trait]
impl BuiltInAgent for BuiltIn {
    fn may_ask(&self) -> bool {
        self.may_ask
    }

    fn usual_mode(&self) -> SessionMode {
        SessionMode::Permission(self.usual())
    }

    fn new_session(&self) -> SessionId {
        Engine::new_session_id()
    }

    fn check(&self, folder: &Path) -> Result<String, AgentError> {
        let real = real_folder(folder);
        let real = real.map_err(|error| AgentError::Refused(format!("{error:#}")))?;
        let engine = self.engine(&real, self.usual())?;
        let agent = self.context.config.agent.as_str();
        engine.check(&agent.into(), None).map_err(told)?;
        Ok(real)
    }

    async fn begin(&self, place: &Place, title: String) -> Result<(), AgentError> {
        let engine = self.engine_of(place)?;
        let begin = Begin {
            title,
            agent: self.agent(&engine).await?,
            model: None,
        };
        let begun = engine.begin_as(place.session.clone(), begin).await;
        begun.map(drop).map_err(told)
    }

    async fn session(&self, folder: &str, session: &SessionId) -> Result<Session, AgentError> {
        let engine = self.engine(folder, self.usual())?;
        engine.session(session).await.map_err(told)
    }

    async fn until_free(&self, place: &Place) -> Result<(), AgentError> {
        let engine = self.engine_of(place)?;
        let timeout = self.context.config.lease + Duration::from_secs(1);
        let begun = Instant::now();
        while engine.is_busy(&place.session).await.map_err(told)? {
            if begun.elapsed() > timeout {
                return Err(AgentError::Refused(format!(
                    "another process is working in {}; wait for it, or begin a new session",
                    place.session
                )));
            }
            time::sleep(LOOK_INTERVAL).await;
        }
        Ok(())
    }

    async fn fork(&self, place: &Place) -> Result<SessionId, AgentError> {
        let engine = self.engine_of(place)?;
        engine.fork(&place.session).await.map_err(told)
    }

    async fn entries(&self, folder: &str, session: &SessionId) -> Result<Vec<Filed>, AgentError> {
        let engine = self.engine(folder, self.usual())?;
        engine.entries(session).await.map_err(told)
    }

    async fn prompt(&self, place: &Place, text: String) -> Result<PromptRun, AgentError> {
        let engine = self.engine_of(place)?;
        let session = &place.session;
        let agent = match place.mode {
            SessionMode::Plan => PLAN.into(),
            SessionMode::Permission(_) => engine.session(session).await.map_err(told)?.agent,
        };
        engine.check(&agent, None).map_err(told)?;
        engine.set_mode(session, place.mode.permission());
        lock(&self.driving).insert(session.clone(), engine.clone());
        let happenings = Box::new(LiveHappenings(engine.watch(session)));
        let id = PostId::from(format!("prompt_{}", Uuid::new_v4().simple()));
        let prompt = Prompt {
            id: id.clone(),
            text,
            agent,
            model: None,
            effort: None,
            role: None,
        };
        engine.prompt(session, prompt).await.map_err(told)?;
        let prompt = id;
        Ok(PromptRun { prompt, happenings })
    }

    async fn end_of(&self, place: &Place, prompt: &PostId) -> Result<Option<End>, AgentError> {
        let engine = self.driving(place)?;
        let ended = engine.end_of(&place.session, prompt).await;
        Ok(ended.map_err(told)?.map(|(end, _)| end))
    }

    async fn abort(&self, place: &Place) -> Result<(), AgentError> {
        let engine = self.driving(place)?;
        engine.abort(&place.session).await.map_err(told)
    }

    fn mode_changed(&self, place: &Place) {
        if let Some(engine) = lock(&self.driving).get(&place.session) {
            engine.set_mode(&place.session, place.mode.permission());
        }
    }

    async fn used(&self, place: &Place) -> Result<Used, AgentError> {
        let engine = self.driving(place)?;
        let (own, tokens) = engine.used(&place.session).await.map_err(told)?;
        let below = self.manager.spent_below(&place.session).await;
        let below = below.map_err(|problem| AgentError::Failed(problem.to_string()))?;
        let all = below.plus(own.spent());
        // A model that is not configured any more has no window.
        let (context, window) = engine.window(&place.session).await.unwrap_or_default();
        Ok(Used {
            tokens,
            price: Price::new(all.cost, all.unpriced),
            context,
            window,
        })
    }

    async fn ensure_worker(&self) {
        self.context.attend_tasks(&self.manager).await;
    }
}

/// What the client is told of an error of the agent.
fn told(error: HostError) -> AgentError {
    match error {
        HostError::NoSession(session) => AgentError::NoSession(session),
        error => match refused(error) {
            Failure::Input(error) => AgentError::Refused(format!("{error:#}")),
            failure => AgentError::Failed(failure.to_string()),
        },
    }
}
