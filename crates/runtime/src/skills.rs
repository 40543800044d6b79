//! Skills as they are invoked: by a model through a tool, or by a person.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use asyncagents_core::{
    agent::Effort,
    id::{ModelName, SessionId},
    launch::check_depth,
    port::{Commands, bound},
    refusal::Refusal,
    request::{Caller, LaunchTask},
    shorten::shorten,
    skill::{
        Body, Catalog, Layer, Listed, Manifest, Piece, Skill, SkillContext, Surroundings,
        UnknownSkill, disclose, filled_tools, lets_run,
    },
    skill_event::ErrorCode,
};
use thiserror::Error;
use tokio::task::spawn_blocking;

use crate::{Manager, Problem, Settings, SkillDirs, shared::Shared};

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
    /// The user's setting.
    effort: Option<Effort>,
}

/// Who invokes a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Invoker {
    Model,
    User,
}

/// A request to use a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation {
    pub name: String,
    pub arguments: String,
    pub by: Invoker,
    /// The session that invokes it.
    pub session: SessionId,
    /// The model, if not the skill's own.
    pub model: Option<ModelName>,
}

/// A skill that may be used, filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ready {
    pub skill: Arc<Skill>,
    /// The folder of its file.
    pub folder: PathBuf,
    /// With arguments, variables and the output of commands.
    pub body: String,
}

/// Why a skill was not used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{why}")]
pub struct SkillTrouble {
    pub code: ErrorCode,
    pub why: String,
}

impl SkillTrouble {
    fn new(code: ErrorCode, why: impl Into<String>) -> Self {
        let why = why.into();
        Self { code, why }
    }
}

impl From<Problem> for SkillTrouble {
    fn from(problem: Problem) -> Self {
        match problem {
            Problem::Refused(Refusal::TooDeep { limit, .. }) => Self::new(
                ErrorCode::MaxDepthExceeded,
                format!("Maximum sub-agent depth ({limit}) exceeded"),
            ),
            Problem::Refused(refusal @ Refusal::SkillNotAllowed { .. }) => {
                Self::new(ErrorCode::NotInvocable, refusal.to_string())
            }
            problem => Self::new(ErrorCode::SubagentError, problem.to_string()),
        }
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
            effort: None,
        }
    }

    /// The same with the effort that the user has set. A project's skill may lower it, not raise
    /// it.
    #[must_use]
    pub fn with_effort(self, effort: Option<Effort>) -> Self {
        Self { effort, ..self }
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

    /// The list of skills for a model, if there are any for it.
    pub fn disclosed(&self) -> Option<String> {
        disclose(&self.catalog())
    }

    /// The skill of a name, if the invoker may use it.
    ///
    /// # Errors
    /// When there is none, or it is not for this invoker.
    pub async fn find(&self, name: &str, by: Invoker) -> Result<Listed, SkillTrouble> {
        let dirs = self.dirs.clone();
        let catalog = spawn_blocking(move || dirs.catalog())
            .await
            .map_err(|error| SkillTrouble::new(ErrorCode::SkillNotFound, error.to_string()))?;
        let listed = match by {
            Invoker::Model => catalog.get(name),
            Invoker::User => catalog.get_for_person(name),
        };
        let listed = listed.map_err(|mut error| {
            let code = match &mut error {
                UnknownSkill::Unknown { names, .. } => {
                    // Suggest only what the invoker may use.
                    names.retain(|name| catalog.get(name).is_ok_and(|listed| is_for(listed, by)));
                    ErrorCode::SkillNotFound
                }
                UnknownSkill::Broken { .. } => ErrorCode::SkillBroken,
            };
            SkillTrouble::new(code, error.to_string())
        })?;
        let manifest = &listed.skill.manifest;
        let name = &manifest.name;
        if is_for(listed, by) {
            return Ok(self.as_permitted(listed.clone()));
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

    /// The same skill, without its model if a project may not name that one, and with no more
    /// effort than the user has set.
    fn as_permitted(&self, mut listed: Listed) -> Listed {
        if listed.layer != Layer::Project {
            return listed;
        }
        let effort = listed.skill.manifest.effort;
        if let (Some(own), Some(most)) = (effort, self.effort)
            && own > most
        {
            Arc::make_mut(&mut listed.skill).manifest.effort = Some(most);
        }
        let own = listed.skill.manifest.model.as_ref();
        if own.is_some_and(|own| !(self.may_name)(own.as_str())) {
            tracing::warn!(skill = ?listed.skill.manifest.name, model = ?own,
                "a project's skill may not choose a model of another provider, falling back");
            Arc::make_mut(&mut listed.skill).manifest.model = None;
        }
        listed
    }

    /// The skills that a person can invoke.
    pub fn for_user(&self) -> Vec<Listed> {
        let catalog = self.catalog();
        let listed = catalog
            .active()
            .filter(|listed| is_for(listed, Invoker::User));
        listed.cloned().collect()
    }

    /// The skills whose files a client can be given, so that its model follows them by itself: those
    /// that it may invoke, that need no sub-agent, and that are written as the standard wants it.
    pub fn for_clients(&self) -> Vec<Listed> {
        let catalog = self.catalog();
        let listed = catalog.active().filter(|listed| {
            let skill = &listed.skill;
            let is_text = skill.manifest.context == SkillContext::Inherit;
            is_text && is_for(listed, Invoker::Model) && skill.refused_elsewhere.is_empty()
        });
        listed.cloned().collect()
    }

    /// The text of a skill that a person invokes in a conversation, filled in.
    ///
    /// # Errors
    /// When there is no such skill for a person, or it cannot be filled in.
    pub async fn text_for_user(
        &self,
        name: &str,
        arguments: &str,
        session: &SessionId,
    ) -> Result<Ready, SkillTrouble> {
        let invocation = Invocation {
            name: name.to_owned(),
            arguments: arguments.to_owned(),
            by: Invoker::User,
            session: session.clone(),
            model: None,
        };
        let listed = self.find(name, Invoker::User).await?;
        self.fill(listed, &invocation).await
    }

    /// The skill that is invoked, filled in. All checks are made before any of its commands runs.
    pub(crate) async fn ready(
        &self,
        manager: &Manager,
        caller: &Caller,
        invocation: &Invocation,
    ) -> Result<Ready, SkillTrouble> {
        let listed = self.find(&invocation.name, invocation.by).await?;
        let (session, skill) = (&invocation.session, &listed.skill.manifest);
        check(&manager.shared, caller, session, skill).await?;
        self.fill(listed, invocation).await
    }

    async fn fill(&self, listed: Listed, invocation: &Invocation) -> Result<Ready, SkillTrouble> {
        let mut skill = listed.skill;
        let folder = listed.file.parent().unwrap_or(&listed.file).to_owned();
        let skill_dir = folder.to_string_lossy().into_owned();
        let project = self.project.to_string_lossy();
        let plugin = listed.plugin.as_deref().map(Path::to_string_lossy);
        let effort = skill.manifest.effort.or(self.effort);
        let around = Surroundings {
            arguments: &invocation.arguments,
            skill_dir: &skill_dir,
            session: invocation.session.as_str(),
            project_dir: &project,
            plugin_root: plugin.as_deref(),
            effort: effort.unwrap_or(Effort::Medium).word(),
        };
        let tools = filled_tools(&skill.manifest.tools, &around);
        if tools != skill.manifest.tools {
            Arc::make_mut(&mut skill).manifest.tools = tools;
        }
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

    /// Runs a command of a skill, and returns its output.
    async fn run(&self, skill: &Skill, command: &str) -> Result<String, String> {
        if !lets_run(&skill.manifest.tools.called_here(), command) {
            return Err(format!(
                "its command `{command}` is refused; its `allowed-tools` do not permit it"
            ));
        }
        let printed = self.commands.run(command).await;
        let printed = printed.map_err(|why| format!("its command `{command}` failed: {why}"))?;
        let mark = format!("\n[cut at {MOST_OUTPUT} characters]");
        Ok(shorten(printed.trim_end(), MOST_OUTPUT, &mark))
    }
}

/// Checks that a caller may use a skill. A session that runs a skill itself is limited to the
/// skills in its `allowed-tools`.
async fn check(
    shared: &Shared,
    caller: &Caller,
    session: &SessionId,
    skill: &Manifest,
) -> Result<(), Problem> {
    let (session, name) = (session.clone(), skill.name.clone());
    let launches = match (skill.context, caller.launches_from()) {
        (SkillContext::Isolated, Ok((from, host))) => {
            Some((from.clone(), shared.limits(&host.host)))
        }
        (SkillContext::Isolated, Err(_)) | (SkillContext::Inherit, _) => None,
    };
    shared
        .read(move |journal| {
            // Not every host enforces which skills a sub-agent may use.
            if let Some(bound) = bound(journal, &session)? {
                bound.check_skill(&name)?;
            }
            if let Some((from, limits)) = &launches {
                check_depth(journal.task_in(from)?.as_ref(), limits)?;
            }
            Ok(())
        })
        .await
}

fn is_for(listed: &Listed, by: Invoker) -> bool {
    match by {
        Invoker::Model => listed.skill.manifest.for_model,
        Invoker::User => listed.skill.manifest.for_user,
    }
}

impl Ready {
    /// The body, and where the files are that it refers to.
    fn instructions(&self) -> String {
        let (body, folder) = (&self.body, self.folder.display());
        format!(
            "{body}\n\nThe files of this skill are in {folder}; its relative paths begin there."
        )
    }

    /// The task that runs it: a sub-agent on the skill's terms, or, where a person runs a skill
    /// that would join a conversation, an ordinary task.
    pub fn task(self, arguments: &str, settings: &Settings) -> LaunchTask {
        let manifest = &self.skill.manifest;
        let text = self.instructions();
        let task = match manifest.context {
            SkillContext::Isolated => {
                LaunchTask::of_skill(manifest, arguments, text, settings.skills)
            }
            SkillContext::Inherit => LaunchTask::of_body(manifest, arguments, text),
        };
        LaunchTask {
            // A skill may want less than its user grants, and not more.
            budget: task.budget.at_most(settings.limits.budget),
            ..task
        }
    }
}
