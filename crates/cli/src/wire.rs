//! The one place that knows every room: which store, which hosts, which clock.

use std::{
    collections::{BTreeMap, HashMap},
    env, fs,
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use anyhow::{Context, anyhow};
use asyncagents_core::{
    id::HostKey,
    port::{Clock, Host, HostError, Store},
};
use asyncagents_engine::{Approver, Engine, Parts};
use asyncagents_hosts::scripted::{Script, ScriptedHost, World};
use asyncagents_models::Models;
use asyncagents_runtime::{Hosts, Manager, SystemClock, ToolDoor, WeakManager};
use asyncagents_store::Sqlite;
use asyncagents_tools::Toolbox;

use crate::{
    config::{AgentConfig, Config, config_folder, load_launched},
    exit::Failure,
};

/// What the scripted host's children say: nobody should take it for work.
const NOTHING_DONE: &str = include_str!("nothing_done.toml");

/// Everything that a command works with.
pub(crate) struct House {
    pub(crate) manager: Manager,
    pub(crate) hosts: Arc<KnownHosts>,
}

/// How a house is furnished.
#[derive(Default)]
pub(crate) struct Furniture {
    /// Who is asked for permission.
    pub(crate) approver: Option<Arc<dyn Approver>>,
    /// Whether a person's run waits for its background tasks.
    pub(crate) no_wait: bool,
    /// The one host whose tasks this process looks after, if not all: a run works for its own
    /// folder, whatever was said when a task there was launched.
    pub(crate) only: Option<HostKey>,
    /// Nothing is read from files of settings.
    pub(crate) bare: bool,
}

/// Opens the configured file. Must be called inside a tokio runtime.
pub(crate) fn house(config: &Config, furniture: Furniture) -> Result<House, Failure> {
    let is_empty = fs::metadata(&config.db).is_ok_and(|file| file.len() == 0);
    if is_empty && beside(&config.db, "worker.lock").exists() {
        return Err(Failure::Machine(anyhow!(
            "{} is empty, though it has been in use; it was left as it is. Bring back a copy, or \
             choose another file with --db",
            config.db.display()
        )));
    }
    let store: Arc<dyn Store> = Arc::new(Sqlite::open(&config.db).map_err(Failure::store)?);
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let hosts = Arc::new(KnownHosts {
        db: config.db.clone(),
        store: store.clone(),
        clock: clock.clone(),
        furniture,
        manager: OnceLock::new(),
        engines: Mutex::default(),
    });
    let manager = Manager::new(store, hosts.clone(), clock, config.runtime());
    // Nobody else has it yet.
    let _ = hosts.manager.set(manager.downgrade());
    Ok(House { manager, hosts })
}

/// A file or folder that belongs to the database.
pub(crate) fn beside(db: &Path, what: &str) -> PathBuf {
    let mut name = db.file_name().unwrap_or_default().to_owned();
    name.push(".");
    name.push(what);
    db.with_file_name(name)
}

/// The configured host under the name that any process knows it by. `said` is what was said
/// about the built-in agent; it is part of the name, so that a worker works on a task as its
/// launcher wanted, and not as the one who started the worker.
pub(crate) fn host_key(host: &str, said: &BTreeMap<String, String>) -> anyhow::Result<HostKey> {
    match host.split_once(':') {
        None if host == "scripted" => Ok(host.into()),
        None if host == "engine" => engine_key(&env::current_dir()?, said),
        Some(("engine", folder)) => {
            engine_key(Path::new(folder), said).with_context(|| format!("--host {host}"))
        }
        Some(("scripted", file)) => {
            let path = fs::canonicalize(file).with_context(|| format!("--host {host}"))?;
            let text = fs::read_to_string(&path).with_context(|| format!("--host {host}"))?;
            Script::parse(&text, &path).with_context(|| format!("--host {host}"))?;
            // A script that was edited is another host.
            let mut edition = DefaultHasher::new();
            text.hash(&mut edition);
            let edition = edition.finish() & 0xffff_ffff;
            Ok(format!("scripted:{}#{edition:08x}", path.display()).into())
        }
        _ => anyhow::bail!(
            "--host {host}: there are engine, engine:FOLDER, scripted and scripted:FILE"
        ),
    }
}

/// The built-in agent in a folder.
fn engine_key(folder: &Path, said: &BTreeMap<String, String>) -> anyhow::Result<HostKey> {
    let folder = fs::canonicalize(folder).with_context(|| folder.display().to_string())?;
    if !folder.is_dir() {
        anyhow::bail!("{} is not a folder", folder.display());
    }
    let folder = folder.to_str();
    let folder = folder.ok_or_else(|| anyhow!("the folder's name is not text"))?;
    if said.is_empty() {
        return Ok(format!("{ENGINE}{folder}").into());
    }
    let said = serde_json::to_string(said)?;
    Ok(format!("{ENGINE}{folder}{SAID}{said}").into())
}

/// The folder and what was said, from a key.
fn engine_of(key: &HostKey) -> anyhow::Result<(PathBuf, BTreeMap<String, String>)> {
    let name = key.as_str().strip_prefix(ENGINE).unwrap_or_default();
    match name.split_once(SAID) {
        None => Ok((PathBuf::from(name), BTreeMap::new())),
        Some((folder, said)) => Ok((PathBuf::from(folder), serde_json::from_str(said)?)),
    }
}

/// A host as people know it, without what was said at a launch.
pub(crate) fn shown_host(key: &HostKey) -> &str {
    let key = key.as_str();
    key.split_once(SAID).map_or(key, |(host, _)| host)
}

const ENGINE: &str = "engine:";

/// Between the folder and what was said; no path has it.
const SAID: &str = "//?";

/// The models that are configured.
pub(crate) fn models(config: &AgentConfig) -> anyhow::Result<Models> {
    let settings = config.models().map_err(|why| anyhow!(why))?;
    Ok(Models::new(settings)?)
}

/// The hosts that tasks can run in.
pub(crate) struct KnownHosts {
    db: PathBuf,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    furniture: Furniture,
    manager: OnceLock<WeakManager>,
    engines: Mutex<HashMap<HostKey, Engine>>,
}

impl Hosts for KnownHosts {
    fn serves(&self, key: &HostKey) -> bool {
        if let Some(only) = &self.furniture.only {
            return shown_host(only) == shown_host(key);
        }
        let key = key.as_str();
        key == "scripted" || key.starts_with("scripted:") || key.starts_with(ENGINE)
    }

    fn open(&self, key: &HostKey) -> Result<Arc<dyn Host>, HostError> {
        match key.as_str().split_once(':') {
            Some(("engine", _)) => Ok(Arc::new(self.engine(key)?)),
            Some((_, file)) => {
                let file = file.rsplit_once('#').map_or(file, |(file, _)| file);
                self.scripted(Script::load(Path::new(file)))
            }
            None => self.scripted(Script::parse(NOTHING_DONE, Path::new("scripted"))),
        }
    }
}

impl KnownHosts {
    /// The built-in agent in the folder that the key names.
    pub(crate) fn engine(&self, key: &HostKey) -> Result<Engine, HostError> {
        let mut engines = self.engines.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(engine) = engines.get(key) {
            return Ok(engine.clone());
        }
        let engine = self
            .make_engine(key)
            .map_err(|error| HostError::Refused(format!("{error:#}")))?;
        engines.insert(key.clone(), engine.clone());
        Ok(engine)
    }

    /// Lets all built-in agents finish their step.
    pub(crate) async fn stop(&self) {
        let engines: Vec<Engine> = {
            let engines = self.engines.lock().unwrap_or_else(PoisonError::into_inner);
            engines.values().cloned().collect()
        };
        for engine in engines {
            engine.stop().await;
        }
    }

    fn make_engine(&self, key: &HostKey) -> anyhow::Result<Engine> {
        let (workspace, said) = engine_of(key)?;
        if !workspace.is_dir() {
            anyhow::bail!("the folder {} is not there any more", workspace.display());
        }
        // What is configured for that folder, which need not be the one we are in.
        let folder = (!self.furniture.bare).then_some(workspace.as_path());
        let loaded = load_launched(folder, &said)?;
        let config = &loaded.config;
        let agent = &config.agent_config;
        let models = models(agent)?;
        let manager = self.manager.get().and_then(WeakManager::upgrade);
        let manager = manager.ok_or_else(|| anyhow!("asyncagents is ending"))?;
        let settings = asyncagents_engine::Settings {
            model: (agent.model != "auto").then(|| agent.model.clone()),
            effort: agent.effort,
            permissions: agent.permissions.clone(),
            compact_at: agent.compact_at,
            max_turns: agent.max_turns,
            same_calls: config.limits.same_calls,
            wait_for_tasks: !self.furniture.no_wait,
            agent_folders: agent_folders(&workspace),
            prefix: manager.settings().wording.prefix.clone(),
            ..asyncagents_engine::Settings::new(workspace.clone())
        };
        Ok(Engine::new(Parts {
            settings,
            store: self.store.clone(),
            clock: self.clock.clone(),
            toolbox: self.toolbox(&workspace, agent, &models)?,
            models,
            delegation: Arc::new(ToolDoor::new(&manager, key.clone())),
            approver: self.furniture.approver.clone(),
            owner: {
                let manager = manager.downgrade();
                Arc::new(move || manager.upgrade()?.owner())
            },
        }))
    }

    fn toolbox(
        &self,
        workspace: &Path,
        agent: &AgentConfig,
        models: &Models,
    ) -> anyhow::Result<Toolbox> {
        let settings = asyncagents_tools::Settings {
            allowed: agent.allowed.clone(),
            readable: agent.readable.clone(),
            sandbox: agent.sandbox,
            network: agent.network,
            secret_variables: models.secret_variables(),
            secret_paths: self.secret_paths(),
            bash_timeout: agent.bash_timeout,
            output_limit: agent.output,
            ..asyncagents_tools::Settings::new(workspace.to_owned(), helper()?)
        };
        Toolbox::new(settings).with_context(|| workspace.display().to_string())
    }

    /// What all agents said and did, and what the user has configured.
    fn secret_paths(&self) -> Vec<PathBuf> {
        let beside = |what: &str| {
            let mut name = self.db.clone().into_os_string();
            name.push(what);
            PathBuf::from(name)
        };
        let db = ["", "-wal", "-shm"].map(beside);
        db.into_iter().chain(config_folder()).collect()
    }

    fn scripted<E: ToString>(&self, script: Result<Script, E>) -> Result<Arc<dyn Host>, HostError> {
        let script = script.map_err(|error| HostError::Refused(error.to_string()))?;
        let world = World::in_folder(&beside(&self.db, "sessions"));
        let world = world.map_err(|error| HostError::Refused(error.to_string()))?;
        Ok(Arc::new(ScriptedHost::new(
            script,
            world,
            self.clock.clone(),
        )))
    }
}

/// This program, as it was started: a file of its name may have become another since, by an
/// update, or by a command in the workspace.
fn helper() -> std::io::Result<PathBuf> {
    match cfg!(target_os = "linux") {
        true => Ok(PathBuf::from("/proc/self/exe")),
        false => env::current_exe(),
    }
}

/// Where agents are declared: for the user, then for the project; other tools' folders
/// before our own.
fn agent_folders(workspace: &Path) -> Vec<PathBuf> {
    let home = env::var_os("HOME").map(PathBuf::from);
    let home = home.filter(|home| home.is_absolute());
    let config = home.as_ref().map(|home| home.join(".config"));
    let mut folders = Vec::new();
    folders.extend(config.iter().map(|config| config.join("opencode/agent")));
    folders.extend(config.iter().map(|config| config.join("opencode/agents")));
    folders.extend(home.iter().map(|home| home.join(".claude/agents")));
    folders.extend(config_folder().map(|config| config.join("agents")));
    for theirs in [
        ".opencode/agent",
        ".opencode/agents",
        ".claude/agents",
        ".asyncagents/agents",
    ] {
        folders.push(workspace.join(theirs));
    }
    folders
}
