//! What all parts of the runtime share.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use asyncagents_core::{
    host_ref::{HostRef, HostSetup},
    id::{OwnerId, TaskId},
    lock::lock,
    model_choice::ModelPolicy,
    moment::Moment,
    port::{Clock, Journal, LeaseTime, Store, query, transact, transact_unsynced},
    task::Task,
    task_limits::TaskLimits,
};
use tokio::sync::{mpsc, watch};

use crate::{ForkSettings, Hosts, Problem, Settings, hosts::OpenHosts, watch::Watch};

/// What all parts of the runtime share.
pub(crate) struct Shared {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) hosts: OpenHosts,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) watch: Watch,
    /// Waits that their callers gave up, to be ended in the journal.
    pub(crate) given_up: mpsc::UnboundedSender<i64>,
    /// Grows when this process has written something that others may wait for.
    pub(crate) commits: watch::Sender<u64>,
    /// The worker of this process, while there is one.
    pub(crate) owner: Mutex<Option<OwnerId>>,
    /// Until when that worker has its lease, by the steady clock.
    pub(crate) lease_until: Mutex<Duration>,
    /// The queued tasks that this process lacks something for.
    held: Mutex<HashSet<TaskId>>,
}

impl Shared {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        hosts: Arc<dyn Hosts>,
        clock: Arc<dyn Clock>,
        settings: Settings,
        given_up: mpsc::UnboundedSender<i64>,
    ) -> Self {
        Self {
            store,
            hosts: OpenHosts::new(hosts),
            clock,
            settings: Arc::new(settings),
            watch: Watch::default(),
            given_up,
            commits: watch::Sender::new(0),
            owner: Mutex::default(),
            lease_until: Mutex::default(),
            held: Mutex::default(),
        }
    }

    /// Looks something up, in one transaction. Like all work for the store, `work` may be run
    /// more than once.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        work: impl Fn(&mut dyn Journal) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        query(&*self.store, work).await
    }

    /// Decides and saves, in one transaction. An error undoes everything.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        work: impl Fn(&mut dyn Journal) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        transact(&*self.store, work).await
    }

    /// The same, where a power cut may undo it, with everything that was written later.
    pub(crate) async fn write_unsynced<T: Send + 'static>(
        &self,
        work: impl Fn(&mut dyn Journal) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        transact_unsynced(&*self.store, work).await
    }

    /// The version of the store; one that it never has, if it cannot be read.
    pub(crate) async fn version(&self) -> i64 {
        self.store.version().await.unwrap_or(i64::MIN)
    }

    pub(crate) fn now(&self) -> Moment {
        self.clock.now()
    }

    /// The time by which leases are measured.
    pub(crate) fn lease_time(&self) -> LeaseTime {
        LeaseTime::now(&*self.clock)
    }

    /// Whether tasks of this host can be run by this process.
    pub(crate) fn serves(&self, host: &HostRef) -> bool {
        self.hosts.source.serves(host)
    }

    /// Whether this process looks after a task without an owner.
    pub(crate) fn takes(&self, task: &TaskId, host: &HostRef) -> bool {
        self.serves(host) && !lock(&self.held).contains(task)
    }

    /// What this process lacks to start a task. It is left to others then.
    pub(crate) fn lacks(&self, task: &Task) -> Option<String> {
        let why = self.hosts.source.lacks(task)?;
        lock(&self.held).insert(task.id.clone());
        Some(why)
    }

    /// How many tasks are left to others.
    pub(crate) fn held(&self) -> Vec<TaskId> {
        lock(&self.held).iter().cloned().collect()
    }

    /// The limits of a host's tasks.
    pub(crate) fn limits(&self, host: &HostRef) -> TaskLimits {
        self.hosts.source.limits(host, &self.settings.limits)
    }

    /// What forked children inherit in a host.
    pub(crate) fn fork(&self, host: &HostRef) -> ForkSettings {
        let usual = ForkSettings {
            limits: self.settings.fork.clone(),
            mode: self.settings.fork_mode,
        };
        self.hosts.source.fork(host, usual)
    }

    /// What the user says about the models of a host's tasks.
    pub(crate) fn model_policy(&self, setup: &HostSetup) -> ModelPolicy {
        let usual = &self.settings.models;
        self.hosts.source.model_policy(setup, usual)
    }

    /// Tells the process that something was written.
    pub(crate) fn written(&self) {
        self.commits.send_modify(|commits| *commits += 1);
    }

    /// Whether this process's lease has not run out, as far as it knows itself. A process that was
    /// stopped finds out by this before it sends anything: others may have sent it meanwhile.
    pub(crate) fn has_own_lease(&self) -> bool {
        self.clock.steady() < *lock(&self.lease_until)
    }

    pub(crate) fn owner(&self) -> Option<OwnerId> {
        lock(&self.owner).clone()
    }

    /// Who looks after a task that is launched here.
    pub(crate) fn owner_of_launched(&self) -> Option<OwnerId> {
        self.owner().filter(|_| self.hosts.source.keeps_launched())
    }
}
