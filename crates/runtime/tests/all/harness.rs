//! A store, a host and a worker, and what a parent sees of them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use asyncagents_core::{
    answer::{Reader, Report},
    event::Saved,
    host_ref::{HostRef, HostSetup},
    id::{SessionId, TaskId},
    port::{
        Fate, Host, HostError, Journal, PostKind, Posted, Store, StoreError, StoreErrorKind,
        Stored, Work,
    },
    request::{Caller, OutputRequest, TaskArgs},
    task::{Stage, State, Status, Task},
    task_limits::TaskLimits,
    task_list::ListRequest,
};
use asyncagents_runtime::{Accepted, Hosts, Manager, Problem, Settings, Worker};
use asyncagents_store::{Durability, Options, Sqlite};
use asyncagents_testkit::scripted_host::{Line, Script, ScriptedHost, Step, World};
use asyncagents_testkit::{
    clock::{SetClock, TokioClock},
    store_contract::RunsTwice,
};
use rusqlite::Connection;
use tempfile::TempDir;

/// A minute, a second and so on, for scripts and limits.
pub(crate) fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Works for a while, uses two tools and answers.
pub(crate) fn usual() -> Script {
    Script::of([
        Step::Wait(seconds(1)),
        tool("grep"),
        Step::Wait(seconds(1)),
        tool("read"),
        turn(1_000),
        Step::Wait(seconds(1)),
        Step::Answer("Found: {prompt}".to_owned()),
    ])
}

/// Answers after this long.
pub(crate) fn takes(time: Duration) -> [Step; 2] {
    [Step::Wait(time), Step::Answer("ok: {prompt}".to_owned())]
}

pub(crate) fn tool(name: &str) -> Step {
    let input = format!("{name} something");
    Step::Tool {
        name: name.to_owned(),
        input,
    }
}

pub(crate) fn turn(tokens: u64) -> Step {
    Step::Turn {
        tokens,
        cost: asyncagents_core::budget::Cost(tokens * 3),
    }
}

/// A store that is slow to write.
struct Slow {
    store: Arc<dyn Store>,
    pause: Duration,
}

#[async_trait::async_trait]
impl Store for Slow {
    async fn write(&self, work: Work) -> Stored<()> {
        tokio::time::sleep(self.pause).await;
        self.store.write(work).await
    }

    async fn write_unsynced(&self, work: Work) -> Stored<()> {
        tokio::time::sleep(self.pause).await;
        self.store.write_unsynced(work).await
    }

    async fn read(&self, work: Work) -> Stored<()> {
        self.store.read(work).await
    }

    async fn version(&self) -> Stored<i64> {
        self.store.version().await
    }

    async fn changed_since(&self, version: i64) -> i64 {
        self.store.changed_since(version).await
    }

    async fn give_back_room(&self, is_alone: bool) -> Stored<u64> {
        self.store.give_back_room(is_alone).await
    }
}

/// A store that counts what is asked of it.
#[derive(Default)]
pub(crate) struct Asked {
    pub(crate) reads: AtomicUsize,
    pub(crate) writes: AtomicUsize,
    pub(crate) unsynced: AtomicUsize,
}

struct Counting {
    store: Arc<dyn Store>,
    asked: Arc<Asked>,
}

#[async_trait::async_trait]
impl Store for Counting {
    async fn write(&self, work: Work) -> Stored<()> {
        self.asked.writes.fetch_add(1, Ordering::SeqCst);
        self.store.write(work).await
    }

    async fn write_unsynced(&self, work: Work) -> Stored<()> {
        self.asked.unsynced.fetch_add(1, Ordering::SeqCst);
        self.store.write_unsynced(work).await
    }

    async fn read(&self, work: Work) -> Stored<()> {
        self.asked.reads.fetch_add(1, Ordering::SeqCst);
        self.store.read(work).await
    }

    async fn version(&self) -> Stored<i64> {
        self.store.version().await
    }

    async fn changed_since(&self, version: i64) -> i64 {
        self.store.changed_since(version).await
    }

    async fn give_back_room(&self, is_alone: bool) -> Stored<u64> {
        self.store.give_back_room(is_alone).await
    }
}

/// A store that can be made to fail.
pub(crate) struct Flaky {
    store: Arc<dyn Store>,
    pub(crate) fails: Arc<AtomicBool>,
}

impl Flaky {
    fn check(&self) -> Stored<()> {
        if self.fails.load(Ordering::SeqCst) {
            let (kind, why) = (StoreErrorKind::Full, "the disk is full");
            return Err(StoreError::new(kind, "tasks.db", why));
        }
        Ok(())
    }
}

#[async_trait::async_trait]
impl Store for Flaky {
    async fn write(&self, work: Work) -> Stored<()> {
        self.check()?;
        self.store.write(work).await
    }

    async fn write_unsynced(&self, work: Work) -> Stored<()> {
        self.check()?;
        self.store.write_unsynced(work).await
    }

    async fn read(&self, work: Work) -> Stored<()> {
        self.store.read(work).await
    }

    async fn version(&self) -> Stored<i64> {
        self.store.version().await
    }

    async fn changed_since(&self, version: i64) -> i64 {
        self.store.changed_since(version).await
    }

    async fn give_back_room(&self, is_alone: bool) -> Stored<u64> {
        self.store.give_back_room(is_alone).await
    }
}

/// A host that is always the same one, in a folder with limits of its own if it says so, and the program
/// of the parents that are not in it.
struct OneHost {
    name: HostRef,
    host: ScriptedHost,
    outside: ScriptedHost,
    limits: Option<TaskLimits>,
}

#[async_trait::async_trait]
impl Hosts for OneHost {
    fn serves(&self, host: &HostRef) -> bool {
        *host == self.name || host.is_outside()
    }

    fn limits(&self, _host: &HostRef, limits: &TaskLimits) -> TaskLimits {
        self.limits.clone().unwrap_or_else(|| limits.clone())
    }

    fn rejects_questions(&self, setup: &HostSetup) -> Option<bool> {
        match &*setup.settings.json {
            "refuse" => Some(true),
            "wait" => Some(false),
            _ => None,
        }
    }

    fn open(&self, setup: &HostSetup) -> Result<Arc<dyn Host>, HostError> {
        let host = &setup.host;
        if *host == self.name {
            Ok(Arc::new(self.host.clone()))
        } else if host.is_outside() {
            Ok(Arc::new(self.outside.clone()))
        } else {
            Err(HostError::Unreachable(format!("no host {host}")))
        }
    }
}

/// Everything that outlives a process: the file, the host's sessions.
pub(crate) struct Harness {
    folder: TempDir,
    pub(crate) clock: Arc<SetClock>,
    pub(crate) host: ScriptedHost,
    /// Runs no tasks: it has the parents that are not in the host.
    pub(crate) outside: ScriptedHost,
    pub(crate) settings: Settings,
    /// How often those who wait look at the store. Time that is paused goes on to the next timer
    /// before anyone hears what the kernel tells.
    pub(crate) look_interval: Duration,
    /// Those of the folder that the host works in, if it has some.
    pub(crate) limits: Option<TaskLimits>,
}

/// A process: a handle and a worker.
pub(crate) struct Process {
    pub(crate) manager: Manager,
    pub(crate) worker: Worker,
}

impl Harness {
    pub(crate) fn new(script: Script) -> Self {
        // Setting the clock does not make children faster.
        let clock = Arc::new(SetClock::start());
        let settings = Settings::default();
        let host =
            |script| ScriptedHost::new(script, World::in_memory(), Arc::new(TokioClock::start()));
        Self {
            folder: tempfile::tempdir().expect("a folder"),
            host: host(script),
            outside: host(Script::of([Step::Hang])),
            clock,
            settings,
            look_interval: seconds(5),
            limits: None,
        }
    }

    pub(crate) fn with(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(&mut self.settings);
        self
    }

    pub(crate) fn looking_every(mut self, interval: Duration) -> Self {
        self.look_interval = interval;
        self
    }

    /// All work is run twice: whatever the runtime does in a transaction may lose a race.
    pub(crate) fn store(&self) -> Arc<dyn Store> {
        let path = self.folder.path().join("tasks.db");
        let options = Options {
            durability: Durability::Process,
            fallback_interval: self.look_interval,
            ..Options::default()
        };
        let store = Sqlite::open_with(path, options).expect("a store");
        Arc::new(RunsTwice(Arc::new(store)))
    }

    /// Changes the file behind everybody's back.
    pub(crate) fn damage(&self, sql: &str) {
        let file = Connection::open(self.folder.path().join("tasks.db")).expect("the file");
        assert!(file.execute(sql, []).expect("changed") > 0, "{sql}");
    }

    /// A handle without a worker, as a shell command has.
    pub(crate) fn manager(&self) -> Manager {
        self.manager_of(self.store(), key())
    }

    fn manager_of(&self, store: Arc<dyn Store>, name: HostRef) -> Manager {
        let hosts = OneHost {
            name,
            host: self.host.clone(),
            outside: self.outside.clone(),
            limits: self.limits.clone(),
        };
        Manager::new(
            store,
            Arc::new(hosts),
            self.clock.clone(),
            self.settings.clone(),
        )
    }

    pub(crate) async fn start(&self) -> Process {
        Process::start(self.manager()).await
    }

    /// A process that has another host than the others.
    pub(crate) async fn start_of(&self, host: HostRef) -> Process {
        Process::start(self.manager_of(self.store(), host)).await
    }

    /// A handle without a worker whose every write takes this long.
    pub(crate) fn slow_manager(&self, pause: Duration) -> Manager {
        let store = Slow {
            store: self.store(),
            pause,
        };
        self.manager_of(Arc::new(store), key())
    }

    /// A process whose store counts what is asked of it.
    pub(crate) async fn start_counted(&self) -> (Process, Arc<Asked>) {
        let asked = Arc::new(Asked::default());
        let store = Counting {
            store: self.store(),
            asked: asked.clone(),
        };
        let process = Process::start(self.manager_of(Arc::new(store), key())).await;
        (process, asked)
    }

    /// A process whose store can be made to fail.
    pub(crate) async fn start_flaky(&self) -> (Process, Arc<AtomicBool>) {
        let fails = Arc::new(AtomicBool::new(false));
        let store = Flaky {
            store: self.store(),
            fails: fails.clone(),
        };
        let process = Process::start(self.manager_of(Arc::new(store), key())).await;
        (process, fails)
    }

    /// The ends that a session was told of, in one message or another: the line of each.
    pub(crate) fn ends_told(&self, session: &str) -> Vec<String> {
        let told = self.told(session).into_iter();
        told.flat_map(|(visible, _)| ends(&visible)).collect()
    }

    /// What a session was told, oldest first: the visible part, the hidden part.
    pub(crate) fn told(&self, session: &str) -> Vec<(String, String)> {
        let lines = self.host.world().lines(&session.into()).expect("lines");
        let told = lines.into_iter().filter_map(|line| match line {
            Line::Told {
                visible, hidden, ..
            } => Some((visible, hidden)),
            _ => None,
        });
        told.collect()
    }

    /// What is in the session of a task.
    pub(crate) fn child(&self, task: &TaskId) -> Vec<Line> {
        let session = ScriptedHost::session_of(task);
        self.host.world().lines(&session).expect("lines")
    }

    /// The prompts a child was given.
    pub(crate) fn prompts(&self, task: &TaskId) -> Vec<String> {
        let lines = self.child(task).into_iter();
        let prompts = lines.filter_map(|line| match line {
            Line::Prompted { text, .. } => Some(text),
            _ => None,
        });
        prompts.collect()
    }
}

/// The ends that a message tells: the line of each.
pub(crate) fn ends(visible: &str) -> Vec<String> {
    let lines = visible.lines().map(str::to_owned);
    let ends = lines.filter(|line| line.starts_with(['✓', '✗', '⊘']));
    ends.collect()
}

/// Everything that happened to a task.
pub(crate) async fn events(store: Arc<dyn Store>, id: &TaskId) -> Vec<Saved> {
    let id = id.clone();
    read(store, move |journal| journal.events(&id)).await
}

/// A task's notices.
pub(crate) async fn notices(store: Arc<dyn Store>, id: &TaskId) -> Vec<Posted> {
    let id = id.clone();
    let mut posts = read(store, move |journal| journal.posts(&id)).await;
    posts.retain(|post| post.kind == PostKind::Notice);
    posts
}

/// What became of a task's notices.
pub(crate) async fn fates(store: Arc<dyn Store>, id: &TaskId) -> Vec<Fate> {
    let notices = notices(store, id).await.into_iter();
    notices.map(|post| post.fate).collect()
}

async fn read<T: Send + 'static>(
    store: Arc<dyn Store>,
    look: impl Fn(&mut dyn Journal) -> Stored<T> + Send + 'static,
) -> T {
    let (sender, receiver) = std::sync::mpsc::channel();
    let work = Box::new(move |journal: &mut dyn Journal| sender.send(look(journal)).is_ok());
    store.read(work).await.expect("read");
    receiver.recv().expect("an answer").expect("read")
}

pub(crate) fn key() -> HostRef {
    HostRef::from("scripted")
}

pub(crate) fn session(name: &str) -> Caller {
    Caller::Session {
        session: SessionId::from(name),
        host: key().into(),
        outside: None,
        message: None,
    }
}

pub(crate) fn asks(prompt: &str) -> TaskArgs {
    TaskArgs {
        description: prompt.to_owned(),
        prompt: prompt.to_owned(),
        agent: "general".to_owned(),
        ..TaskArgs::default()
    }
}

impl Process {
    async fn start(manager: Manager) -> Self {
        let worker = Worker::start(&manager).await.expect("a worker");
        Self { manager, worker }
    }
}

/// What session `main` does.
impl Process {
    pub(crate) async fn try_task(&self, args: TaskArgs) -> Result<Accepted, Problem> {
        self.manager.task(&session("main"), args).await
    }

    pub(crate) async fn launch(&self, prompt: &str) -> TaskId {
        self.launch_args(asks(prompt)).await
    }

    pub(crate) async fn launch_args(&self, args: TaskArgs) -> TaskId {
        let accepted = self.try_task(args).await.expect("launched");
        accepted.shown.task.id
    }

    pub(crate) async fn launch_from(&self, parent: &str, prompt: &str) -> TaskId {
        let accepted = self.manager.task(&session(parent), asks(prompt)).await;
        accepted.expect("launched").shown.task.id
    }

    pub(crate) async fn resume(&self, task: &TaskId, prompt: &str) -> Result<Accepted, Problem> {
        self.try_task(TaskArgs {
            prompt: prompt.to_owned(),
            resume: Some(task.to_string()),
            ..TaskArgs::default()
        })
        .await
    }

    pub(crate) async fn output(&self, task: &TaskId) -> Report {
        let request = OutputRequest::new(task.as_str(), false, None).expect("a request");
        self.manager
            .output(&session("main"), request)
            .await
            .expect("output")
    }

    /// Waits as a blocked caller does.
    pub(crate) async fn wait(&self, task: &TaskId) -> Report {
        let request = OutputRequest::new(task.as_str(), true, Some(600)).expect("a request");
        self.manager
            .output(&session("main"), request)
            .await
            .expect("output")
    }

    /// Looks at a task without reading its result.
    pub(crate) async fn look(&self, task: &TaskId) -> Task {
        let report = self
            .manager
            .follow(&Caller::Person, task.as_str(), None, Duration::ZERO);
        report.await.expect("a task").shown.task
    }

    pub(crate) async fn status(&self, task: &TaskId) -> Status {
        self.look(task).await.status()
    }

    pub(crate) async fn list(&self, of: &str) -> String {
        let request = ListRequest {
            of: Some(of.into()),
            ..ListRequest::usual()
        };
        let list = self.manager.list(request).await.expect("a list");
        list.text(self.manager.now(), Reader::Person, None)
    }

    /// Until every task has ended and every parent has been told.
    pub(crate) async fn settled(&self) {
        until("everything is settled", async || {
            self.manager.unfinished().await.expect("a count") == 0
        })
        .await;
    }

    /// Until the host has a task's prompt.
    pub(crate) async fn until_prompted(&self, task: &TaskId) {
        until(&format!("{task} is prompted"), async || {
            let state = self.look(task).await.state;
            matches!(
                state,
                State::Running {
                    stage: Stage::Working,
                    ..
                }
            )
        })
        .await;
    }

    /// Until a task is in a state.
    pub(crate) async fn until_status(&self, task: &TaskId, wanted: Status) {
        until(&format!("{task} is {wanted}"), async || {
            self.status(task).await == wanted
        })
        .await;
    }
}

/// Lets time pass until something is so; it has to be within a day.
pub(crate) async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let begun = tokio::time::Instant::now();
    let mut pause = Duration::from_millis(50);
    while !is_so().await {
        assert!(begun.elapsed() < seconds(24 * 3_600), "never: {what}");
        tokio::time::sleep(pause).await;
        pause = (pause * 6 / 5).min(seconds(5));
    }
}
