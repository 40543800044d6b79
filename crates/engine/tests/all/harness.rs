//! A workspace, a database, a scripted model, and the agent between them.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use asyncagents_core::{
    agent::{Mode, Usage},
    answer::Shown,
    host_ref::{HostRef, HostSetup},
    id::{PostId, SessionId},
    lifecycle::Standing,
    port::{
        Commands, Delegation, Host, HostError, Prompt, Report, SessionEvent, Store, Stored, Work,
    },
    progress::Totals,
    task::{Outcome, Task},
    task_list::ListRequest,
};
use asyncagents_engine::{Approver, Begin, CommandLimit, CommandSlots, Engine, Parts, Settings};
use asyncagents_models::{KeySource, Models, Provider, Wire};
use asyncagents_runtime::{
    Hosts, Manager, SkillAround, SkillDirs, SkillPlaces, Skills, SystemClock, ToolDoor, Worker,
};
use asyncagents_scripted_model::{ModelServer, Script};
use asyncagents_store::{Durability, Options, Sqlite};
use asyncagents_tools::Toolbox;
use tempfile::TempDir;
use tokio::time;

/// Long enough for a busy machine; nothing waits for it when all is well.
const PATIENCE: Duration = Duration::from_secs(60);

/// How a harness is furnished.
pub(crate) struct Plan {
    pub(crate) wire: Wire,
    pub(crate) prices: Option<String>,
    pub(crate) attempts: u32,
    pub(crate) settings: Box<dyn Fn(&mut Settings) + Send + Sync>,
    pub(crate) runtime: asyncagents_runtime::Settings,
    /// How many commands run at once.
    pub(crate) commands: CommandLimit,
    pub(crate) approver: Option<Arc<dyn Approver>>,
    pub(crate) delegation: Option<Arc<dyn Delegation>>,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            wire: Wire::Anthropic,
            prices: None,
            attempts: 4,
            settings: Box::new(|_| {}),
            runtime: asyncagents_runtime::Settings::default(),
            commands: CommandLimit::Cores,
            approver: None,
            delegation: None,
        }
    }
}

/// Everything, in one process.
pub(crate) struct Harness {
    pub(crate) folder: Arc<TempDir>,
    pub(crate) model: Arc<ModelServer>,
    pub(crate) manager: Manager,
    pub(crate) engine: Engine,
    pub(crate) skills: Skills,
    pub(crate) commands: Arc<SaidCommands>,
    /// How often the engine has waited for the disk.
    pub(crate) synced: Arc<AtomicUsize>,
    worker: Option<Worker>,
    plan: Arc<Plan>,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) outcome: Outcome,
    pub(crate) answer: Option<String>,
}

impl Ended {
    pub(crate) fn said(&self) -> &str {
        assert_eq!(self.outcome, Outcome::Completed, "{self:?}");
        self.answer.as_deref().unwrap_or_default()
    }

    pub(crate) fn error(&self) -> &str {
        match &self.outcome {
            Outcome::Failed { why } => why,
            other => panic!("{other:?} {:?}", self.answer),
        }
    }
}

impl Harness {
    pub(crate) async fn new(script: Script) -> Self {
        Self::with(script, Plan::default()).await
    }

    pub(crate) async fn with(script: Script, plan: Plan) -> Self {
        let model = ModelServer::start(script).await.expect("a port");
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("work")).expect("a workspace");
        Self::open(Arc::new(folder), Arc::new(model), Arc::new(plan)).await
    }

    async fn open(folder: Arc<TempDir>, model: Arc<ModelServer>, plan: Arc<Plan>) -> Self {
        let options = Options {
            durability: Durability::Process,
            ..Options::default()
        };
        let db = folder.path().join("db");
        let store: Arc<dyn Store> = Arc::new(Sqlite::open_with(db, options).expect("opened"));
        let hosts = Arc::new(OneHost::default());
        let manager = Manager::new(
            store.clone(),
            hosts.clone(),
            Arc::new(SystemClock),
            plan.runtime.clone(),
        );
        let commands = Arc::new(SaidCommands::default());
        let skills = skills(&folder, commands.clone());
        let synced = Arc::new(AtomicUsize::new(0));
        let store = Arc::new(CountedStore {
            inner: store,
            synced: synced.clone(),
        });
        let engine = engine(&folder, &model, &manager, store, &plan, &skills);
        let _ = hosts.0.set(engine.clone());
        let worker = Worker::start(&manager).await.expect("a worker");
        Self {
            folder,
            model,
            manager,
            engine,
            skills,
            commands,
            synced,
            worker: Some(worker),
            plan,
        }
    }

    /// Ends as if the process had been killed, and begins again as another one.
    pub(crate) async fn killed(mut self) -> Self {
        self.engine.kill();
        // Its lease is renewed no more, and runs out after a while.
        if let Some(worker) = self.worker.take() {
            worker.kill();
        }
        Self::open(self.folder.clone(), self.model.clone(), self.plan.clone()).await
    }

    /// Another process begins, and this one does nothing but what its drivers do.
    pub(crate) async fn asleep(mut self) -> Self {
        if let Some(worker) = self.worker.take() {
            worker.stop().await;
        }
        Self::open(self.folder.clone(), self.model.clone(), self.plan.clone()).await
    }

    /// Waits until the process that worked in a session is known to be dead.
    pub(crate) async fn until_free(&self, session: &SessionId) {
        while self.engine.is_busy(session).await.expect("seen") {
            time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Another process beside this one.
    pub(crate) async fn beside(&self) -> Self {
        Self::open(self.folder.clone(), self.model.clone(), self.plan.clone()).await
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("work").join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("written");
    }

    /// A skill of the project.
    pub(crate) fn skill(&self, name: &str, head: &str, body: &str) {
        let folder = self.path(".asyncagents/skills").join(name);
        fs::create_dir_all(&folder).expect("a folder");
        let text = format!("---\nname: {name}\n{head}\n---\n{body}\n");
        fs::write(folder.join("SKILL.md"), text).expect("written");
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    pub(crate) async fn begin(&self, agent: &str) -> SessionId {
        let begin = Begin {
            title: "a story".to_owned(),
            agent: agent.into(),
            model: None,
        };
        self.engine.begin(begin).await.expect("begun")
    }

    /// Says what to do, without waiting for it.
    pub(crate) async fn prompt(&self, session: &SessionId, text: &str) -> PostId {
        let agent = self.engine.session(session).await.expect("there").agent;
        self.prompt_as(session, text, agent.as_str())
            .await
            .expect("taken")
    }

    pub(crate) async fn prompt_as(
        &self,
        session: &SessionId,
        text: &str,
        agent: &str,
    ) -> Result<PostId, HostError> {
        let id = PostId::from(format!("prompt {text}"));
        let prompt = Prompt {
            id: id.clone(),
            text: text.to_owned(),
            agent: agent.into(),
            model: None,
            effort: None,
            role: None,
        };
        self.engine.prompt(session, prompt).await?;
        Ok(id)
    }

    /// Waits until a run is over.
    pub(crate) async fn ended(&self, session: &SessionId, prompt: &PostId) -> Ended {
        let mut events = self.engine.subscribe();
        let ended = async {
            loop {
                let inspected = self.engine.inspect(session, prompt).await;
                if let Standing::Done { outcome, answer } = inspected.expect("seen").standing {
                    return Ended { outcome, answer };
                }
                loop {
                    match events.next().await {
                        Some(Report::Session(which, SessionEvent::Idle)) if which == *session => {
                            break;
                        }
                        Some(Report::Missed) | None => break,
                        Some(_) => {}
                    }
                }
            }
        };
        match time::timeout(PATIENCE, ended).await {
            Ok(ended) => ended,
            Err(_) => {
                let requests = self.model.requests();
                let last: Vec<String> = requests.iter().map(|request| request.last()).collect();
                panic!("the run never ends; the model was asked {last:#?}");
            }
        }
    }

    /// A run of the agent `general`, from its prompt to its end.
    pub(crate) async fn run(&self, text: &str) -> Ended {
        let session = self.begin("general").await;
        let prompt = self.prompt(&session, text).await;
        self.ended(&session, &prompt).await
    }

    pub(crate) async fn used(&self, session: &SessionId) -> (Totals, Usage) {
        self.engine.used(session).await.expect("counted")
    }

    pub(crate) async fn tasks(&self, session: &SessionId) -> Vec<Task> {
        let request = ListRequest {
            of: Some(session.clone()),
            ..ListRequest::all()
        };
        let list = self.manager.list(request).await.expect("listed");
        list.tasks.into_iter().map(|shown| shown.task).collect()
    }

    /// The tasks of all sessions.
    pub(crate) async fn all_tasks(&self) -> Vec<Shown> {
        let list = self.manager.list(ListRequest::all()).await;
        list.expect("listed").tasks
    }

    /// The bodies of the requests, in order, of those whose text contains this.
    pub(crate) fn bodies(&self, containing: &str) -> Vec<String> {
        let requests = self.model.requests().into_iter();
        let fits = requests.filter(|request| request.body.contains(containing));
        fits.map(|request| request.body).collect()
    }

    pub(crate) async fn close(mut self) {
        if let Some(worker) = self.worker.take() {
            worker.stop().await;
        }
        self.engine.stop().await;
        let unanswered = self.model.unanswered();
        let unanswered: Vec<String> = unanswered.iter().map(|request| request.last()).collect();
        assert!(
            unanswered.is_empty(),
            "the script has no reply: {unanswered:?}"
        );
    }
}

/// Counts what has to be on disk before it goes on.
struct CountedStore {
    inner: Arc<dyn Store>,
    synced: Arc<AtomicUsize>,
}

#[async_trait]
impl Store for CountedStore {
    async fn write(&self, work: Work) -> Stored<()> {
        self.synced.fetch_add(1, Ordering::SeqCst);
        self.inner.write(work).await
    }

    async fn write_unsynced(&self, work: Work) -> Stored<()> {
        self.inner.write_unsynced(work).await
    }

    async fn read(&self, work: Work) -> Stored<()> {
        self.inner.read(work).await
    }

    async fn version(&self) -> Stored<i64> {
        self.inner.version().await
    }

    async fn changed_since(&self, version: i64) -> i64 {
        self.inner.changed_since(version).await
    }

    async fn give_back_room(&self, is_alone: bool) -> Stored<u64> {
        self.inner.give_back_room(is_alone).await
    }
}

/// What skills' commands would have run, and what they print.
#[derive(Default)]
pub(crate) struct SaidCommands(Mutex<Vec<String>>);

impl SaidCommands {
    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().expect("not poisoned").clone()
    }
}

#[async_trait]
impl Commands for SaidCommands {
    async fn run(&self, command: &str) -> Result<String, String> {
        self.0
            .lock()
            .expect("not poisoned")
            .push(command.to_owned());
        if command.contains("fails") {
            Err("exit code 1".to_owned())
        } else {
            Ok(format!("<printed by {command}>\n"))
        }
    }
}

fn skills(folder: &TempDir, commands: Arc<SaidCommands>) -> Skills {
    let workspace = folder.path().join("work").canonicalize().expect("a folder");
    let places = SkillPlaces::usual(&SkillAround {
        workspace: Some(&workspace),
        ..SkillAround::default()
    });
    Skills::new(SkillDirs::new(places), commands, workspace)
}

#[derive(Default)]
struct OneHost(OnceLock<Engine>);

#[async_trait::async_trait]
impl Hosts for OneHost {
    fn serves(&self, _: &HostRef) -> bool {
        true
    }

    fn open(&self, _: &HostSetup) -> Result<Arc<dyn Host>, HostError> {
        let engine = self.0.get().cloned();
        let engine = engine.ok_or(HostError::Unreachable("not yet".to_owned()))?;
        Ok(Arc::new(engine))
    }
}

fn engine(
    folder: &TempDir,
    model: &ModelServer,
    manager: &Manager,
    store: Arc<dyn Store>,
    plan: &Plan,
    skills: &Skills,
) -> Engine {
    let workspace = folder.path().join("work").canonicalize().expect("a folder");
    let mut settings = Settings {
        model: Some("test/model".to_owned()),
        agent_folders: vec![workspace.join(".asyncagents/agents")],
        ..Settings::new(workspace.clone())
    };
    settings.permissions.mode = Mode::Yolo;
    (plan.settings)(&mut settings);
    let models = Models::new(asyncagents_models::Settings {
        providers: vec![Provider {
            name: "test".to_owned(),
            wire: plan.wire,
            base_url: model.url(),
            key: KeySource::None,
            headers: Vec::new(),
        }],
        prices: plan.prices.clone(),
        attempts: plan.attempts,
        ..asyncagents_models::Settings::default()
    });
    let toolbox = asyncagents_tools::Settings::new(workspace, Path::new("no-helper"));
    let delegation: Arc<dyn Delegation> = match &plan.delegation {
        Some(delegation) => delegation.clone(),
        None => {
            let door = ToolDoor::new(manager, HostRef::engine("test").into());
            Arc::new(door.with_skills(skills.clone()))
        }
    };
    Engine::new(Parts {
        settings,
        store,
        clock: Arc::new(SystemClock),
        models: models.expect("models"),
        toolbox: Toolbox::new(toolbox).expect("a toolbox"),
        delegation,
        commands: Arc::new(CommandSlots::new(plan.commands)),
        approver: plan.approver.clone(),
        owner: {
            let manager = manager.downgrade();
            Arc::new(move || manager.upgrade()?.owner())
        },
    })
}
