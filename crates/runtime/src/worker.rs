//! Looks after tasks: one loop that starts what is queued, follows what runs, stops what has
//! to be stopped and delivers notices. The journal says what there is to do, so a worker
//! that dies leaves nothing behind that the next one does not find.

use std::{
    collections::{HashMap, HashSet},
    future::Future,
    sync::Arc,
    time::Duration,
};

use asyncagents_core::{
    host_ref::HostSetup,
    id::{OwnerId, TaskId},
    lifecycle::{Command, clock_moved},
    lock::lock,
    moment::Moment,
    port::{Journal, LeaseTime, PendingPost},
    task::{State, Task},
};
use tokio::{
    sync::{Notify, watch},
    task::{self, JoinSet},
    time,
};
use uuid::Uuid;

use crate::{
    Manager, Problem,
    clock::Clocks,
    held::startable_here,
    hosts::OpenHost,
    listen::listen,
    outbox::{self, Lane},
    runner::{Origin, Run, RunKey, ours},
    shared::Shared,
    stop::stop,
    survey::{STARTED_AT_ONCE, startable, survey},
};

/// How often the clock is looked at while a notice waits for its time.
const CLOCK_CHECK: Duration = Duration::from_secs(1);

/// A worker. Dropping it is like killing it: what it did is left for others to take over.
pub struct Worker {
    shared: Arc<Shared>,
    stop: watch::Sender<bool>,
    /// Holds the one loop, so that it ends with the worker.
    work: JoinSet<()>,
}

impl Worker {
    /// Takes a lease and begins to work, on new tasks and on those whose worker died.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn start(manager: &Manager) -> Result<Self, Problem> {
        let shared = manager.shared.clone();
        let mut worker_loop = WorkerLoop::new(shared.clone());
        worker_loop.enter().await?;
        let (stop, stopped) = watch::channel(false);
        let mut work = JoinSet::new();
        work.spawn(worker_loop.work(stopped, manager.clone()));
        Ok(Self { shared, stop, work })
    }

    /// Stops in good order: what is in the middle of something finishes it, and every task
    /// is left as it is for the next worker. Children go on in their hosts.
    pub async fn stop(mut self) {
        set_owner(&self.shared, None);
        let _ = self.stop.send(true);
        while self.work.join_next().await.is_some() {}
    }
}

impl Worker {
    /// Ends at once, as if the process had died: nothing is given back.
    pub fn kill(mut self) {
        self.work.abort_all();
    }
}

fn set_owner(shared: &Shared, owner: Option<OwnerId>) {
    *lock(&shared.owner) = owner;
}

/// The loop and what it has under way.
struct WorkerLoop {
    shared: Arc<Shared>,
    owner: OwnerId,
    jobs: JoinSet<()>,
    /// What each job is, also of one that panics.
    under_way: HashMap<task::Id, Job>,
    runners: HashMap<TaskId, RunHandle>,
    stopping: HashSet<TaskId>,
    delivering: HashSet<Lane>,
    /// One for each host: passes its events on, and returns when the host is gone.
    listeners: JoinSet<HostSetup>,
    listened_to: HashSet<HostSetup>,
    /// The store failed in the last round: there may be something left to do.
    retries: bool,
}

struct RunHandle {
    run: u32,
    stop: Arc<Notify>,
}

/// What is under way.
enum Job {
    Run(RunKey),
    Stop(TaskId),
    Deliver(Lane),
}

impl WorkerLoop {
    fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            owner: new_owner(),
            jobs: JoinSet::new(),
            under_way: HashMap::new(),
            runners: HashMap::new(),
            stopping: HashSet::new(),
            delivering: HashSet::new(),
            listeners: JoinSet::new(),
            listened_to: HashSet::new(),
            retries: false,
        }
    }

    /// Takes a lease, under a new name.
    async fn enter(&mut self) -> Result<(), Problem> {
        let look_again = self.shared.write(|journal| Ok(journal.look_again()?));
        look_again.await?;
        let renewed = self.renew(true).await?.unwrap_or_default();
        set_owner(&self.shared, Some(self.owner.clone()));
        self.take_over(renewed.claimed);
        Ok(())
    }

    async fn work(mut self, mut stopped: watch::Receiver<bool>, manager: Manager) {
        let mut commits = self.shared.commits.subscribe();
        let mut version = self.shared.version().await;
        let mut renewal = time::interval(self.shared.settings.lease / 3);
        renewal.set_missed_tick_behavior(time::MissedTickBehavior::Delay);
        let mut next_due = self.round().await;
        loop {
            let until_due = self.until_due(next_due);
            let something_to_do = tokio::select! {
                _ = stopped.changed() => break,
                _ = renewal.tick() => self.keep_lease().await,
                Some(done) = self.jobs.join_next_with_id(), if !self.jobs.is_empty() => {
                    self.finish(done.map_or_else(|error| error.id(), |(id, ())| id));
                    true
                }
                Some(Ok(gone)) = self.listeners.join_next(), if !self.listeners.is_empty() => {
                    self.listened_to.remove(&gone);
                    false
                }
                changed = commits.changed() => changed.is_ok(),
                newer = self.shared.store.changed_since(version) => {
                    version = newer;
                    true
                }
                () = time::sleep(until_due), if next_due.is_some() => {
                    next_due.is_some_and(|due| due <= self.shared.now())
                }
            };
            if something_to_do {
                // What is written from here on is a reason for another round.
                version = self.shared.store.version().await.unwrap_or(version);
                next_due = self.round().await;
            }
        }
        drop(manager);
        self.leave().await;
    }

    /// How long to sleep until the next notice may be due. The clock may be set meanwhile, so not
    /// for long.
    fn until_due(&self, next_due: Option<Moment>) -> Duration {
        let until_due = next_due.map(|due| due.since(self.shared.now()));
        let until_due = until_due.unwrap_or(CLOCK_CHECK);
        until_due.clamp(Duration::from_millis(1), CLOCK_CHECK)
    }

    /// Does everything there is to do now; returns when the next notice is due.
    async fn round(&mut self) -> Option<Moment> {
        self.retries = false;
        let round = match survey(&self.shared, &self.owner, &self.delivering).await {
            Ok(round) => round,
            Err(problem) => {
                tracing::error!(%problem, "cannot read the store");
                self.retries = true;
                return None;
            }
        };
        // First what was true a moment ago; starting tasks takes time.
        for task in round.to_stop {
            self.stop(task);
        }
        outbox::give_up(&self.shared, round.unreadable).await;
        self.deliver(round.due);
        if round.unowned {
            self.keep_lease().await;
        }
        if round.queued || round.unowned {
            self.start_queued().await;
        }
        round.next_due
    }

    /// Starts what there are slots for.
    async fn start_queued(&mut self) {
        loop {
            let checked = match startable_here(&self.shared, &self.owner).await {
                Ok(checked) => checked,
                Err(problem) => {
                    tracing::error!(%problem, "cannot look at queued tasks");
                    self.retries = true;
                    return;
                }
            };
            let (shared, owner) = (self.shared.clone(), self.owner.clone());
            let started = self.shared.write(move |journal| {
                let limits = &shared.settings.limits;
                // What another worker has just given back may be running and has no slot yet:
                // it is taken over first, in the next round.
                let unowned = journal.unowned()?;
                if unowned.iter().any(|(task, host)| shared.takes(task, host)) {
                    return Ok(Vec::new());
                }
                let mut started = startable(journal, &owner, limits, STARTED_AT_ONCE)?;
                // What came after the others were looked at is started in the next round.
                started.retain(|task| checked.contains(&task.id));
                for task in &mut started {
                    shared.carry_out(journal, task, Command::Start)?;
                }
                Ok(started)
            });
            match started.await {
                Ok(started) => {
                    let more = started.len() == STARTED_AT_ONCE;
                    let ids: Vec<TaskId> = started.iter().map(|task| task.id.clone()).collect();
                    self.shared.watch.wake(&ids);
                    started
                        .into_iter()
                        .for_each(|task| self.run(task, Origin::Started));
                    if !more {
                        return;
                    }
                }
                Err(problem) => {
                    tracing::error!(%problem, "cannot start queued tasks");
                    self.retries = true;
                    return;
                }
            }
        }
    }

    /// Renews the lease and takes over from workers that died. If the lease was lost, all
    /// that was under way belongs to others now, and this worker begins anew. Returns whether there
    /// may be something to do.
    async fn keep_lease(&mut self) -> bool {
        match self.renew(false).await {
            Ok(Some(renewed)) => {
                self.take_over(renewed.claimed);
                self.pick_up(renewed.running).await;
                return renewed.assigned || self.retries;
            }
            Ok(None) => {
                tracing::warn!("lease lost, taking a new one");
                self.jobs.shutdown().await;
                self.under_way.clear();
                self.runners.clear();
                self.stopping.clear();
                self.delivering.clear();
                self.owner = new_owner();
                if let Err(problem) = self.enter().await {
                    tracing::error!(%problem, "cannot take a new lease");
                }
            }
            Err(problem) => tracing::error!(%problem, "cannot renew the lease"),
        }
        true
    }

    /// Renews the lease, or returns nothing if it was lost.
    ///
    /// That is not synced: no process lives through a power cut, and leases of another boot count
    /// for nothing. Tasks that were taken over are synced before anything is done about them.
    async fn renew(&self, begin: bool) -> Result<Option<Renewed>, Problem> {
        let (shared, owner) = (self.shared.clone(), self.owner.clone());
        // Before it is saved, so that no other process can think it has expired sooner.
        let time = shared.lease_time();
        let until = time.clone().after(shared.settings.lease);
        let (again, lease_until) = ((owner.clone(), until.clone()), until.steady);
        let renewed = self.shared.write_unsynced(move |journal| {
            if !journal.renew(&owner, &until, begin)? {
                return Ok(None);
            }
            let (claimed, assigned) = claim(journal, &shared, &owner, &time)?;
            let running = journal.running(&owner)?;
            Ok(Some(Renewed {
                claimed,
                assigned,
                running,
            }))
        });
        let Some(renewed) = renewed.await? else {
            return Ok(None);
        };
        if renewed.assigned {
            let synced = self.shared.write(move |journal| {
                let (owner, until) = &again;
                Ok(journal.renew(owner, until, false)?)
            });
            if !synced.await? {
                return Ok(None);
            }
        }
        *lock(&self.shared.lease_until) = lease_until;
        Ok(Some(renewed))
    }

    /// Re-attaches to running tasks of this worker that have no runner: one lets go of its task when
    /// the store fails.
    async fn pick_up(&mut self, running: Vec<(TaskId, u32)>) {
        for (id, run) in running {
            if self.runners.contains_key(&id) {
                continue;
            }
            let owner = self.owner.clone();
            let task = self
                .shared
                .read(move |journal| ours(journal.task(&id)?, &owner, run));
            if let Ok(task) = task.await {
                tracing::warn!(task = %task.id, "re-attaching to running task");
                self.run(task, Origin::TakenOver);
            }
        }
    }

    /// Goes on with tasks that other workers had. What is queued, to be stopped or to be delivered
    /// is found in the journal.
    fn take_over(&mut self, claimed: Vec<Task>) {
        for task in claimed {
            tracing::info!(task = %task.id, status = %task.status(), "no owner or lease expired, taking over");
            match task.state {
                State::Running { .. } => self.run(task, Origin::TakenOver),
                State::Queued { .. } | State::Ended { .. } => {}
            }
        }
    }

    fn run(&mut self, task: Task, got: Origin) {
        let key = (task.id.clone(), task.run);
        let host = match self.open(&task.brief.host) {
            Ok(host) => host,
            Err(problem) => {
                self.fail(task, problem.to_string());
                return;
            }
        };
        let stop = Arc::new(Notify::new());
        let handle = RunHandle {
            run: task.run,
            stop: stop.clone(),
        };
        self.runners.insert(task.id.clone(), handle);
        let run = Run {
            limits: self.shared.limits(&task.brief.host.host),
            clocks: Clocks::read(&*self.shared.clock),
            shared: self.shared.clone(),
            owner: self.owner.clone(),
            host,
            stop,
            task,
            role: None,
            got,
            waits: false,
            told: 0,
            unanswered: 0,
            rejects: false,
            rejected: HashSet::new(),
        };
        self.begin(Job::Run(key), run.drive());
    }

    fn begin(&mut self, job: Job, work: impl Future<Output = ()> + Send + 'static) {
        let id = self.jobs.spawn(work).id();
        self.under_way.insert(id, job);
    }

    /// Ends a task whose host is not there.
    fn fail(&mut self, task: Task, why: String) {
        let key = (task.id.clone(), task.run);
        let (shared, owner) = (self.shared.clone(), self.owner.clone());
        self.begin(Job::Run(key), async move {
            let handle = shared.clone();
            let failed = shared.write(move |journal| {
                let mut task = ours(journal.task(&task.id)?, &owner, task.run)?;
                handle.carry_out(journal, &mut task, Command::GiveUp { why: why.clone() })
            });
            match failed.await {
                Ok(_) | Err(Problem::NotOurs) => {}
                Err(problem) => tracing::error!(%problem, "cannot end the task"),
            }
            shared.written();
        });
    }

    /// Stops the host of a task that has ended, after its runner has let go of it.
    fn stop(&mut self, task: Task) {
        if let Some(handle) = self.runners.get(&task.id) {
            handle.stop.notify_one();
            return;
        }
        if self.stopping.insert(task.id.clone()) {
            let (shared, owner) = (self.shared.clone(), self.owner.clone());
            self.begin(Job::Stop(task.id.clone()), stop(shared, owner, task));
        }
    }

    /// Delivers posts: one session's in order, those of different sessions side by side.
    fn deliver(&mut self, due: Vec<PendingPost>) {
        let mut by_lane: HashMap<Lane, Vec<PendingPost>> = HashMap::new();
        for pending in due {
            let lane = Lane::of(&pending);
            if !self.delivering.contains(&lane) {
                by_lane.entry(lane).or_default().push(pending);
            }
        }
        for (lane, posts) in by_lane {
            self.delivering.insert(lane.clone());
            let (shared, owner) = (self.shared.clone(), self.owner.clone());
            let delivery = outbox::deliver(shared, owner, posts);
            self.begin(Job::Deliver(lane), delivery);
        }
    }

    fn finish(&mut self, id: task::Id) {
        match self.under_way.remove(&id) {
            Some(Job::Run((task, run))) => {
                let next_has_begun = |handle: &RunHandle| handle.run != run;
                if !self.runners.get(&task).is_some_and(next_has_begun) {
                    self.runners.remove(&task);
                }
            }
            Some(Job::Stop(task)) => {
                self.stopping.remove(&task);
            }
            Some(Job::Deliver(lane)) => {
                self.delivering.remove(&lane);
            }
            None => {}
        }
    }

    /// Opens a host and listens to its events, unless that is done already.
    fn open(&mut self, key: &HostSetup) -> Result<Arc<OpenHost>, Problem> {
        let host = self.shared.hosts.get(key)?;
        if self.listened_to.insert(key.clone()) {
            let (shared, events) = (self.shared.clone(), host.host.subscribe());
            let (host, key) = (host.clone(), key.clone());
            self.listeners.spawn(async move {
                listen(shared, host, events).await;
                key
            });
        }
        Ok(host)
    }

    /// Lets what is in the middle of something finish it, then gives everything back.
    async fn leave(mut self) {
        self.listeners.abort_all();
        for handle in self.runners.values() {
            handle.stop.notify_one();
        }
        let finished = async { while self.jobs.join_next().await.is_some() {} };
        if time::timeout(self.shared.settings.shutdown_timeout, finished)
            .await
            .is_err()
        {
            self.jobs.shutdown().await;
        }
        let (shared, owner) = (self.shared.clone(), self.owner.clone());
        let left = self.shared.write(move |journal| {
            for mut task in journal.owned(&owner)? {
                shared.carry_out(journal, &mut task, Command::Assign { to: None })?;
            }
            Ok(journal.retire(&owner)?)
        });
        if let Err(problem) = left.await {
            tracing::error!(%problem, "cannot hand tasks back; they are taken over when the lease expires");
        }
    }
}

/// What a worker has when its lease was renewed.
#[derive(Default)]
struct Renewed {
    /// The tasks that were taken over.
    claimed: Vec<Task>,
    /// Tasks have got another owner, or none.
    assigned: bool,
    /// All that run here, and their runs.
    running: Vec<(TaskId, u32)>,
}

/// Takes over the tasks whose worker is gone and whose host is served here. Says whether tasks have
/// got another owner, or none.
fn claim(
    journal: &mut dyn Journal,
    shared: &Shared,
    owner: &OwnerId,
    time: &LeaseTime,
) -> Result<(Vec<Task>, bool), Problem> {
    let (now, settings) = (shared.now(), &shared.settings);
    let lapsed = journal.lapsed(time)?;
    journal.expire(time)?;
    let unassign = Command::Assign { to: None };
    let (mut claimed, mut assigned) = (Vec::new(), false);
    for mut task in journal.orphans()? {
        if !shared.takes(&task.id, &task.brief.host.host) {
            if task.owner.is_some() {
                assigned = true;
                // Without an owner, until a worker comes that has its host; it holds no slot.
                shared.carry_out(journal, &mut task, unassign.clone())?;
            }
            continue;
        }
        let was = lapsed
            .iter()
            .find(|was| Some(&was.owner) == task.owner.as_ref());
        let renewed = was.map(|was| was.until.before(settings.lease));
        let moved = clock_moved(&task, renewed, now);
        // A task that waits for others did nothing that a worker could have died of.
        let waits = journal.unsettled_below(&task.id)? > 0;
        if waits || was.is_some_and(|was| was.is_of_another_boot) {
            shared.carry_out(journal, &mut task, unassign.clone())?;
        }
        let to = Some(owner.clone());
        shared.carry_out(journal, &mut task, Command::Assign { to })?;
        journal.postpone_posts(&task.id, now, now.after(settings.confirm_timeout))?;
        if let Some(by) = moved {
            shared.carry_out(journal, &mut task, Command::ClockMoved { by })?;
        }
        assigned = true;
        claimed.push(task);
    }
    Ok((claimed, assigned))
}

fn new_owner() -> OwnerId {
    format!("worker_{}", Uuid::new_v4().simple()).into()
}
