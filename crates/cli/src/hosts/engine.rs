//! The built-in agent in a folder.

use std::{
    collections::HashMap,
    env,
    path::Path,
    sync::{Arc, Mutex},
    thread,
};

use anyhow::{Context, anyhow};
use asyncagents_core::{
    host_ref::{HostRef, HostSetup},
    id::ModelName,
    lock::lock,
    model_choice::{AllowedModels, ModelPolicy},
    port::{Host, HostError},
    task::Task,
    task_limits::TaskLimits,
};
use asyncagents_engine::{CommandSlots, Engine, Parts, Unanswered};
use asyncagents_models::Models;
use asyncagents_runtime::{Problem, Skills, ToolDoor};
use asyncagents_tools::Toolbox;

use super::{
    HostContext, HostKind, ShellLaunch, inherited::choose_parent, refused,
    tool_settings::tool_settings, wrong_kind,
};
use crate::{
    config::{AgentConfig, Config, load_launched, with_project},
    exit::{self, Failure},
    folders::{agent_folders, check_in_place, real_folder, skill_dirs},
    launch_secrets::{self, Overrides},
    skill_commands::ReadOnlyCommands,
};

/// The models that are configured.
pub(crate) fn models(config: &AgentConfig) -> anyhow::Result<Models> {
    let settings = config.models().map_err(|why| anyhow!(why))?;
    Ok(Models::new(settings)?)
}

/// Reads the system's certificates on a thread of their own if the model will be asked over TLS: by
/// the time of the first request they are there.
pub(crate) fn load_certificates(config: &AgentConfig) {
    let config = config.clone();
    thread::spawn(move || {
        let Ok(models) = models(&config) else {
            return;
        };
        let model = match config.model.as_str() {
            "auto" => models.default_model(),
            named => Ok(named.to_owned()),
        };
        if model.is_ok_and(|model| models.uses_tls(&model)) {
            asyncagents_http::load_certificates();
        }
    });
}

/// The built-in agents of this process, one for each setup.
pub(super) struct EngineHosts {
    context: Arc<HostContext>,
    made: Mutex<HashMap<HostSetup, (Engine, Skills)>>,
    commands: Arc<CommandSlots>,
}

impl HostKind for EngineHosts {
    /// The settings are in the database, so what is confidential of them is kept elsewhere. Folder
    /// and settings are sealed: where something runs, and with what protection, is for the user to
    /// say, and others may have changed the database.
    fn named(&self, rest: Option<&str>, overrides: &Overrides) -> anyhow::Result<HostSetup> {
        let folder = match rest {
            None => real_folder(&env::current_dir()?)?,
            Some(folder) => {
                let real = real_folder(Path::new(folder));
                real.with_context(|| format!("--host engine:{folder}"))?
            }
        };
        let launches = self.context.launches()?;
        let stored = launch_secrets::store_secrets(overrides, launches)?;
        let json = serde_json::to_string(&stored)?;
        Ok(launches.seal(HostRef::engine(&folder), json))
    }

    /// A malformed file of settings is an error when the host is opened.
    fn limits(&self, host: &HostRef, limits: &TaskLimits) -> TaskLimits {
        let HostRef::Engine { folder } = host else {
            return limits.clone();
        };
        if self.context.options.bare {
            return limits.clone();
        }
        with_project(&self.context.config, Path::new(&**folder))
            .map_or_else(|_| limits.clone(), |project| project.limits)
    }

    /// The key for a new session's model. A session of ours that launches a task works here too, so its
    /// model can be asked.
    fn lacks(&self, task: &Task) -> Option<String> {
        let skills_own = task.skill.as_ref().and_then(|terms| terms.model.as_ref());
        if task.session.is_some() || skills_own.is_some() || Engine::has(&task.place.parent) {
            return None;
        }
        let (engine, _) = self.get(&task.brief.host).ok()?;
        let model = task.model().map(ModelName::as_str);
        engine.lacks_key(&task.brief.agent, model)
    }

    fn model_policy(&self, setup: &HostSetup, usual: &ModelPolicy) -> ModelPolicy {
        let engine = self.get(setup);
        engine.map_or_else(
            |_| usual.clone(),
            |(engine, _)| engine.model_policy().clone(),
        )
    }

    fn open(&self, setup: &HostSetup) -> Result<Arc<dyn Host>, HostError> {
        Ok(Arc::new(self.get(setup)?.0))
    }
}

impl EngineHosts {
    pub(super) fn new(context: Arc<HostContext>) -> Self {
        let most = context.config.agent_config.commands;
        Self {
            context,
            made: Mutex::default(),
            commands: Arc::new(CommandSlots::new(most)),
        }
    }

    /// What the built-in agent could not do is better known now than in a task that fails. A fork
    /// inherits the newest run of the folder, unless a session is named.
    pub(super) async fn check(&self, launch: &mut ShellLaunch<'_>) -> Result<(), Failure> {
        let request = launch.request;
        let (engine, _) = self.get(&launch.host).map_err(Problem::from)?;
        // A model that is named is checked at the launch, which says what there is.
        if request.model.is_none() {
            let checked = engine.check(&request.agent.as_str().into(), None);
            checked.map_err(exit::refused)?;
        }
        let HostRef::Engine { folder } = launch.host.host.clone() else {
            return Ok(());
        };
        choose_parent(&*self.context.store, &folder, launch).await
    }

    /// The agent of a setup, and the skills of its folder.
    pub(super) fn get(&self, setup: &HostSetup) -> Result<(Engine, Skills), HostError> {
        let mut made = lock(&self.made);
        if let Some(known) = made.get(setup) {
            return Ok(known.clone());
        }
        let HostRef::Engine { folder } = &setup.host else {
            return Err(wrong_kind(&setup.host));
        };
        let new = self.make(setup, Path::new(&**folder)).map_err(refused)?;
        made.insert(setup.clone(), new.clone());
        Ok(new)
    }

    /// Lets all of them finish their step.
    pub(super) async fn stop(&self) {
        let engines: Vec<(Engine, _)> = lock(&self.made).values().cloned().collect();
        for (engine, _) in engines {
            engine.stop().await;
        }
    }

    /// The skills that all agents in a folder have.
    pub(super) fn skills_in(&self, folder: &Path, overrides: &Overrides) -> anyhow::Result<Skills> {
        let loaded = load_launched(Some(folder), overrides)?;
        let models = models(&loaded.config.agent_config)?;
        let toolbox = self.toolbox(folder, &loaded.config, &models)?;
        Ok(skills(folder, &loaded.config, &toolbox))
    }

    fn make(&self, setup: &HostSetup, workspace: &Path) -> anyhow::Result<(Engine, Skills)> {
        let launches = self.context.launches()?;
        launches.check(setup)?;
        let stored = serde_json::from_str(&setup.settings.json)?;
        let overrides = launch_secrets::load_secrets(stored, launches)?;
        check_in_place(workspace)?;
        // What is configured for that folder, which need not be the one we are in.
        let folder = (!self.context.options.bare).then_some(workspace);
        let loaded = load_launched(folder, &overrides)?;
        for remark in &loaded.remarks {
            tracing::warn!(remark, "a project's settings");
        }
        let config = &loaded.config;
        let agent = &config.agent_config;
        let models = models(agent)?;
        let manager = self.context.manager()?;
        let settings = asyncagents_engine::Settings {
            model: (agent.model != "auto").then(|| agent.model.clone()),
            model_policy: policy(&models, &agent.model_policy),
            effort: agent.effort,
            permissions: agent.permissions.clone(),
            // Where somebody was there at the launch, the launch says so.
            unanswered: agent.unanswered.unwrap_or(Unanswered::Refuse),
            compact_at: agent.compact_at,
            max_turns: agent.max_turns,
            same_calls: config.limits.same_calls,
            wait_for_tasks: !self.context.options.no_wait,
            agent_folders: agent_folders(workspace),
            prefix: manager.settings().wording.prefix.clone(),
            ..asyncagents_engine::Settings::new(workspace.to_owned())
        };
        let toolbox = self.toolbox(workspace, config, &models)?;
        // The toolbox has found out where the folder is; had it moved meanwhile, this tells.
        check_in_place(workspace)?;
        let mut door = ToolDoor::new(&manager, setup.clone());
        let skills = skills(workspace, config, &toolbox)
            .with_models_of_projects(of_usual_provider(&models, &agent.model));
        if !self.context.options.bare {
            door = door.with_skills(skills.clone());
        }
        let engine = Engine::new(Parts {
            settings,
            store: self.context.store.clone(),
            clock: self.context.clock.clone(),
            toolbox,
            models,
            delegation: Arc::new(door),
            commands: self.commands.clone(),
            approver: self.context.options.approver.clone(),
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
        let settings = tool_settings(&self.context, workspace, config, models)?;
        Toolbox::new(settings).with_context(|| workspace.display().to_string())
    }
}

/// What the user says about models, where a short name is allowed as what it stands for.
fn policy(models: &Models, said: &ModelPolicy) -> ModelPolicy {
    let full = |pattern: &String| match models.resolve(pattern) {
        Ok(model) if !pattern.contains('*') => model.name().to_string(),
        Ok(_) | Err(_) => pattern.clone(),
    };
    ModelPolicy {
        allowed: AllowedModels::new(said.allowed.patterns().iter().map(full).collect()),
        fallbacks: said.fallbacks.clone(),
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
fn skills(workspace: &Path, config: &Config, toolbox: &Toolbox) -> Skills {
    let commands = ReadOnlyCommands {
        toolbox: toolbox.clone(),
        permissions: config.agent_config.permissions.clone(),
    };
    let dirs = skill_dirs(workspace, &config.skills);
    Skills::new(dirs, Arc::new(commands), workspace.to_owned())
        .with_effort(config.agent_config.effort)
}

/// The skills that all agents in a folder have.
pub(super) fn skills_of(
    context: &HostContext,
    folder: &Path,
    config: &Config,
    models: &Models,
) -> anyhow::Result<Skills> {
    let settings = tool_settings(context, folder, config, models)?;
    let toolbox = Toolbox::new(settings).with_context(|| folder.display().to_string())?;
    Ok(skills(folder, config, &toolbox))
}
