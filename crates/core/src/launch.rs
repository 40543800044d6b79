//! Whether a task may be launched, and what it begins with.

use crate::{
    agent::{Kind, Tools},
    budget::Budget,
    event::Launched,
    fork::Plan,
    host_ref::{HostRef, HostSetup},
    id::{ChainId, OwnerId, TaskId},
    lifecycle::was_stopped,
    moment::Moment,
    refusal::Refusal,
    request::{Caller, LaunchTask},
    skill::{Terms, iterations, name_key, tools_below},
    task::{Brief, Context, Place, Task},
    task_limits::TaskLimits,
    tool_set,
};

/// What a launch depends on beside the request, as the transaction that saves it has read it.
#[derive(Debug, Clone)]
pub struct Facts {
    /// Where the task would stand; see [`place`].
    pub place: Place,
    /// The task that works in the calling session.
    pub above: Option<Task>,
    /// How many tasks were ever launched below the same root.
    pub launched_below: u64,
    /// The batch of the parent's unfinished tasks, or a new one.
    pub open_batch: u64,
    /// The run that asks for it.
    pub from: Option<ChainId>,
    /// The name of its first run.
    pub chain: ChainId,
    /// The host that it would run in.
    pub host: HostSetup,
    /// The process that would look after it, if one does.
    pub owner: Option<OwnerId>,
    /// What it inherits if it is forked.
    pub fork: Plan,
}

/// Decides a launch: what the task begins with.
///
/// # Errors
/// When a limit forbids it, or the caller has been stopped.
pub fn launch(
    task: LaunchTask,
    facts: Facts,
    limits: &TaskLimits,
    now: Moment,
) -> Result<Launched, Refusal> {
    let above = facts.above.as_ref();
    check_depth(above, limits)?;
    if let Some(stopped) = above.filter(|above| was_stopped(above)) {
        let status = stopped.status();
        return Err(Refusal::CallerStopped { status });
    }
    if facts.launched_below >= limits.spawns {
        let limit = limits.spawns;
        return Err(Refusal::TooMany { limit });
    }
    let budget = budget(task.budget.or(limits.budget), above, now)?;
    let depth_of_caller = depth(above) - 1;
    let role = task.role.map(|mut role| {
        role.terms.iterations = iterations(role.terms.iterations, depth_of_caller);
        role
    });
    Ok(Launched {
        place: facts.place,
        brief: Brief {
            description: task.description,
            agent: task.agent,
            model: task.model,
            effort: task.effort,
            context: task.context,
            host: facts.host,
        },
        prompt: task.prompt,
        fork: match task.context {
            Context::Fresh => None,
            Context::Forked => Some(facts.fork),
        },
        budget,
        batch: facts.open_batch,
        owner: facts.owner,
        chain: Some(facts.chain),
        from: facts.from,
        role,
    })
}

/// What the task may spend: no more than the one above has left for its own work.
fn budget(own: Budget, above: Option<&Task>, now: Moment) -> Result<Budget, Refusal> {
    if let Some(what) = own.nothing_left() {
        let whose = "its own";
        return Err(Refusal::NoBudget { what, whose });
    }
    let Some(above) = above else {
        return Ok(own);
    };
    // What is kept back for its last turn is not for those below.
    let work = above.budget.for_work();
    let budget = own.at_most(work.left(above.spent_in_run(), above.ran(now)));
    match budget.nothing_left() {
        Some(what) => Err(Refusal::NoBudget {
            what,
            whose: "your",
        }),
        None => Ok(budget),
    }
}

/// Where a task stands that a caller launches. Structural: the task that works in the calling
/// session is above, whatever the caller says. Each launch from a shell is a tree of its own.
///
/// # Errors
/// When the caller has no session to launch from.
pub fn place(
    id: &TaskId,
    caller: &Caller,
    above: Option<&Task>,
    host: &HostRef,
) -> Result<Place, Refusal> {
    let (session, own) = caller.launches_from()?;
    let root = match (above, caller) {
        (Some(above), _) => above.place.root.clone(),
        (None, Caller::Shell { .. }) => format!("{session}/{id}").as_str().into(),
        (None, Caller::Session { .. } | Caller::Person | Caller::Script) => session.clone(),
    };
    let is_elsewhere = |of: &&HostRef| *of != host;
    let above_in = above.map(|above| &above.brief.host.host);
    let outside = match above {
        Some(above) => above.place.outside.as_ref().or(above_in),
        // The sessions of shells are in no host: whichever works for them delivers to them.
        None if matches!(caller, Caller::Shell { .. }) => None,
        None => Some(caller.outside().unwrap_or(&own.host)),
    };
    Ok(Place {
        parent: session.clone(),
        above: above.map(|above| above.id.clone()),
        root,
        depth: depth(above),
        outside: outside.filter(is_elsewhere).cloned(),
        above_in: above_in.filter(is_elsewhere).cloned(),
    })
}

/// Whether a task may be launched below `above`, as deep as that is.
///
/// # Errors
/// When it may not.
pub fn check_depth(above: Option<&Task>, limits: &TaskLimits) -> Result<(), Refusal> {
    let (depth, limit) = (depth(above), limits.depth);
    if depth > limit {
        return Err(Refusal::TooDeep { depth, limit });
    }
    Ok(())
}

fn depth(above: Option<&Task>) -> u32 {
    above.map_or(0, |above| above.place.depth) + 1
}

/// What limits everything that is launched from a session in which a skill works, or above it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bound {
    /// The tools of the skills, the outermost first.
    tools: Vec<Tools>,
    /// The innermost skill.
    by: String,
}

impl Bound {
    /// The limits of these skills, the innermost first; nothing if they have none.
    pub fn of(skills: &[Terms]) -> Option<Self> {
        let tools = tools_below(skills);
        let innermost = skills.first().filter(|_| !tools.is_empty())?;
        Some(Self {
            tools,
            by: innermost.skill.clone(),
        })
    }

    /// Whether the session may invoke a skill: one that itself runs a skill is limited to the
    /// skills in its `allowed-tools`.
    ///
    /// # Errors
    /// When it may not.
    pub fn check_skill(&self, skill: &str) -> Result<(), Refusal> {
        let name = name_key(skill);
        let allows = |tools: &Tools| {
            let tools = tools.called_here();
            tools.allows(tool_set::SKILL, Kind::Note, &name)
        };
        if self.tools.iter().all(allows) {
            return Ok(());
        }
        Err(Refusal::SkillNotAllowed {
            by: self.by.clone(),
            skill: skill.to_owned(),
        })
    }

    /// Whether the session may go on with a task, which the skills above that one limit to `above`.
    ///
    /// # Errors
    /// When it may not: the task may do what the session may not do itself.
    pub fn check_resume(&self, task: &TaskId, above: &[Tools]) -> Result<(), Refusal> {
        if self.tools.iter().all(|tools| above.contains(tools)) {
            return Ok(());
        }
        Err(Refusal::NotBoundBySkill {
            task: task.clone(),
            skill: self.by.clone(),
        })
    }
}
