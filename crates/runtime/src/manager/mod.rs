//! The handle by which all requests are made. Every request is one transaction:
//! receive, decide, save; what is slow happens afterwards, by a worker.

mod adopt;
mod bounds;
mod check_model;
mod follow_trace;
mod launch;
mod output;
mod perform;
mod prune;
mod sessions;
mod steer;
mod take_notices;
mod tell;
mod told;
mod trace;

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use asyncagents_core::{
    answer::Shown,
    budget::Spent,
    id::{OwnerId, SessionId, TaskId},
    lifecycle::Command,
    moment::Moment,
    port::{Clock, Journal, Store},
    refusal::Refusal,
    request::{Caller, TaskArgs, TaskRequest},
    task::{Outcome, Task},
    task_list::{ListRequest, TaskList},
};
use tokio::{sync::mpsc, task::JoinSet, time};

pub use adopt::Conversations;
pub use bounds::SessionBounds;
pub use follow_trace::{NewSteps, TraceFollower};
pub use launch::Accepted;
pub use prune::{PruneRequest, Pruned};
pub use sessions::{SessionState, SessionSummary};
pub(crate) use steer::clear;
pub use steer::{Cancelled, Cleared};
pub use take_notices::{Asking, Awaited, TakenNotice};
pub use tell::{AnswerGiven, MessageAccepted};
use trace::DEEPEST;
pub(crate) use trace::Traces;

use crate::{Hosts, Problem, Settings, shared::Shared};

/// How often those who only look on read the tasks, at most.
const ONLOOKER_INTERVAL: Duration = Duration::from_secs(1);

/// How long to wait before a store that has failed is read again.
const STORE_RETRY: Duration = Duration::from_millis(50);

/// The handle by which all requests are made. Clones are the same handle.
#[derive(Clone)]
pub struct Manager {
    pub(crate) shared: Arc<Shared>,
    /// Wakes those who wait, for as long as there is a handle.
    _pump: Arc<JoinSet<()>>,
}

/// A handle that keeps nothing alive: for hosts, which the runtime itself holds.
#[derive(Clone)]
pub struct WeakManager {
    shared: Weak<Shared>,
    pump: Weak<JoinSet<()>>,
}

impl WeakManager {
    /// The handle, unless all others are gone.
    pub fn upgrade(&self) -> Option<Manager> {
        Some(Manager {
            shared: self.shared.upgrade()?,
            _pump: self.pump.upgrade()?,
        })
    }
}

impl Manager {
    /// A handle. Tasks are run by a [`crate::Worker`], in this process or another.
    pub fn new(
        store: Arc<dyn Store>,
        hosts: Arc<dyn Hosts>,
        clock: Arc<dyn Clock>,
        settings: Settings,
    ) -> Self {
        let (given_up, waits) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared::new(store, hosts, clock, settings, given_up));
        let mut pump = JoinSet::new();
        pump.spawn(wake_watchers(shared.clone()));
        pump.spawn(output::end_waits(shared.clone(), waits));
        Self {
            shared,
            _pump: Arc::new(pump),
        }
    }

    /// A handle that keeps nothing alive.
    pub fn downgrade(&self) -> WeakManager {
        WeakManager {
            shared: Arc::downgrade(&self.shared),
            pump: Arc::downgrade(&self._pump),
        }
    }

    /// Launches a task, or goes on with one. The answer comes after one transaction.
    ///
    /// # Errors
    /// When the request is refused; nothing is created then.
    pub async fn task(&self, caller: &Caller, args: TaskArgs) -> Result<Accepted, Problem> {
        match TaskRequest::try_from(args)? {
            TaskRequest::Launch(launch) => self.launch(caller, *launch).await,
            TaskRequest::Resume(resume) => self.resume(caller, resume).await,
        }
    }

    /// The tasks that a list is to show, newest first.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn list(&self, request: ListRequest) -> Result<TaskList, Problem> {
        self.shared
            .read(move |journal| {
                let TaskList { tasks, left_out } = journal.list(&request)?;
                let tasks = tasks.into_iter().map(|task| shown(journal, task));
                let tasks = tasks.collect::<Result<_, Problem>>()?;
                Ok(TaskList { tasks, left_out })
            })
            .await
    }

    /// What all tasks below a session of a person have spent, cleared ones too.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn spent_below(&self, root: &SessionId) -> Result<Spent, Problem> {
        let root = root.clone();
        self.shared
            .read(move |journal| Ok(journal.spent_below_root(&root)?))
            .await
    }

    /// How many tasks and notices are not settled, of the hosts that this process has.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn unfinished(&self) -> Result<u64, Problem> {
        let held = self.shared.held();
        let counted = self.shared.read(move |journal| {
            let mut left = 0;
            for id in &held {
                let task = journal.task(id)?;
                left += u64::from(task.is_some_and(|task| task.is_held()));
            }
            Ok((journal.unfinished()?, left))
        });
        let (counts, left_to_others) = counted.await?;
        let ours = counts
            .into_iter()
            .filter(|(host, _)| self.shared.serves(host));
        let all: u64 = ours.map(|(_, count)| count).sum();
        Ok(all.saturating_sub(left_to_others))
    }

    /// Whether there is something unsettled that a worker with what this process has could go on with. A
    /// task that others have left for the lack of a key is not, if the key is lacking here too.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn has_work(&self) -> Result<bool, Problem> {
        let held = self.shared.read(|journal| {
            let mut held = Vec::new();
            for (id, _) in journal.unowned()? {
                held.extend(journal.task(&id)?.filter(Task::is_held));
            }
            Ok(held)
        });
        for task in held.await? {
            self.shared.lacks(&task);
        }
        Ok(self.unfinished().await? > 0)
    }

    /// The tasks to which something has happened since a position in the journal, and the
    /// position up to which that is; from now on, without one. Returns when there are some, or
    /// the time is up.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn changed(
        &self,
        since: Option<i64>,
        wait: Duration,
    ) -> Result<(Vec<Shown>, i64), Problem> {
        let deadline = time::Instant::now() + wait;
        loop {
            let (version, began) = (self.shared.version().await, time::Instant::now());
            let (tasks, newest) = self
                .shared
                .read(move |journal| {
                    let (changed, newest) = journal.changed_since(since.unwrap_or(i64::MAX))?;
                    let mut tasks = Vec::new();
                    for id in changed {
                        if let Some(task) = journal.task(&id)? {
                            tasks.push(shown(journal, task)?);
                        }
                    }
                    Ok((tasks, newest))
                })
                .await?;
            if since.is_none() || !tasks.is_empty() || time::Instant::now() >= deadline {
                return Ok((tasks, newest));
            }
            let changed = self.shared.store.changed_since(version);
            if time::timeout_at(deadline, changed).await.is_ok() {
                time::sleep_until(deadline.min(began + ONLOOKER_INTERVAL)).await;
            }
        }
    }

    /// Returns the version of the store as soon as anyone has written since this one; at once
    /// without one.
    pub async fn written_since(&self, version: Option<i64>) -> i64 {
        match version {
            Some(version) => self.shared.store.changed_since(version).await,
            None => self.shared.version().await,
        }
    }

    /// Ends all unfinished tasks that this process looks after, for their host has ended and
    /// with it everything that worked there. Their parents are told when it is back.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn host_ended(&self, why: &str) -> Result<(), Problem> {
        let Some(owner) = self.shared.owner() else {
            return Ok(());
        };
        let (shared, why) = (self.shared.clone(), why.to_owned());
        self.shared
            .write(move |journal| {
                for mut task in journal.owned(&owner)? {
                    if !task.is_live() {
                        continue;
                    }
                    let command = Command::Finish {
                        outcome: Outcome::Failed { why: why.clone() },
                        answer: None,
                        totals: None,
                        woken: false,
                    };
                    shared.carry_out(journal, &mut task, command)?;
                }
                Ok(())
            })
            .await?;
        self.shared.watch.wake_all();
        Ok(())
    }

    /// The workers that are believed to be alive.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn workers(&self) -> Result<Vec<OwnerId>, Problem> {
        self.shared.read(|journal| Ok(journal.owners()?)).await
    }

    /// Whether a worker is alive, as its lease says.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn has_lease(&self, worker: &OwnerId) -> Result<bool, Problem> {
        let (worker, now) = (worker.clone(), self.shared.lease_time());
        self.shared
            .read(move |journal| Ok(journal.has_lease(&worker, &now)?))
            .await
    }

    /// Something has changed that the journal does not tell: a host is there.
    pub fn look_again(&self) {
        self.shared.written();
    }

    /// The worker of this process, while there is one.
    pub fn owner(&self) -> Option<OwnerId> {
        self.shared.owner()
    }

    /// What time it is for the tasks.
    pub fn now(&self) -> Moment {
        self.shared.now()
    }

    /// How this runtime behaves.
    pub fn settings(&self) -> &Settings {
        &self.shared.settings
    }
}

/// A task with its ID as people see it.
pub(crate) fn shown(journal: &mut dyn Journal, task: Task) -> Result<Shown, Problem> {
    let neighbours = journal.neighbours(&task.id)?;
    let id = task.id.shown(&neighbours).to_owned();
    Ok(Shown { id, task })
}

/// How many matches of an ambiguous ID are named.
const MATCHES: usize = 10;

/// The task that a caller means. A session sees the tasks of its own tree, a person all.
pub(crate) fn find(
    journal: &mut dyn Journal,
    caller: &Caller,
    asked: &str,
) -> Result<Task, Problem> {
    let unknown = || Refusal::UnknownTask {
        asked: asked.to_owned(),
    };
    // The sub-agent of a task that runs a skill is that task.
    let task = asked
        .split_once("-subagent-")
        .map_or(asked, |(task, _)| task);
    let digits = task.strip_prefix(TaskId::KIND).unwrap_or(task);
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Err(unknown().into());
    }
    let beginning = format!("{}{}", TaskId::KIND, digits.to_ascii_lowercase());
    let root = match caller.session() {
        Some(session) => {
            let works_in = journal.task_in(session)?;
            Some(works_in.map_or(session.clone(), |task| task.place.root))
        }
        None => None,
    };
    let mut found = journal.beginning_with(&beginning)?;
    found.retain(|task| root.as_ref().is_none_or(|root| task.place.root == *root));
    if found.len() > 1 {
        let more = found.len().saturating_sub(MATCHES);
        found.truncate(MATCHES);
        let matches: Result<Vec<Shown>, Problem> =
            found.into_iter().map(|task| shown(journal, task)).collect();
        let mut matches: Vec<String> = matches?.into_iter().map(|shown| shown.id).collect();
        matches.extend((more > 0).then(|| format!("{more} more")));
        return Err(Problem::Refused(Refusal::Ambiguous {
            asked: asked.to_owned(),
            matches,
        }));
    }
    found.pop().ok_or_else(|| unknown().into())
}

/// Wakes those who wait for a task when something has happened to it, here or in another
/// process. Without a waiting caller it does nothing.
async fn wake_watchers(shared: Arc<Shared>) {
    let mut commits = shared.commits.subscribe();
    let mut position = None;
    let mut version = shared.version().await;
    loop {
        if shared.watch.is_idle() {
            shared.watch.begun.notified().await;
            position = None;
        }
        let Some(from) = position else {
            // A caller that begins to wait now has seen everything that happened before.
            match shared
                .read(|journal| Ok(journal.changed_since(i64::MAX)?))
                .await
            {
                Ok((_, newest)) => position = Some(newest),
                Err(_) => time::sleep(STORE_RETRY).await,
            }
            shared.watch.wake_all();
            continue;
        };
        tokio::select! {
            changed = commits.changed() => if changed.is_err() { return },
            newer = shared.store.changed_since(version) => version = newer,
        }
        let changed = shared.read(move |journal| Ok(journal.changed_since(from)?));
        if let Ok((tasks, newest)) = changed.await {
            position = Some(newest);
            shared.watch.wake(&tasks);
        }
    }
}
