//! The one place that knows every room: which store, which hosts, which clock.

use std::{
    collections::{BTreeMap, HashMap},
    env, fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use anyhow::{Context, anyhow};
use async_trait::async_trait;
use asyncagents_core::{
    agent::{Kind, Permissions, Verdict},
    digest::digest,
    id::{HostKey, ModelName},
    port::{Clock, Commands, Host, HostError, Store},
    task_limits::TaskLimits,
};
use asyncagents_engine::{Approver, Engine, Parts, agent_names};
use asyncagents_hosts::{
    opencode::{self, Address, BridgeConnection, HttpConnection, OpenCode},
    scripted::{Script, ScriptedHost, World},
};
use asyncagents_models::Models;
use asyncagents_runtime::{
    Hosts, Manager, SkillAround, SkillDirs, SkillPlaces, Skills, SystemClock, ToolDoor, WeakManager,
};
use asyncagents_tools::{Toolbox, secret_paths_named_by};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{
    config::{
        AgentConfig, Config, SkillConfig, config_folder, data_folder, load_launched,
        lowered_by_project,
    },
    exit::Failure,
    launch_secrets,
    own_file::can_write,
    print,
    seal::key_file,
    trust::{self, Database, Launches, Older, Sealed, Standing},
};

/// What the scripted host's children say: nobody should take it for work.
const NOTHING_DONE: &str = include_str!("nothing_done.toml");

/// How often a bridge looks whether another process has written. Nearly everything about its
/// tasks comes through itself, and it is there for as long as OpenCode is.
const LOOK_OF_BRIDGES: Duration = Duration::from_millis(500);

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
    /// The OpenCode around this process. It looks after no other tasks then.
    pub(crate) bridges: Option<Arc<Bridges>>,
    /// Nothing is worked on, only looked at; so the database may be anybody's.
    pub(crate) looks: bool,
    /// Nothing is said about whose it is.
    pub(crate) quiet: bool,
    /// What becomes of a database from before there were seals.
    pub(crate) older: Older,
    /// Whose key the database is sealed with.
    pub(crate) sealed: Sealed,
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
    let Furniture { older, sealed, .. } = furniture;
    let opened = match furniture.looks && !can_write(&config.db) {
        true => trust::open_read_only(&config.db),
        false => trust::open(&config.db, older, sealed),
    };
    let Database { store, standing } = opened?;
    let launches = match standing {
        Standing::Ours(launches) => Some(launches),
        Standing::Foreign(why) => {
            let name = config.db.display();
            let foreign = format!("{name} {why}");
            let hint = why.hint(&config.db);
            if !furniture.looks {
                return Err(Failure::Input(anyhow!(
                    "{foreign}: nothing in it is run or changed. {hint}"
                )));
            }
            if !furniture.quiet {
                print::remark(&format!(
                    "asyncagents: {foreign}: it is only looked at. {hint}\n"
                ));
            }
            None
        }
    };
    let store: Arc<dyn Store> = Arc::new(store);
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let hosts = Arc::new(KnownHosts {
        config: config.clone(),
        db: config.db.clone(),
        store: store.clone(),
        clock: clock.clone(),
        launches,
        furniture,
        manager: OnceLock::new(),
        engines: Mutex::default(),
    });
    let mut settings = config.runtime();
    if hosts.furniture.bridges.is_some() {
        settings.look = LOOK_OF_BRIDGES;
    }
    let manager = Manager::new(store, hosts.clone(), clock, settings);
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

/// The built-in agent in a folder, as people know it.
pub(crate) fn engine_in(folder: &Path) -> anyhow::Result<HostKey> {
    Ok(format!("{ENGINE}{}", real_folder(folder)?).into())
}

fn real_folder(folder: &Path) -> anyhow::Result<String> {
    let folder = fs::canonicalize(folder).with_context(|| folder.display().to_string())?;
    if !folder.is_dir() {
        anyhow::bail!("{} is not a folder", folder.display());
    }
    let folder = folder.to_str();
    let folder = folder.ok_or_else(|| anyhow!("the folder's name is not text"))?;
    Ok(folder.to_owned())
}

/// A folder that was sealed must still be where it was: one that has become a link, or is below
/// one, would take a task elsewhere.
fn check_in_place(folder: &Path) -> anyhow::Result<()> {
    let name = folder.display();
    match fs::canonicalize(folder) {
        Ok(real) if real == folder && real.is_dir() => Ok(()),
        Ok(real) if real == folder => anyhow::bail!("{name} is not a folder any more"),
        Ok(real) => anyhow::bail!(
            "the folder {name} leads to {} now, where it was not launched; launch it anew there",
            real.display()
        ),
        Err(_) => anyhow::bail!("the folder {name} is not there any more"),
    }
}

/// A host's name in its parts: `engine:/folder`, what was said about it as JSON, and what proves
/// who said so.
struct SealedKey<'a> {
    host: &'a str,
    said: &'a str,
    seal: &'a str,
}

impl<'a> SealedKey<'a> {
    fn of(key: &'a HostKey) -> Self {
        let (host, said) = key.as_str().split_once(SAID).unwrap_or((key.as_str(), ""));
        // Without a seal it is an older version's, or nobody's.
        let (said, seal) = said.rsplit_once(SEAL).unwrap_or((said, ""));
        Self { host, said, seal }
    }

    /// The folder of a built-in agent.
    fn folder(&self) -> Option<&'a Path> {
        self.host.strip_prefix(ENGINE).map(Path::new)
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

/// Between what was said and its seal.
const SEAL: &str = "//#";

/// The models that are configured.
pub(crate) fn models(config: &AgentConfig) -> anyhow::Result<Models> {
    let settings = config.models().map_err(|why| anyhow!(why))?;
    Ok(Models::new(settings)?)
}

/// The hosts that tasks can run in.
pub(crate) struct KnownHosts {
    config: Config,
    db: PathBuf,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    /// Knows what this user has launched here; nothing if the database is not this user's.
    launches: Option<Launches>,
    furniture: Furniture,
    manager: OnceLock<WeakManager>,
    engines: Mutex<HashMap<HostKey, (Engine, Skills)>>,
}

impl Hosts for KnownHosts {
    fn serves(&self, key: &HostKey) -> bool {
        if self.launches.is_none() {
            return false;
        }
        if let Some(only) = &self.furniture.only {
            return shown_host(only) == shown_host(key);
        }
        if let Some(bridges) = &self.furniture.bridges {
            return bridges.serve(key);
        }
        let name = key.as_str();
        name == "scripted"
            || name.starts_with("scripted:")
            || name.starts_with(ENGINE)
            || url_of(key).is_some()
    }

    fn heir(&self, key: &HostKey) -> Option<HostKey> {
        self.furniture.bridges.as_ref()?.heir(key)
    }

    /// A broken file of settings is told when the host is opened.
    fn limits(&self, key: &HostKey, limits: &TaskLimits) -> TaskLimits {
        let folder = SealedKey::of(key).folder();
        let folder = folder.filter(|_| !self.furniture.bare);
        let lowered = folder.and_then(|folder| lowered_by_project(&self.config, folder).ok());
        lowered.unwrap_or_else(|| limits.clone())
    }

    fn open(&self, key: &HostKey) -> Result<Arc<dyn Host>, HostError> {
        if self.launches.is_none() {
            let why = "its database is not yours, so it is not asked for more";
            return Err(HostError::Refused(why.to_owned()));
        }
        match key.as_str().split_once(':') {
            Some(("engine", _)) => Ok(Arc::new(self.engine(key)?)),
            Some(("opencode", _)) => match &self.furniture.bridges {
                Some(bridges) => bridges.open(key),
                None => Ok(Arc::new(self.remote(key)?)),
            },
            Some((_, file)) => {
                let file = file.rsplit_once('#').map_or(file, |(file, _)| file);
                self.scripted(Script::load(Path::new(file)))
            }
            None => self.scripted(Script::parse(NOTHING_DONE, Path::new("scripted"))),
        }
    }
}

impl KnownHosts {
    /// The configured host under the name that any process knows it by. `said` is what was said
    /// about the built-in agent; it is part of the name, so that a worker works on a task as its
    /// launcher wanted, and not as the one who started the worker.
    pub(crate) fn key(
        &self,
        host: &str,
        said: &BTreeMap<String, String>,
    ) -> anyhow::Result<HostKey> {
        match host.split_once(':') {
            None if host == "scripted" => Ok(host.into()),
            None if host == "engine" => {
                let folder = real_folder(&env::current_dir()?)?;
                self.engine_key(&folder, said)
            }
            Some(("engine", folder)) => {
                let folder = real_folder(Path::new(folder));
                let folder = folder.with_context(|| format!("--host {host}"))?;
                self.engine_key(&folder, said)
            }
            Some(("scripted", file)) => {
                let path = fs::canonicalize(file).with_context(|| format!("--host {host}"))?;
                let text = fs::read_to_string(&path).with_context(|| format!("--host {host}"))?;
                Script::parse(&text, &path).with_context(|| format!("--host {host}"))?;
                // A script that was edited is another host.
                let edition = digest(&[&text]) & 0xffff_ffff;
                Ok(format!("scripted:{}#{edition:08x}", path.display()).into())
            }
            Some(("opencode", url)) => self.remote_key(url, None),
            _ => anyhow::bail!(
                "--host {host}: there are engine, engine:FOLDER, opencode:URL, scripted and \
                 scripted:FILE"
            ),
        }
    }

    /// The name of the built-in agent in a folder. It is in the database, so what is confidential
    /// of what was said is not in it.
    fn engine_key(&self, folder: &str, said: &BTreeMap<String, String>) -> anyhow::Result<HostKey> {
        let said = launch_secrets::put_aside(said, self.launches()?)?;
        self.sealed(&format!("{ENGINE}{folder}"), &said)
    }

    /// The name of a host with what is said about it. It is sealed: where something runs, and with
    /// what protection, is for the user to say, and others may have changed the database.
    fn sealed(&self, host: &str, said: &impl Serialize) -> anyhow::Result<HostKey> {
        let said = serde_json::to_string(said)?;
        let seal = self.launches()?.seal(host, &said);
        Ok(format!("{host}{SAID}{said}{SEAL}{seal}").into())
    }

    fn launches(&self) -> anyhow::Result<&Launches> {
        let launches = self.launches.as_ref();
        launches.ok_or_else(|| anyhow!("the database is not yours"))
    }

    /// What was said about a host at a launch, if this user has said it.
    fn said<T: DeserializeOwned>(&self, key: &SealedKey<'_>) -> anyhow::Result<T> {
        let launches = self.launches.as_ref();
        if !launches.is_some_and(|launches| launches.is_sealed(key.host, key.said, key.seal)) {
            anyhow::bail!(
                "where and how it runs is not sealed with your key: an older version launched it, or \
                 somebody else did, or its database was another. Launch it anew"
            );
        }
        Ok(serde_json::from_str(key.said)?)
    }

    /// An `opencode serve` at an address, in one of its folders.
    pub(crate) fn remote_key(&self, url: &str, directory: Option<&str>) -> anyhow::Result<HostKey> {
        let url = url.trim_end_matches('/');
        if !(url.starts_with("http://") || url.starts_with("https://")) {
            anyhow::bail!(
                "`{url}` is no address of an OpenCode; it begins with http:// or https://"
            );
        }
        if url.contains('@') {
            anyhow::bail!(
                "the password of OpenCode is not part of its address; set \
                 OPENCODE_SERVER_PASSWORD"
            );
        }
        let said = Remote {
            directory: directory.map(str::to_owned),
        };
        self.sealed(&format!("{OPENCODE}{url}"), &said)
    }

    /// The built-in agent in the folder that the key names.
    pub(crate) fn engine(&self, key: &HostKey) -> Result<Engine, HostError> {
        self.engine_and_skills(key).map(|(engine, _)| engine)
    }

    /// The built-in agent in the folder that the key names, and the skills there.
    pub(crate) fn engine_and_skills(&self, key: &HostKey) -> Result<(Engine, Skills), HostError> {
        let mut engines = self.engines.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(made) = engines.get(key) {
            return Ok(made.clone());
        }
        let made = self
            .make_engine(key)
            .map_err(|error| HostError::Refused(format!("{error:#}")))?;
        engines.insert(key.clone(), made.clone());
        Ok(made)
    }

    /// The skills that agents in a folder have, whoever they are. `said` is what the environment
    /// and the flags say about them.
    pub(crate) fn skills_in(
        &self,
        folder: &Path,
        said: &BTreeMap<String, String>,
    ) -> anyhow::Result<Skills> {
        let loaded = load_launched(Some(folder), said)?;
        let models = models(&loaded.config.agent_config)?;
        let toolbox = self.toolbox(folder, &loaded.config, &models)?;
        Ok(skills(folder, &loaded.config, &toolbox))
    }

    /// The OpenCode at the address that the key names.
    pub(crate) fn remote(&self, key: &HostKey) -> Result<OpenCode, HostError> {
        let url = url_of(key).ok_or_else(|| {
            let ended = |(_, origin): (_, Origin)| !opencode::process::is_alive(&origin.process);
            let why = match origin_of(key).is_none_or(ended) {
                true => "its OpenCode is not running any more",
                false => "only its OpenCode knows the conversation; ask there",
            };
            HostError::Unreachable(why.to_owned())
        })?;
        let said: Result<Remote, _> = self.said(&SealedKey::of(key));
        let Remote { directory } =
            said.map_err(|error| HostError::Refused(format!("{error:#}")))?;
        let address = Address {
            url: url.to_owned(),
            directory,
            password: env::var("OPENCODE_SERVER_PASSWORD").ok(),
        };
        let prefix = self.manager.get().and_then(WeakManager::upgrade);
        let prefix = prefix.map(|manager| manager.settings().wording.prefix.clone());
        let settings = opencode::Settings {
            prefix: prefix.unwrap_or_default(),
            began: None,
        };
        let connection = Arc::new(HttpConnection::new(address)?);
        Ok(OpenCode::new(connection, self.clock.clone(), settings))
    }

    /// Lets all built-in agents finish their step.
    pub(crate) async fn stop(&self) {
        let engines: Vec<(Engine, _)> = {
            let engines = self.engines.lock().unwrap_or_else(PoisonError::into_inner);
            engines.values().cloned().collect()
        };
        for (engine, _) in engines {
            engine.stop().await;
        }
    }

    fn make_engine(&self, key: &HostKey) -> anyhow::Result<(Engine, Skills)> {
        let named = SealedKey::of(key);
        let workspace = named.folder();
        let workspace = workspace.ok_or_else(|| anyhow!("it is no built-in agent"))?;
        let workspace = workspace.to_owned();
        let said = launch_secrets::bring_back(self.said(&named)?, self.launches()?)?;
        check_in_place(&workspace)?;
        // What is configured for that folder, which need not be the one we are in.
        let folder = (!self.furniture.bare).then_some(workspace.as_path());
        let loaded = load_launched(folder, &said)?;
        for remark in &loaded.remarks {
            tracing::warn!(remark, "a project's settings");
        }
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
        let toolbox = self.toolbox(&workspace, config, &models)?;
        // The toolbox has found out where the folder is; had it moved meanwhile, this tells.
        check_in_place(&workspace)?;
        let mut door = ToolDoor::new(&manager, key.clone());
        let skills = skills(&workspace, config, &toolbox)
            .with_models_of_projects(of_usual_provider(&models, &agent.model));
        if !self.furniture.bare {
            door = door.with_skills(skills.clone());
        }
        let engine = Engine::new(Parts {
            settings,
            store: self.store.clone(),
            clock: self.clock.clone(),
            toolbox,
            models,
            delegation: Arc::new(door),
            approver: self.furniture.approver.clone(),
            owner: {
                let manager = manager.downgrade();
                Arc::new(move || manager.upgrade()?.owner())
            },
        });
        Ok((engine, skills))
    }

    fn toolbox(
        &self,
        workspace: &Path,
        config: &Config,
        models: &Models,
    ) -> anyhow::Result<Toolbox> {
        let agent = &config.agent_config;
        let mut readable = agent.readable.clone();
        // The files of a skill are for those who use it.
        readable.extend(skill_dirs(workspace, &config.skills).folders());
        let settings = asyncagents_tools::Settings {
            allowed: agent.allowed.clone(),
            readable,
            sandbox: agent.sandbox,
            network: agent.network,
            variables: agent.variables.clone(),
            resources: agent.resources,
            secret_variables: models.secret_variables(),
            secret_paths: self.secret_paths(),
            private_before: private_files(),
            bash_timeout: agent.bash_timeout,
            output_limit: agent.output,
            ..asyncagents_tools::Settings::new(workspace.to_owned(), helper()?)
        };
        Toolbox::new(settings).with_context(|| workspace.display().to_string())
    }

    /// What all agents said and did, what the user has configured, and what proves it.
    fn secret_paths(&self) -> Vec<PathBuf> {
        // SQLite's, and our own: what is in them decides what runs.
        let db = [
            "",
            "-wal",
            "-shm",
            "-journal",
            ".worker.lock",
            ".worker.log",
            ".opencode.log",
            ".sessions",
        ];
        let db = db.map(|end| trust::ending(&self.db, end));
        let ours = db
            .into_iter()
            .chain(key_file())
            .chain(launch_secrets::folder())
            .chain(private_files());
        let named = secret_paths_named_by(|name| env::var_os(name));
        ours.chain(self.configuration()).chain(named).collect()
    }

    /// The user's own configuration folder, and what is linked there from elsewhere. It is made if
    /// it is missing: only what is there can be kept from commands.
    fn configuration(&self) -> Vec<PathBuf> {
        let Some(folder) = config_folder() else {
            return Vec::new();
        };
        if !self.furniture.bare
            && let Err(error) = fs::create_dir_all(&folder)
        {
            tracing::debug!(%error, folder = %folder.display(), "cannot be made");
        }
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        let links = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
        let targets = links.filter_map(|link| fs::canonicalize(link.path()).ok());
        let targets: Vec<PathBuf> = targets.collect();
        [vec![folder], targets].concat()
    }

    fn scripted<E: ToString>(&self, script: Result<Script, E>) -> Result<Arc<dyn Host>, HostError> {
        let script = script.map_err(|error| HostError::Refused(error.to_string()))?;
        let folder = beside(&self.db, "sessions");
        if fs::symlink_metadata(&folder).is_ok_and(|found| found.is_symlink()) {
            let why = format!("{} is a link; it was left alone", folder.display());
            return Err(HostError::Refused(why));
        }
        let world = World::in_folder(&folder);
        let world = world.map_err(|error| HostError::Refused(error.to_string()))?;
        Ok(Arc::new(ScriptedHost::new(
            script,
            world,
            self.clock.clone(),
        )))
    }
}

/// The OpenCode that this process is the bridge of, one entry for each of its folders.
#[derive(Default)]
pub(crate) struct Bridges {
    instances: Mutex<HashMap<String, Bridged>>,
}

struct Bridged {
    key: HostKey,
    process: String,
    host: Arc<OpenCode>,
}

/// What is known of an OpenCode with a plugin, beside its folder. Its sessions are in its data
/// folder, and those that work are in its process.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Origin {
    process: String,
    data: String,
}

impl Bridges {
    /// An OpenCode is there, in a folder; returns its name.
    pub(crate) fn arrive(&self, instance: Arc<BridgeConnection>, prefix: &str) -> HostKey {
        let directory = instance.directory().to_owned();
        let origin = Origin {
            process: opencode::process::identity(instance.pid()),
            data: opencode_data(),
        };
        let said = serde_json::to_string(&origin).unwrap_or_default();
        let key = HostKey::from(format!("{OPENCODE}{directory}{SAID}{said}"));
        let mut instances = self.lock();
        instances.entry(directory).or_insert_with(|| {
            let settings = opencode::Settings {
                prefix: prefix.to_owned(),
                began: instance.began(),
            };
            Bridged {
                key: key.clone(),
                process: origin.process,
                host: Arc::new(OpenCode::new(instance, Arc::new(SystemClock), settings)),
            }
        });
        key
    }

    /// The OpenCode in a folder.
    pub(crate) fn host(&self, directory: &str) -> Option<Arc<OpenCode>> {
        self.lock()
            .get(directory)
            .map(|bridged| bridged.host.clone())
    }

    /// The OpenCode of this name.
    pub(crate) fn host_of(&self, key: &HostKey) -> Option<Arc<OpenCode>> {
        let instances = self.lock();
        let mut all = instances.values();
        all.find(|bridged| bridged.key == *key)
            .map(|bridged| bridged.host.clone())
    }

    /// The process that all of them are.
    pub(crate) fn process(&self) -> Option<String> {
        let instances = self.lock();
        instances
            .values()
            .next()
            .map(|bridged| bridged.process.clone())
    }

    /// The OpenCode of its folder, if it is another that has ended.
    fn heir(&self, key: &HostKey) -> Option<HostKey> {
        let (directory, _) = origin_of(key).filter(|_| self.serve(key))?;
        let here = self
            .lock()
            .get(directory)
            .map(|bridged| bridged.key.clone());
        here.filter(|here| here != key)
    }

    /// Its own tasks, and those of an OpenCode that had the same sessions and has ended.
    fn serve(&self, key: &HostKey) -> bool {
        let Some((directory, origin)) = origin_of(key) else {
            return false;
        };
        match self.lock().get(directory) {
            Some(bridged) if bridged.key == *key => true,
            Some(_) => {
                origin.data == opencode_data() && !opencode::process::is_alive(&origin.process)
            }
            None => false,
        }
    }

    fn open(&self, key: &HostKey) -> Result<Arc<dyn Host>, HostError> {
        let instances = self.lock();
        let here = origin_of(key).and_then(|(directory, _)| instances.get(directory));
        match here {
            Some(bridged) if bridged.key == *key => Ok(bridged.host.clone()),
            Some(bridged) => Ok(Arc::new(bridged.host.successor())),
            None => Err(HostError::Unreachable(
                "its OpenCode is not here".to_owned(),
            )),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Bridged>> {
        self.instances
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

const OPENCODE: &str = "opencode:";

fn origin_of(key: &HostKey) -> Option<(&str, Origin)> {
    let (directory, said) = key.as_str().strip_prefix(OPENCODE)?.split_once(SAID)?;
    Some((directory, serde_json::from_str(said).ok()?))
}

/// Where an OpenCode that is started like this process keeps its sessions.
fn opencode_data() -> String {
    let data = env::var_os("XDG_DATA_HOME").map(PathBuf::from);
    let home = || env::var_os("HOME").map(|home| Path::new(&home).join(".local/share"));
    let data = data.filter(|data| data.is_absolute()).or_else(home);
    data.unwrap_or_default().display().to_string()
}

/// What is said about an `opencode serve`.
#[derive(Serialize, Deserialize)]
struct Remote {
    directory: Option<String>,
}

/// The address of an `opencode serve`.
fn url_of(key: &HostKey) -> Option<&str> {
    let url = SealedKey::of(key).host.strip_prefix(OPENCODE)?;
    url.starts_with("http").then_some(url)
}

/// This program, as it was started: a file of its name may have become another since, by an
/// update, or by a command in the workspace.
fn helper() -> std::io::Result<PathBuf> {
    match cfg!(target_os = "linux") {
        true => Ok(PathBuf::from("/proc/self/exe")),
        false => env::current_exe(),
    }
}

/// Whether a model is of the provider that is used anyway: another would be sent what an agent
/// knows, and paid for it.
fn of_usual_provider(models: &Models, usual: &str) -> Arc<dyn Fn(&str) -> bool + Send + Sync> {
    let (models, usual) = (models.clone(), usual.to_owned());
    Arc::new(move |name| {
        let usual = match usual.as_str() {
            "auto" => models.default_model(),
            usual => Ok(usual.to_owned()),
        };
        let usual = usual.and_then(|usual| models.resolve(&usual));
        name == ModelName::INHERIT
            || usual.is_ok_and(|usual| models.are_of_one_provider(name, &usual))
    })
}

/// The skills of a workspace, and what runs their commands.
pub(crate) fn skills(workspace: &Path, config: &Config, toolbox: &Toolbox) -> Skills {
    let commands = LookingCommands {
        toolbox: toolbox.clone(),
        permissions: config.agent_config.permissions.clone(),
    };
    let dirs = skill_dirs(workspace, &config.skills);
    Skills::new(dirs, Arc::new(commands), workspace.to_owned())
        .with_effort(config.agent_config.effort)
}

/// Runs the commands in skills' bodies, which may only look. Nobody is asked about them: what
/// the user forbids or wants to be asked about is refused.
struct LookingCommands {
    toolbox: Toolbox,
    permissions: Permissions,
}

#[async_trait]
impl Commands for LookingCommands {
    async fn run(&self, command: &str) -> Result<String, String> {
        let may_run_free = match self.permissions.judge("bash", Kind::Run, command) {
            Verdict::Allow => true,
            Verdict::Ask { by_rule: false } => false,
            Verdict::Ask { by_rule: true } => {
                return Err("your permissions want it to be asked for".to_owned());
            }
            Verdict::Deny(why) => return Err(why),
        };
        self.toolbox.glance(command, may_run_free).await
    }
}

/// The skills of a workspace.
pub(crate) fn skill_dirs(workspace: &Path, config: &SkillConfig) -> SkillDirs {
    let home = env::var_os("HOME").map(PathBuf::from);
    let home = home.filter(|home| home.is_absolute());
    SkillDirs::new(SkillPlaces::usual(&SkillAround {
        workspace: Some(workspace),
        home: home.as_deref(),
        config: config_folder().as_deref(),
        enterprise: config.enterprise.as_deref(),
        plugins: &config.plugins,
    }))
}

/// The agents that there are in a folder.
pub(crate) fn agents_in(workspace: &Path) -> Vec<String> {
    let names = agent_names(workspace, &agent_folders(workspace)).into_iter();
    names.map(|name| name.to_string()).collect()
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

/// Where it is kept which files of the home were private.
fn private_files() -> Option<PathBuf> {
    data_folder().map(|folder| folder.join("private-files"))
}
