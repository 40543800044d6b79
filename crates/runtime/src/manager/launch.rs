//! Launching, and going on with what was launched.

use std::{sync::Arc, time::Duration};

use asyncagents_core::{
    answer::{self, Shown},
    fork::Plan,
    host_ref::HostSetup,
    id::{ChainId, TaskId},
    launch::{self, Facts},
    lifecycle::Command,
    port::{HostError, Journal, bound, tools_above},
    refusal::Refusal,
    request::{Caller, LaunchTask, ResumeTask},
    task::Task,
};
use uuid::Uuid;

use super::{Manager, check_model::ModelCheck, find, shown};
use crate::{
    ForkSettings, Problem,
    hosts::{CALLER_TIMEOUT, OpenHost},
    shared::Shared,
};

/// How long a caller may take from a launch to its wait.
const WAIT_TIMEOUT: Duration = Duration::from_secs(10);

/// A task that was launched or resumed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    pub shown: Shown,
    /// What the caller said and does not apply.
    pub ignored: Vec<&'static str>,
}

impl Accepted {
    /// What the caller is answered.
    pub fn text(&self, prefix: &str) -> String {
        match self.shown.task.run {
            0 => answer::launched(&self.shown, prefix),
            _ => answer::resumed(&self.shown, &self.ignored, prefix),
        }
    }
}

impl Manager {
    /// Launches a task.
    ///
    /// # Errors
    /// When the request is refused; nothing is created then.
    pub async fn launch(&self, caller: &Caller, launch: LaunchTask) -> Result<Accepted, Problem> {
        let id = TaskId::from_random(Uuid::new_v4().as_u128());
        self.launch_as(caller, launch, id).await
    }

    /// Launches a task for a caller who waits for it from the first moment, so that it is not
    /// also told, however soon the task ends.
    pub(crate) async fn launch_awaited(
        &self,
        caller: &Caller,
        launch: LaunchTask,
    ) -> Result<Accepted, Problem> {
        let id = TaskId::from_random(Uuid::new_v4().as_u128());
        if let Some(session) = caller.session().cloned() {
            let (task, until) = (id.clone(), self.now().after(WAIT_TIMEOUT));
            self.shared
                .write(move |journal| Ok(journal.wait(&task, &session, until)?))
                .await?;
        }
        self.launch_as(caller, launch, id).await
    }

    /// Launches a task under a name that is known already.
    pub(crate) async fn launch_as(
        &self,
        caller: &Caller,
        launch: LaunchTask,
        id: TaskId,
    ) -> Result<Accepted, Problem> {
        let (parent, own) = caller.launches_from()?;
        let named = match &launch.host {
            Some(name) => Some(self.shared.hosts.source.named(name, own).await?),
            None => None,
        };
        let host = named.as_ref().unwrap_or(own);
        let known = self.shared.hosts.get(host)?;
        let agent = match known.agent_named(&launch.agent).await? {
            Ok(agent) => agent,
            Err(known) => {
                let agent = launch.agent;
                return Err(Refusal::UnknownAgent { agent, known }.into());
            }
        };
        let check = ModelCheck {
            policy: self.shared.model_policy(host),
            host: &known,
            parent,
        };
        let launch = check.check(LaunchTask { agent, ..launch }).await?;
        let limits = self.shared.limits(&host.host);
        let ForkSettings { limits: kept, mode } = self.shared.fork(&host.host);
        let fork = Plan {
            limits: kept,
            mode,
            asked_in: caller.message().map(str::to_owned),
        };
        let (shared, caller, host) = (self.shared.clone(), caller.clone(), host.clone());
        let shown = self
            .shared
            .write(move |journal| {
                let now = shared.now();
                let facts = facts(journal, &shared, &caller, (&id, &host), &fork)?;
                let launched = launch::launch(launch.clone(), facts, &limits, now)?;
                let task = journal.insert(id.clone(), launched, now)?;
                shown(journal, task)
            })
            .await?;
        self.shared.written();
        Ok(Accepted {
            shown,
            ignored: Vec::new(),
        })
    }

    /// The host of a task, if it can be reached now. One that refuses will do so again.
    fn host_at_the_door(&self, task: &Task) -> Result<Option<Arc<OpenHost>>, Problem> {
        match self.shared.hosts.get(&task.brief.host) {
            Ok(host) => Ok(Some(host)),
            Err(HostError::Refused(why)) => Err(HostError::Refused(why).into()),
            Err(HostError::Unreachable(_) | HostError::NoSession(_)) => Ok(None),
        }
    }

    /// Goes on with a finished task.
    ///
    /// # Errors
    /// When the request is refused; nothing has changed then.
    pub async fn resume(&self, caller: &Caller, resume: ResumeTask) -> Result<Accepted, Problem> {
        let ResumeTask {
            task: asked,
            prompt,
            ignored,
        } = resume;
        let (who, which) = (caller.clone(), asked.clone());
        let task = self
            .shared
            .read(move |journal| find(journal, &who, &which))
            .await?;
        if !task.is_live()
            && let Some(session) = &task.session
            && self.shared.serves(&task.brief.host.host)
            && let Some(host) = self.host_at_the_door(&task)?
            && let Ok(false) = host
                .ask_within(CALLER_TIMEOUT, |host| host.exists(session))
                .await
        {
            return Err(Problem::Refused(Refusal::SessionGone {
                session: session.clone(),
                task: task.id,
            }));
        }
        let (shared, asking) = (self.shared.clone(), caller.session().cloned());
        let shown = self
            .shared
            .write(move |journal| {
                let Some(mut task) = journal.task(&task.id)?.filter(|task| !task.cleared) else {
                    return Err(Problem::Refused(Refusal::UnknownTask {
                        asked: asked.clone(),
                    }));
                };
                if let Some(session) = &asking
                    && let Some(bound) = bound(journal, session)?
                {
                    bound.check_resume(&task.id, &tools_above(journal, &task)?)?;
                }
                let batch = journal.open_batch(&task.place.parent)?;
                let from = match &asking {
                    Some(session) => journal.open_chain(session)?,
                    None => None,
                };
                let command = Command::Resume {
                    prompt: prompt.clone(),
                    batch,
                    chain: new_chain(),
                    from,
                };
                shared.carry_out(journal, &mut task, command)?;
                // Where it goes on, it is looked for if that ends too.
                if let Some(host) = shared.hosts.source.successor(&task.brief.host.host) {
                    let command = Command::Move { host };
                    shared.carry_out(journal, &mut task, command)?;
                }
                let by = shared.owner_of_launched();
                if !has_owner(journal, &task)? && task.owner != by {
                    let command = Command::Assign { to: by };
                    shared.carry_out(journal, &mut task, command)?;
                }
                shown(journal, task)
            })
            .await?;
        self.shared.written();
        Ok(Accepted { shown, ignored })
    }
}

/// Reads what a launch depends on.
fn facts(
    journal: &mut dyn Journal,
    shared: &Shared,
    caller: &Caller,
    (id, host): (&TaskId, &HostSetup),
    fork: &Plan,
) -> Result<Facts, Problem> {
    let (session, _) = caller.launches_from()?;
    let above = journal.task_in(session)?;
    let place = launch::place(id, caller, above.as_ref(), &host.host)?;
    Ok(Facts {
        launched_below: journal.launched_below(&place.root)?,
        open_batch: journal.open_batch(session)?,
        from: journal.open_chain(session)?,
        chain: new_chain(),
        host: host.clone(),
        owner: shared.owner_of_launched(),
        fork: fork.clone(),
        above,
        place,
    })
}

fn new_chain() -> ChainId {
    ChainId::from(Uuid::new_v4().to_string())
}

fn has_owner(journal: &mut dyn Journal, task: &Task) -> Result<bool, Problem> {
    let owners = journal.owners()?;
    Ok(task
        .owner
        .as_ref()
        .is_some_and(|owner| owners.contains(owner)))
}
