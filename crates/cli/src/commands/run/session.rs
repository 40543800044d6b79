//! Which session a run is in: a new one, or one that goes on.

use std::time::{Duration, Instant};

use anyhow::anyhow;
use asyncagents_core::{
    budget::Spent,
    id::{AgentName, ModelName, PostId, SessionId},
    port::{Host, Prompt},
};
use asyncagents_engine::{Begin, Engine, LiveEvents};
use asyncagents_runtime::{Manager, Problem};
use tokio::time;
use uuid::Uuid;

use super::{Wanted, totals::spent};
use crate::{
    commands::CommandContext,
    exit::{Failure, no_session, refused},
    screen::{FRAME, Screen},
};

/// So much of a prompt is the title of its session.
const TITLE_CHARS: usize = 80;

/// The sessions of a folder, for one run.
pub(super) struct Sessions<'a> {
    pub(super) context: &'a CommandContext,
    pub(super) screen: &'a Screen,
    pub(super) manager: &'a Manager,
    pub(super) engine: &'a Engine,
}

/// A run that has begun.
pub(super) struct Begun {
    pub(super) session: SessionId,
    pub(super) prompt: PostId,
    pub(super) live: LiveEvents,
    /// What the session and its tasks had used before.
    pub(super) before: Spent,
}

impl Sessions<'_> {
    /// The session and the prompt to follow.
    pub(super) async fn begin(&self, wanted: &Wanted) -> Result<Begun, Failure> {
        let known = self.named(wanted).await?;
        let mut agent = wanted.args.agent.clone();
        if let Some(session) = &known {
            agent = Some(self.check(session, wanted).await?);
            self.until_free(session).await?;
        }
        let agent = agent.unwrap_or(self.context.config.agent.clone());
        let session = match (known, &wanted.prompt) {
            (Some(session), _) => session,
            (None, Some(text)) => self.new_session(text, &agent, wanted).await?,
            (None, None) => return Err(Failure::Input(anyhow!("say what to do"))),
        };
        let before = spent(self.manager, self.engine, &session).await?;
        let live = self.engine.watch(&session);
        let prompt = match &wanted.prompt {
            Some(text) => self.prompt(&session, text, agent, wanted).await?,
            None => self.go_on(&session).await?,
        };
        Ok(Begun {
            session,
            prompt,
            live,
            before,
        })
    }

    /// The session that is asked for, if one is.
    async fn named(&self, wanted: &Wanted) -> Result<Option<SessionId>, Failure> {
        if let Some(session) = &wanted.args.session {
            return Ok(Some(self.manager.session_named(session).await?));
        }
        if !wanted.args.go_on {
            return Ok(None);
        }
        let newest = self.engine.newest().await.map_err(Problem::from)?;
        let none = || Failure::Input(anyhow!("this folder has no session to go on with"));
        newest.ok_or_else(none).map(Some)
    }

    /// Checks that a run can continue in a session; returns its agent.
    async fn check(&self, session: &SessionId, wanted: &Wanted) -> Result<String, Failure> {
        let known = self.engine.session(session).await.map_err(no_session)?;
        if known.task.is_some() {
            return Err(Failure::Input(anyhow!(
                "{session} is the session of a background task; `asyncagents resume` goes on with it"
            )));
        }
        let agent = wanted.args.agent.clone().unwrap_or(known.agent.to_string());
        if let Some(model) = &wanted.args.model {
            let checked = self.engine.check(&agent.as_str().into(), Some(model));
            checked.map_err(refused)?;
        }
        Ok(agent)
    }

    async fn new_session(
        &self,
        text: &str,
        agent: &str,
        wanted: &Wanted,
    ) -> Result<SessionId, Failure> {
        let first_line = text.lines().next().unwrap_or_default();
        let begin = Begin {
            title: first_line.chars().take(TITLE_CHARS).collect(),
            agent: agent.into(),
            model: wanted.args.model.clone(),
        };
        self.engine.begin(begin).await.map_err(refused)
    }

    /// Goes on with what was interrupted.
    async fn go_on(&self, session: &SessionId) -> Result<PostId, Failure> {
        let prompt = self.engine.go_on(session).await.map_err(no_session)?;
        prompt.ok_or_else(|| {
            Failure::Input(anyhow!(
                "{session} has nothing left to do; say what to do next, as in \
                 asyncagents run --continue \"go on\""
            ))
        })
    }

    async fn prompt(
        &self,
        session: &SessionId,
        text: &str,
        agent: String,
        wanted: &Wanted,
    ) -> Result<PostId, Failure> {
        let id = PostId::from(format!("prompt_{}", Uuid::new_v4().simple()));
        let prompt = Prompt {
            id: id.clone(),
            text: text.to_owned(),
            agent: AgentName::from(agent),
            model: wanted.args.model.as_deref().map(ModelName::from),
            effort: None,
            role: None,
        };
        let sent = self.engine.prompt(session, prompt).await;
        sent.map_err(no_session)?;
        Ok(id)
    }

    /// Waits until no process works in a session any more. The lease of one that was killed there
    /// expires.
    async fn until_free(&self, session: &SessionId) -> Result<(), Failure> {
        let timeout = self.context.config.lease + Duration::from_secs(1);
        let begun = Instant::now();
        while self.engine.is_busy(session).await.map_err(Problem::from)? {
            if begun.elapsed() > timeout {
                return Err(Failure::Input(anyhow!(
                    "another process is working in {session}; wait for it, or begin a new session"
                )));
            }
            if begun.elapsed() < FRAME {
                self.screen
                    .remark("waiting for the process that worked in this session");
            }
            time::sleep(FRAME).await;
        }
        Ok(())
    }
}
