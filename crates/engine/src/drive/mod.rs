//! Drives one session: does what comes next, saves what came of it, and looks again.

mod ask;
mod await_slot;
mod compact;
mod fall_back;
mod last_turn;
mod save;
mod use_tool;

use std::{sync::Arc, time::Duration};

use asyncagents_core::{
    agent::{
        Around, Call, Conversation, Effort, Entry, Next, Profile, Stop, ToolOutcome, ToolSpec,
        Tools, UsedUp, next,
    },
    id::{AgentName, OwnerId, SessionId, TaskId},
    lock::lock,
    port::{Journal, Session, SessionEvent, is_driven_elsewhere, tools_above},
    shorten::{one_line, shorten},
    task::Task,
};
use asyncagents_models::{Model, ModelError};
use asyncagents_tools::Toolbox;
use tokio::{task::spawn_blocking, time};
use uuid::Uuid;

use self::{compact::SummaryOf, last_turn::RunBudget};
use crate::{
    Live,
    cache_key::cache_key,
    drivers::{DriverHandle, Halt},
    profiles::{Profiles, restricted},
    record::SessionError,
    shared::Shared,
};

/// How often a working session reports that it is alive.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// How often a session that waits for tasks looks at what was written, at most.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// How much of a question that nobody has answered is in the reason for the end.
const MOST_OF_QUESTION: usize = 200;

/// How long a session is left alone after its driver has failed.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Drives a session until it has nothing to do, or is halted.
pub(super) async fn drive(guard: SessionGuard) {
    let SessionGuard { shared, id, handle } = &guard;
    let heartbeats = async {
        loop {
            time::sleep(HEARTBEAT).await;
            shared.report(id, SessionEvent::Alive);
        }
    };
    let steps = async {
        let mut driver = Driver::enter(shared.clone(), id, handle.clone()).await?;
        while driver.step().await? {}
        Ok(())
    };
    let driven = tokio::select! {
        driven = steps => driven,
        () = heartbeats => Ok(()),
    };
    match driven {
        Ok(()) | Err(DriveError::Halted) => {}
        Err(DriveError::Failed(SessionError::NotOurs | SessionError::Busy)) => {
            tracing::warn!(session = %id, "another process drives the session");
            time::sleep(RETRY_AFTER).await;
        }
        Err(DriveError::Failed(SessionError::Store(error))) => {
            tracing::error!(session = %id, %error, "the store failed, the driver stops");
            time::sleep(RETRY_AFTER).await;
        }
    }
}

/// A driver's hold on its session. Dropping it reports that the session is idle.
pub(crate) struct SessionGuard {
    pub(crate) shared: Arc<Shared>,
    pub(crate) id: SessionId,
    pub(crate) handle: Arc<DriverHandle>,
}

impl Drop for SessionGuard {
    fn drop(&mut self) {
        self.shared.drivers.release(&self.id, &self.handle);
        // The next driver may be there already.
        if self.shared.drivers.get(&self.id).is_none() {
            self.shared.rest(&self.id);
        }
        self.shared.report(&self.id, SessionEvent::Idle);
    }
}

/// Why a driver stops before its session has nothing to do.
enum DriveError {
    /// The driver was told to stop.
    Halted,
    /// What happened could not be saved.
    Failed(SessionError),
}

type Driven<T = ()> = Result<T, DriveError>;

impl From<SessionError> for DriveError {
    fn from(error: SessionError) -> Self {
        DriveError::Failed(error)
    }
}

/// The driver of a session: what it knows, and what it does next.
struct Driver {
    shared: Arc<Shared>,
    handle: Arc<DriverHandle>,
    session: Session,
    /// Or why the session's folder cannot be used, for the model.
    toolbox: Result<Toolbox, String>,
    /// The tools of the skills above the session's task, each of which restricts it.
    outer_tools: Vec<Tools>,
    /// How hard the model thinks, if the launcher of the session's task says so.
    effort: Option<Effort>,
    /// The outermost task above the session, if it is for one.
    tree: Option<TaskId>,
    /// How deep the session's task is; 0 for a session of a person.
    depth: u32,
    tools: Vec<ToolSpec>,
    /// The names of the tools for background tasks.
    delegation: Vec<String>,
    profiles: Profiles,
    conversation: Conversation,
    /// The name under which the driver writes. The next driver has another.
    name: String,
    /// What the provider's cache knows requests by that begin as these do.
    cache_key: String,
    /// Background tasks are unfinished, as far as is known.
    open_tasks: bool,
    /// The store's version when that was found out.
    version: Option<i64>,
    /// The run is over, and another process may go on with the session.
    released: bool,
    /// The window was full, and the conversation has been compacted for it.
    compacted_for_window: bool,
    /// When the iteration has to be over, for a skill that limits it.
    iteration_deadline: Option<time::Instant>,
    /// What the session's task may use, as of the last step.
    run_budget: Option<RunBudget>,
    /// What it has asked for without an answer until the time for the task was up.
    unanswered: Option<String>,
    /// The newest answer is not on disk yet: that it begins a call will be, with it.
    answer_unsynced: bool,
}

impl Driver {
    /// Takes the session over from the driver before.
    async fn enter(shared: Arc<Shared>, id: &SessionId, handle: Arc<DriverHandle>) -> Driven<Self> {
        let name = claim(&shared, id).await?;
        let taken = shared.whole(id).await?.ok_or(SessionError::NotOurs)?;
        let conversation = taken.conversation();
        let session = taken.session;
        let profiles = shared.profiles();
        let OfTask {
            outer_tools,
            effort,
            tree,
            depth,
        } = of_task(&shared, &session).await?;
        let profile = known_or_read_only(&profiles, &session.agent);
        let allowed = restricted(profile.tools, &outer_tools, session.terms.as_ref());
        // Skills are looked for in folders.
        let (engine, delegates) = (shared.clone(), session.delegates);
        let found = spawn_blocking(move || engine.tools(delegates, &allowed)).await;
        let (tools, delegation) = found.map_err(|_| DriveError::Halted)?;
        let cache_key = cache_key(&session.system, &tools, &conversation);
        let toolbox = shared.toolbox_of(&session);
        let driver = Self {
            toolbox: toolbox
                .map_err(|error| format!("the folder of this session cannot be used: {error}")),
            tools,
            delegation,
            cache_key,
            shared,
            handle,
            session,
            outer_tools,
            effort,
            tree,
            depth,
            profiles,
            conversation,
            name,
            open_tasks: false,
            version: None,
            released: false,
            compacted_for_window: false,
            iteration_deadline: None,
            run_budget: None,
            unanswered: None,
            answer_unsynced: false,
        };
        driver.publish();
        driver.report_fallbacks();
        Ok(driver)
    }

    /// The agent of the newest prompt. What the model is offered is the session's, so that requests
    /// begin alike; what it may do is this agent's.
    fn acting(&self) -> Profile {
        let agent = self.conversation.agent().unwrap_or(&self.session.agent);
        let mut profile = known_or_read_only(&self.profiles, agent);
        let terms = self.session.terms.as_ref();
        profile.tools = restricted(profile.tools, &self.outer_tools, terms);
        if let Some(terms) = terms {
            let most = [profile.max_turns, self.shared.settings.max_turns];
            let least = most.into_iter().flatten().fold(terms.iterations, u64::min);
            profile.max_turns = Some(least);
        }
        profile
    }

    /// How often a call has failed in this run.
    fn failures(&self, call: &Call) -> u32 {
        let run = self.conversation.run();
        run.map_or(0, |run| run.failures(call))
    }

    /// Whether the newest answer was cut at the model's greatest length.
    fn was_cut(&self) -> bool {
        let last = self.conversation.last();
        last.is_some_and(|last| last.stop == Stop::Length)
    }

    fn publish(&self) {
        *lock(&self.handle.totals) = Some(self.conversation.totals().clone());
    }

    /// Does what comes next. False when there is nothing.
    async fn step(&mut self) -> Driven<bool> {
        if *self.handle.halt.borrow() != Halt::Go {
            self.sync_answer().await?;
            return Err(DriveError::Halted);
        }
        self.run_budget = self.run_budget().await?;
        let model = self.model();
        let most_answers = self.acting().max_turns.or(self.shared.settings.max_turns);
        let run_budget = self.run_budget.as_ref();
        let around = Around {
            tasks: self.open_tasks,
            wait: self.waits(),
            compact_from: model
                .as_ref()
                .map_or(u64::MAX, |model| self.compact_from(model)),
            most_answers: [most_answers, run_budget.and_then(RunBudget::turns)]
                .into_iter()
                .flatten()
                .min(),
            most_same_calls: self.shared.settings.same_calls,
            used_up: self.used_up(),
        };
        let next = next(&self.conversation, &around);
        if self.released && next != Next::Rest {
            self.name = claim(&self.shared, &self.session.id).await?;
            self.released = false;
        }
        if !matches!(next, Next::Run(_)) {
            self.sync_answer().await?;
        }
        match next {
            Next::Ask => match model {
                Ok(model) => self.ask(&model).await?,
                Err(error) => self.model_failed(&error).await?,
            },
            Next::Compact => match model {
                Ok(model) => self.compact(&model, SummaryOf::Whole).await?,
                Err(error) => self.model_failed(&error).await?,
            },
            Next::Run(calls) => self.run_tools(calls).await?,
            Next::Lost(calls) => {
                let lost = |call: Call| Entry::ToolEnded {
                    call: call.id,
                    outcome: ToolOutcome::Unknown,
                };
                self.save(calls.into_iter().map(lost).collect()).await?;
            }
            Next::Nudge(text) => self.save(vec![Entry::Nudged { text }]).await?,
            Next::LastTurn { why, fails } => {
                self.save(vec![Entry::LastTurn { why, fails }]).await?;
            }
            Next::Wait => self.wait().await?,
            Next::Finish(end) => self.finish(end).await?,
            Next::Rest => {
                if self.shared.drivers.may_end(&self.session.id, &self.handle) {
                    return Ok(false);
                }
                self.catch_up().await?;
            }
        }
        Ok(true)
    }

    /// What of the budget is used up. Time that went by with waiting for an answer is told so.
    fn used_up(&self) -> UsedUp {
        let Some(budget) = &self.run_budget else {
            return UsedUp::default();
        };
        let mut used_up = budget.used_up(&self.conversation);
        if let (Some(why), Some(question)) = (&mut used_up.time, &self.unanswered) {
            let question = shorten(&one_line(question), MOST_OF_QUESTION, "…");
            why.push_str(&format!(", and nobody had answered: {question}"));
        }
        used_up
    }

    fn model(&self) -> Result<Model, ModelError> {
        let name = self.conversation.model().unwrap_or(&self.session.model);
        self.shared.models.resolve(name.as_str())
    }

    /// A task's run always waits for the tasks below it.
    fn waits(&self) -> bool {
        self.shared.settings.wait_for_tasks || self.session.task.is_some()
    }

    fn compact_from(&self, model: &Model) -> u64 {
        let share = model.window() / 100 * self.shared.settings.compact_at;
        let room = model.window().saturating_sub(model.max_output());
        share.min(room.max(model.window() / 2))
    }

    /// When the work has to be over, for the last turn to begin. Without a single answer there
    /// is nothing to sum up.
    fn work_deadline(&self) -> Option<time::Instant> {
        let run = self.conversation.run()?;
        let worked = run.answers > 0 && run.last_turn.is_none();
        self.run_budget.as_ref().filter(|_| worked)?.work_deadline()
    }

    /// Waits until something may have changed about the tasks of the session.
    async fn wait(&mut self) -> Driven {
        self.show(Live::Waiting);
        let store = &self.shared.store;
        let before = self.version;
        let work_deadline = self.work_deadline();
        let time_is_up = async {
            match work_deadline {
                Some(until) => time::sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        let written = async {
            time::sleep(LOOK_INTERVAL).await;
            // Without a version, any that can be read is new.
            store.changed_since(before.unwrap_or(i64::MIN)).await;
        };
        tokio::select! {
            () = time_is_up => {}
            () = self.handle.wake.notified() => {}
            _ = self.handle.halted(Halt::Soon) => return Err(DriveError::Halted),
            () = written => {}
        }
        self.open_tasks = false;
        self.catch_up().await
    }
}

/// Takes a session over, unless another process that is alive drives it.
async fn claim(shared: &Arc<Shared>, id: &SessionId) -> Driven<String> {
    let mine = (shared.owner)();
    let name = driver_name(mine.as_ref());
    let (id, driver) = (id.clone(), name.clone());
    // After a power cut no process is left that it would keep away.
    let claimed = shared.write_unsynced(move |journal| {
        if is_driven_elsewhere(journal, &id, mine.as_ref())? {
            return Err(SessionError::Busy);
        }
        journal.drive(&id, &driver)?;
        Ok(())
    });
    claimed.await?;
    Ok(name)
}

/// A name for a driver of this process.
fn driver_name(owner: Option<&OwnerId>) -> String {
    let owner = owner.map_or("", OwnerId::as_str);
    format!("{owner}/{}", Uuid::new_v4().simple())
}

/// What the task that a session is for says about it.
#[derive(Default)]
struct OfTask {
    /// The tools of the skills above, which restrict the session also where it began with its
    /// parent's own messages.
    outer_tools: Vec<Tools>,
    effort: Option<Effort>,
    tree: Option<TaskId>,
    depth: u32,
}

async fn of_task(shared: &Shared, session: &Session) -> Result<OfTask, SessionError> {
    let Some(task) = session.task.clone() else {
        return Ok(OfTask::default());
    };
    let read = shared.read(move |journal| {
        let Some(task) = journal.task(&task)? else {
            return Ok(OfTask::default());
        };
        Ok(OfTask {
            outer_tools: tools_above(journal, &task)?,
            effort: task.brief.effort,
            depth: task.place.depth,
            tree: Some(outermost(journal, task)?),
        })
    });
    read.await
}

/// The task at the top of the tree that a task is in.
fn outermost(journal: &mut dyn Journal, task: Task) -> Result<TaskId, SessionError> {
    let mut outermost = task;
    while let Some(above) = outermost.place.above.clone() {
        match journal.task(&above)? {
            Some(task) => outermost = task,
            // Only what it is known by is left of it.
            None => return Ok(above),
        }
    }
    Ok(outermost.id)
}

/// An agent, or a read-only one if its file is gone.
fn known_or_read_only(profiles: &Profiles, agent: &AgentName) -> Profile {
    let read_only = || {
        let mut built_in = Profile::built_in().into_iter();
        built_in.find(|profile| profile.name.as_str() == "explore")
    };
    let known = profiles.get(agent).cloned().or_else(read_only);
    known.unwrap_or_else(|| Profile {
        name: agent.clone(),
        description: String::new(),
        prompt: String::new(),
        model: None,
        tools: Tools {
            only: Some(Vec::new()),
            ..Tools::default()
        },
        max_turns: None,
        of_project: false,
    })
}
