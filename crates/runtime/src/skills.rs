//! Skills as they are invoked: by a model through a tool, or by a person.

use std::{path::PathBuf, sync::Arc};

use asyncagents_core::{
    agent::Kind,
    id::{ModelName, SessionId},
    port::Commands,
    request::{Caller, LaunchTask},
    skill::{
        Body, Catalog, ErrorCode, Layer, Listed, Piece, Skill, SkillContext, Surroundings,
        UnknownSkill, disclose,
    },
};
use thiserror::Error;
use tokio::task::spawn_blocking;

use crate::{Manager, Settings, SkillDirs};

/// How many characters of what a command prints are used.
const MOST_OUTPUT: usize = 10_000;

/// The skills of a folder.
#[derive(Clone)]
pub struct Skills {
    dirs: Arc<SkillDirs>,
    commands: Arc<dyn Commands>,
    project: PathBuf,
    /// Whether a project's skill may name this model.
    may_name: Arc<dyn Fn(&str) -> bool + Send + Sync>,
}

/// Who invokes a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Invoker {
    /// A model.
    Model,
    /// A person.
    User,
}

/// A skill that is to be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation {
    /// The skill.
    pub name: String,
    /// What was said behind its name.
    pub arguments: String,
    /// Who wants it.
    pub by: Invoker,
    /// The session in which that was said.
    pub session: SessionId,
    /// The model, if not the skill's own.
    pub model: Option<ModelName>,
}

/// A skill that is ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ready {
    /// The skill.
    pub skill: Arc<Skill>,
    /// The folder it is in.
    pub folder: PathBuf,
    /// Its body, filled in.
    pub body: String,
}

/// Why a skill was not used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{why}")]
pub struct SkillTrouble {
    /// Which kind of trouble.
    pub code: ErrorCode,
    /// What went wrong.
    pub why: String,
}

impl SkillTrouble {
    fn new(code: ErrorCode, why: impl Into<String>) -> Self {
        let why = why.into();
        Self { code, why }
    }
}

impl Skills {
    /// The skills of these folders, for agents that work in a project. `commands` runs what
    /// their bodies ask for.
    pub fn new(dirs: SkillDirs, commands: Arc<dyn Commands>, project: PathBuf) -> Self {
        Self {
            dirs: Arc::new(dirs),
            commands,
            project,
            may_name: Arc::new(|_| true),
        }
    }

    /// The same, where a project's skill has a model of its own only if this says so.
    #[must_use]
    pub fn with_models_of_projects(
        self,
        may_name: Arc<dyn Fn(&str) -> bool + Send + Sync>,
    ) -> Self {
        Self { may_name, ..self }
    }

    /// The skills there are now.
    pub fn catalog(&self) -> Catalog {
        self.dirs.catalog()
    }

    /// What a model is shown of them, if there are any for it.
    pub fn disclosed(&self) -> Option<String> {
        disclose(&self.catalog())
    }

    /// The skill of a name, if whoever asks may use it.
    ///
    /// # Errors
    /// When there is none, or it is not for them.
    pub async fn find(&self, name: &str, by: Invoker) -> Result<Listed, SkillTrouble> {
        let dirs = self.dirs.clone();
        let looked = spawn_blocking(move || dirs.catalog()).await;
        let catalog = looked
            .map_err(|error| SkillTrouble::new(ErrorCode::SkillNotFound, error.to_string()))?;
        let listed = catalog.get(name);
        let listed = listed.map_err(|mut error| {
            if let UnknownSkill::Unknown { names, .. } = &mut error {
                // Nobody is told of what is not for them.
                names.retain(|name| catalog.get(name).is_ok_and(|listed| is_for(listed, by)));
            }
            SkillTrouble::new(ErrorCode::SkillNotFound, error.to_string())
        })?;
        let manifest = &listed.skill.manifest;
        let name = &manifest.name;
        if is_for(listed, by) {
            return Ok(self.with_permitted_model(listed.clone()));
        }
        let why = match by {
            Invoker::Model => {
                format!("the skill `{name}` is for the user to run; ask for it if it is needed")
            }
            Invoker::User => {
                format!("the skill `{name}` is for agents; `user-invocable: false` says so")
            }
        };
        Err(SkillTrouble::new(ErrorCode::NotInvocable, why))
    }

    /// The same skill, without its model if a project may not name that one.
    fn with_permitted_model(&self, mut listed: Listed) -> Listed {
        let own = listed.skill.manifest.model.as_ref();
        if listed.layer == Layer::Project && own.is_some_and(|own| !(self.may_name)(own.as_str())) {
            tracing::warn!(skill = ?listed.skill.manifest.name, model = ?own,
                "a project's skill names a model of another provider; the usual one is used");
            Arc::make_mut(&mut listed.skill).manifest.model = None;
        }
        listed
    }

    /// The skill that is invoked, filled in. Whatever speaks against it is known before any of
    /// its commands runs.
    pub(crate) async fn ready(
        &self,
        manager: &Manager,
        caller: &Caller,
        invocation: &Invocation,
    ) -> Result<Ready, SkillTrouble> {
        let listed = self.find(&invocation.name, invocation.by).await?;
        let manifest = &listed.skill.manifest;
        // Not every host asks which skills a sub-agent may use.
        let session = &invocation.session;
        manager.check_skill(session, &manifest.name).await?;
        if manifest.context == SkillContext::Fork {
            manager.check_depth(caller).await?;
        }
        self.fill(listed, invocation).await
    }

    async fn fill(&self, listed: Listed, invocation: &Invocation) -> Result<Ready, SkillTrouble> {
        let skill = listed.skill;
        let folder = listed.file.parent().unwrap_or(&listed.file).to_owned();
        let skill_dir = folder.to_string_lossy().into_owned();
        let project = self.project.to_string_lossy();
        let around = Surroundings {
            arguments: &invocation.arguments,
            skill_dir: &skill_dir,
            session: invocation.session.as_str(),
            project_dir: &project,
        };
        let failed = |why: String| {
            let name = &skill.manifest.name;
            let why = format!("the skill `{name}` was not used: {why}");
            SkillTrouble::new(ErrorCode::InvocationFailed, why)
        };
        let pieces = Body::parse(&skill.body, &skill.manifest.arguments).fill(&around);
        let mut body = String::new();
        for piece in pieces.map_err(failed)? {
            match piece {
                Piece::Text(text) => body.push_str(&text),
                Piece::Command(command) => {
                    let printed = self.run(&skill, &command).await.map_err(failed)?;
                    body.push_str(&printed);
                }
            }
        }
        Ok(Ready {
            skill,
            folder,
            body,
        })
    }

    /// What a command of a skill prints.
    async fn run(&self, skill: &Skill, command: &str) -> Result<String, String> {
        let tools = skill.manifest.tools.called_here();
        // What nobody has listed is not allowed.
        if tools.only.is_none() || !tools.allows("bash", Kind::Run, command) {
            return Err(format!(
                "its command `{command}` is refused; its `allowed-tools` do not permit it"
            ));
        }
        let printed = self.commands.run(command).await;
        let printed = printed.map_err(|why| format!("its command `{command}` failed: {why}"))?;
        let printed = printed.trim_end();
        Ok(match printed.char_indices().nth(MOST_OUTPUT) {
            Some((end, _)) => {
                let kept = printed.get(..end).unwrap_or_default();
                format!("{kept}\n[cut at {MOST_OUTPUT} characters]")
            }
            None => printed.to_owned(),
        })
    }
}

fn is_for(listed: &Listed, by: Invoker) -> bool {
    match by {
        Invoker::Model => listed.skill.manifest.for_model,
        Invoker::User => listed.skill.manifest.for_user,
    }
}

impl Ready {
    /// The task that runs it: as a sub-agent on the skill's terms, or, where it is a person's
    /// and joins no conversation, as any other.
    pub fn task(self, arguments: &str, settings: &Settings) -> LaunchTask {
        let manifest = &self.skill.manifest;
        let task = match manifest.context {
            SkillContext::Fork => {
                LaunchTask::of_skill(manifest, arguments, self.body, settings.skills)
            }
            SkillContext::Inherit => LaunchTask::of_body(manifest, arguments, self.body),
        };
        LaunchTask {
            // A skill may want less than its user grants, and not more.
            budget: task.budget.at_most(settings.limits.budget),
            ..task
        }
    }
}
