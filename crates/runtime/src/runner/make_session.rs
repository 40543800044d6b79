//! Makes a child's session, with what it inherits of its parent's.

use std::{fmt::Display, time::Duration};

use asyncagents_core::{
    agent::Tools,
    fork::{Fork, Plan, fork},
    id::SessionId,
    lifecycle::Command,
    port::{HostError, Inheritance, NewSession, tools_above},
    task::{Context, Task},
    tokens,
};
use tokio::{task::spawn_blocking, time};

use super::{Origin, Run, RunStopped};
use crate::hosts::OpenHost;

/// For how long a host that cannot be reached is asked again. A worker that ends with its host has
/// let go of the task by then, and another goes on with it.
const RETRY_TIMEOUT: Duration = Duration::from_secs(15);
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Why there is no session.
pub(super) struct NotMade {
    pub(super) why: String,
    /// The host could not be reached, which may pass. A session is made once, however often it is
    /// asked for.
    is_transient: bool,
    /// A session that was made for it meanwhile.
    unused: Option<SessionId>,
}

impl NotMade {
    fn host(what: &str) -> impl Fn(HostError) -> Self {
        move |error| Self {
            why: format!("{what}: {error}"),
            is_transient: matches!(error, HostError::Unreachable(_)),
            unused: None,
        }
    }
}

impl From<String> for NotMade {
    fn from(why: String) -> Self {
        Self {
            why,
            is_transient: false,
            unused: None,
        }
    }
}

impl Run {
    /// Makes the child's session, with what it inherits. A failure ends the task; it never
    /// becomes a task that knows less than was asked for.
    pub(super) async fn make_session(&mut self) -> Result<SessionId, RunStopped> {
        let begun = time::Instant::now();
        let mut pause = FIRST_PAUSE;
        let mut first_attempt = self.is_first_attempt();
        let mut unused = None;
        loop {
            match self.try_make_session(first_attempt).await {
                Ok(session) => {
                    let made = Command::SessionMade(session.clone());
                    self.record(made).await?;
                    return Ok(session);
                }
                Err(not_made) if not_made.is_transient && begun.elapsed() < RETRY_TIMEOUT => {
                    let why = not_made.why;
                    tracing::warn!(task = %self.task.id, why, "host unavailable, retrying");
                    first_attempt = false;
                    unused = not_made.unused.or(unused);
                    self.pause(pause).await?;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                Err(not_made) => {
                    if let Some(session) = not_made.unused.or(unused) {
                        self.delete_unused(&session).await;
                    }
                    return Err(self.give_up(not_made.why).await);
                }
            }
        }
    }

    /// Whether nobody can have made the session: this worker has just begun the task, and no other
    /// can have taken it over.
    fn is_first_attempt(&self) -> bool {
        self.got == Origin::Started && self.task.run == 0 && self.shared.has_own_lease()
    }

    async fn try_make_session(&self, first_attempt: bool) -> Result<SessionId, NotMade> {
        let Task {
            id, place, brief, ..
        } = &self.task;
        let new = NewSession {
            task: id.clone(),
            parent: place.parent.clone(),
            title: brief.description.clone(),
            agent: brief.agent.clone(),
            model: self.task.model().cloned(),
            effort: brief.effort,
            may_delegate: place.depth < self.limits.depth,
            role: self.role.clone(),
            within: self.within().await?,
            first_attempt,
        };
        let failed = NotMade::host("its session could not be made");
        let host = &self.host;
        if brief.context == Context::Fresh {
            return host.ask(|host| host.create(new)).await.map_err(failed);
        }
        let plan = self.launched_with(|launched| launched.fork).await;
        let plan = plan.map_err(|problem| problem.to_string())?;
        let plan = plan.unwrap_or_default();
        if place.parent_outside().is_none() {
            let branched = host.ask(|host| host.branch(new.clone(), &plan)).await;
            if let Some(session) = branched.map_err(&failed)? {
                return Ok(session);
            }
        }
        let begun = time::Instant::now();
        let create = async {
            let created = host.ask(|host| host.create(new)).await;
            (created, begun.elapsed())
        };
        let ((session, created), what) = tokio::join!(create, self.inherit(plan));
        let what = match what {
            Ok(what) => what,
            Err(not_made) => {
                let unused = session.ok();
                return Err(NotMade { unused, ..not_made });
            }
        };
        let session = session.map_err(failed)?;
        let begun = time::Instant::now();
        let injected = host.ask(|host| host.inject(&session, what)).await;
        injected.map_err(NotMade::host("its context could not be passed on"))?;
        let injected = begun.elapsed();
        tracing::debug!(task = %id, ?created, ?injected, "context injected");
        Ok(session)
    }

    /// Deletes the session of a child for which there is nothing to inherit.
    async fn delete_unused(&self, session: &SessionId) {
        if let Err(error) = self.host.ask(|host| host.delete(session)).await {
            tracing::warn!(task = %self.task.id, %session, %error, "deleting the unused session failed");
        }
    }

    /// The tools of the skills above the task.
    async fn within(&self) -> Result<Vec<Tools>, String> {
        let task = self.task.clone();
        let read = self
            .shared
            .read(move |journal| Ok(tools_above(journal, &task)?));
        read.await.map_err(|problem| problem.to_string())
    }

    /// The parent's conversation, through the fork pipeline.
    async fn inherit(&self, plan: Plan) -> Result<Inheritance, NotMade> {
        let place = &self.task.place;
        let outside = place
            .parent_outside()
            .map(|host| self.shared.hosts.get(&host.clone().into()));
        let outside = outside.transpose();
        let outside = outside.map_err(NotMade::host("the conversation could not be read"))?;
        let host = outside.as_ref().unwrap_or(&self.host);
        let forked = self.forked(host, &place.parent, plan).await?;
        Ok(Inheritance {
            id: self.task.id.inheritance(),
            preamble: forked.preamble,
            context: forked.context,
        })
    }

    /// A session's conversation, through the fork pipeline.
    pub(super) async fn forked(
        &self,
        host: &OpenHost,
        session: &SessionId,
        plan: Plan,
    ) -> Result<Fork, NotMade> {
        let begun = time::Instant::now();
        let recent = host.ask(|host| host.recent(session, &plan)).await;
        let recent = recent.map_err(NotMade::host("the conversation could not be read"))?;
        let read = begun.elapsed();
        let fork = move || {
            let parent = recent.into_parent();
            fork(&parent, &plan.limits, tokens::o200k)
        };
        let forked = spawn_blocking(fork);
        let failed = |error: &dyn Display| format!("the conversation could not be forked: {error}");
        let forked = forked.await.map_err(|error| failed(&error))?;
        let forked = forked.map_err(|error| failed(&error))?;
        let cut = begun.elapsed().saturating_sub(read);
        tracing::debug!(task = %self.task.id, ?read, ?cut, "conversation forked");
        Ok(forked)
    }
}
