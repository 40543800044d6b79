//! Launching, and going on with what was launched.

use std::{sync::Arc, time::Duration};

use asyncagents_core::{
    agent::{Kind, Tools},
    answer::{self, Shown},
    event::{Event, Launched},
    fork::Plan,
    id::{ChainId, SessionId, TaskId},
    lifecycle::Command,
    port::{HostError, Journal, Stored, tools_above},
    refusal::Refusal,
    request::{Caller, LaunchTask, ResumeTask},
    skill::{ErrorCode, Role, Terms, iterations, name_key, tools_below},
    task::{Brief, Context, Place, Task},
    tool_set,
};
use uuid::Uuid;

use super::{Manager, carry_out, find, perform::was_stopped, shown};
use crate::{
    Problem, SkillTrouble,
    hosts::{CALLER_TIMEOUT, OpenHost},
    skill_run::trouble,
};

/// How long a caller may take from a launch to its wait.
const UNTIL_IT_WAITS: Duration = Duration::from_secs(10);

/// A task that was launched or resumed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    /// The task.
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

    /// Whether a caller may launch a task at all, as deep as it is.
    pub(crate) async fn check_depth(&self, caller: &Caller) -> Result<(), SkillTrouble> {
        let (session, host) = match caller {
            Caller::Session { session, host, .. } | Caller::Shell { session, host } => {
                (session.clone(), host)
            }
            Caller::Person => return Ok(()),
        };
        let limit = self.shared.limits(host).depth;
        let depth = self.shared.read(move |journal| {
            let above = journal.task_in(&session)?;
            Ok(above.map_or(0, |above| above.place.depth) + 1)
        });
        match depth.await {
            Ok(depth) if depth <= limit => Ok(()),
            Ok(depth) => Err(trouble(Refusal::TooDeep { depth, limit }.into())),
            Err(problem) => Err(trouble(problem)),
        }
    }

    /// Whether whoever works in a session may use a skill: one that runs a skill itself may have
    /// to do with some.
    pub(crate) async fn check_skill(
        &self,
        session: &SessionId,
        skill: &str,
    ) -> Result<(), SkillTrouble> {
        let session = session.clone();
        let Some(bound) = self
            .shared
            .read(move |journal| Ok(bound(journal, &session)?))
            .await
            .map_err(trouble)?
        else {
            return Ok(());
        };
        let name = name_key(skill);
        let may = |tools: &Tools| {
            let tools = tools.called_here();
            tools.allows(tool_set::SKILL, Kind::Note, &name)
        };
        match bound.below.iter().all(may) {
            true => Ok(()),
            false => Err(SkillTrouble {
                code: ErrorCode::NotInvocable,
                why: format!("the skill `{}` may not use the skill `{skill}`", bound.by),
            }),
        }
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
            let (task, until) = (id.clone(), self.now().after(UNTIL_IT_WAITS));
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
        let (session, host, asked_in, from_shell) = match caller.clone() {
            Caller::Session {
                session,
                host,
                message,
            } => (session, host, message, false),
            Caller::Shell { session, host } => (session, host, None, true),
            Caller::Person => {
                return Err(Problem::Refused(Refusal::Missing {
                    name: "session",
                    hint: "a task is launched from a session, which is told when it has finished",
                }));
            }
        };
        let known = self.shared.hosts.get(&host)?;
        let agent = match known.agent_named(&launch.agent).await? {
            Ok(agent) => agent,
            Err(known) => {
                return Err(Problem::Refused(Refusal::UnknownAgent {
                    agent: launch.agent,
                    known,
                }));
            }
        };
        let chain = ChainId::from(Uuid::new_v4().to_string());
        let (shared, owner) = (self.shared.clone(), self.shared.owner());
        let limits = self.shared.limits(&host);
        let shown = self
            .shared
            .write(move |journal| {
                let now = shared.now();
                let above = journal.task_in(&session)?;
                let mut place = place(session.clone(), above.as_ref());
                if from_shell && above.is_none() {
                    place.root = format!("{}/{id}", place.root).as_str().into();
                }
                if place.depth > limits.depth {
                    return Err(Problem::Refused(Refusal::TooDeep {
                        depth: place.depth,
                        limit: limits.depth,
                    }));
                }
                if let Some(above) = above.as_ref().filter(|above| was_stopped(above)) {
                    let status = above.status();
                    return Err(Problem::Refused(Refusal::CallerStopped { status }));
                }
                if journal.launched_below(&place.root)? >= limits.spawns {
                    let limit = limits.spawns;
                    return Err(Problem::Refused(Refusal::TooMany { limit }));
                }
                let mut budget = launch.budget.or(limits.budget);
                if let Some(what) = budget.nothing_left() {
                    let whose = "its own";
                    return Err(Problem::Refused(Refusal::NoBudget { what, whose }));
                }
                if let Some(above) = &above {
                    // What is kept back for its last turn is not for those below.
                    let work = above.budget.for_work();
                    budget = budget.at_most(work.left(above.spent_in_run(), above.ran(now)));
                }
                if let Some(what) = budget.nothing_left() {
                    let whose = "your";
                    return Err(Problem::Refused(Refusal::NoBudget { what, whose }));
                }
                let from = journal.open_chain(&place.parent)?;
                let above = place.depth.saturating_sub(1);
                let (terms, instructions) =
                    launch.role.clone().map(|role| reduced(role, above)).unzip();
                let launch = launch.clone();
                let launched = Launched {
                    batch: journal.open_batch(&place.parent)?,
                    place,
                    brief: Brief {
                        description: launch.description,
                        agent: agent.clone(),
                        model: launch.model,
                        context: launch.context,
                        host: host.clone(),
                        skill: terms,
                    },
                    prompt: launch.prompt,
                    fork: match launch.context {
                        Context::Fresh => None,
                        Context::Forked => Some(Plan {
                            limits: shared.settings.fork.clone(),
                            mode: shared.settings.fork_mode,
                            asked_in: asked_in.clone(),
                        }),
                    },
                    budget,
                    owner: owner.clone(),
                    chain: Some(chain.clone()),
                    from,
                    instructions,
                };
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
            && self.shared.hosts.serves(&task.brief.host)
            && let Some(host) = self.host_at_the_door(&task)?
            && let Ok(false) = host.ask(CALLER_TIMEOUT, |host| host.exists(session)).await
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
                    let above = tools_above(journal, &task)?;
                    if !bound.below.iter().all(|tools| above.contains(tools)) {
                        let (task, skill) = (task.id, bound.by);
                        return Err(Problem::Refused(Refusal::NotBoundBySkill { task, skill }));
                    }
                }
                let batch = journal.open_batch(&task.place.parent)?;
                let now = shared.now();
                let chain = ChainId::from(Uuid::new_v4().to_string());
                let from = match &asking {
                    Some(session) => journal.open_chain(session)?,
                    None => None,
                };
                let command = Command::Resume {
                    prompt: prompt.clone(),
                    batch,
                    chain,
                    from,
                };
                carry_out(journal, &mut task, command, now, &shared.settings)?;
                // Where it goes on, it is looked for if that ends too.
                if let Some(host) = shared.hosts.heir(&task.brief.host) {
                    journal.append(&mut task, &[Event::Moved { host }], now)?;
                }
                let by = shared.owner();
                if !has_owner(journal, &task)? && task.owner != by {
                    journal.append(&mut task, &[Event::Owned { by }], now)?;
                }
                shown(journal, task)
            })
            .await?;
        self.shared.written();
        Ok(Accepted { shown, ignored })
    }
}

/// Structural: whoever works in the calling session is above, whatever anyone says.
fn place(session: SessionId, above: Option<&Task>) -> Place {
    match above {
        Some(above) => Place {
            parent: session,
            above: Some(above.id.clone()),
            root: above.place.root.clone(),
            depth: above.place.depth + 1,
        },
        None => Place {
            root: session.clone(),
            parent: session,
            above: None,
            depth: 1,
        },
    }
}

/// What binds everything that a session launches.
struct Bound {
    /// The tools of skills, the outermost first.
    below: Vec<Tools>,
    /// The innermost of those skills.
    by: String,
}

/// What binds what a session launches, if a skill works in it or above it.
fn bound(journal: &mut dyn Journal, session: &SessionId) -> Stored<Option<Bound>> {
    let Some(task) = journal.task_in(session)? else {
        return Ok(None);
    };
    let above = tools_above(journal, &task)?;
    let below = tools_below(above, task.brief.skill.as_ref());
    if below.is_empty() {
        return Ok(None);
    }
    let mut nearest = Some(task);
    while let Some(task) = nearest {
        if let Some(terms) = task.brief.skill {
            return Ok(Some(Bound {
                below,
                by: terms.skill,
            }));
        }
        nearest = match &task.place.above {
            Some(above) => journal.task(above)?,
            None => None,
        };
    }
    Ok(None)
}

/// A sub-agent has less of what its skill has, the deeper it is.
fn reduced(role: Role, depth_of_caller: u32) -> (Terms, String) {
    let terms = Terms {
        iterations: iterations(role.terms.iterations, depth_of_caller),
        ..role.terms
    };
    (terms, role.instructions)
}

fn has_owner(journal: &mut dyn Journal, task: &Task) -> Result<bool, Problem> {
    let owners = journal.owners()?;
    Ok(task
        .owner
        .as_ref()
        .is_some_and(|owner| owners.contains(owner)))
}
