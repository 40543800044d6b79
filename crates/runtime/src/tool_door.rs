//! The tools for background tasks and skills, as a model calls them: a call in, a text out.

use std::time::Duration;

use async_trait::async_trait;
use asyncagents_core::{
    agent::{ToolOutcome, ToolSpec},
    answer::{self, Reader, Shown},
    host_ref::{HostRef, HostSetup},
    id::SessionId,
    notify::Wording,
    port::Delegation,
    refusal::Refusal,
    request::{Caller, OutputRequest, TextPart},
    skill::SkillContext,
    skill_event::ErrorCode,
    sub_agent_report::SubAgentReport,
    task::{Outcome, State},
    task_list::ListRequest,
    tool_set::{self, SkillCall, ToolRequest},
};

use crate::{
    About, Answered, Invocation, Invoker, Manager, Problem, SkillTrouble, Skills, WeakManager,
};

/// What a call is answered when there is nobody to carry it out.
const ENDING: &str = "asyncagents is ending; nothing was done";

/// The tools for the sessions of one host.
pub struct ToolDoor {
    manager: WeakManager,
    host: HostSetup,
    outside: Option<HostRef>,
    prefix: String,
    skills: Option<Skills>,
}

impl ToolDoor {
    /// The tools, for the sessions of this host.
    pub fn new(manager: &Manager, host: HostSetup) -> Self {
        Self {
            manager: manager.downgrade(),
            host,
            outside: None,
            prefix: manager.settings().wording.prefix.clone(),
            skills: None,
        }
    }

    /// The same, with these skills.
    #[must_use]
    pub fn with_skills(self, skills: Skills) -> Self {
        Self {
            skills: Some(skills),
            ..self
        }
    }

    /// The same for the sessions of a program whose tasks run in this host.
    #[must_use]
    pub fn for_sessions_of(self, outside: HostRef, wording: &Wording) -> Self {
        Self {
            prefix: wording.in_host(&outside).prefix,
            outside: Some(outside),
            ..self
        }
    }

    /// The same with the names that the tools have where this wording is used.
    #[must_use]
    pub fn prefixed(self, wording: &Wording) -> Self {
        Self {
            prefix: wording.prefix.clone(),
            ..self
        }
    }

    /// The list of skills for the model, if there are any for it.
    pub fn disclosed(&self) -> Option<String> {
        self.skills.as_ref().and_then(Skills::disclosed)
    }

    /// Calls a tool, from a message of the session if it is known which.
    pub async fn call_from(
        &self,
        session: &SessionId,
        message: Option<String>,
        request: ToolRequest,
    ) -> Answered {
        let Some(manager) = self.manager.upgrade() else {
            return Answered::failed(ENDING.to_owned());
        };
        let caller = self.caller(session, message);
        let answered = self.answer(&manager, session, caller, request).await;
        let answered =
            answered.unwrap_or_else(|problem| Answered::failed(self.with_hint(&problem)));
        answered.bounded()
    }

    /// A task as it stands now. Nothing is marked as read.
    ///
    /// # Errors
    /// With a sentence, if the session has no such task.
    pub async fn look(&self, session: &SessionId, task: &str) -> Result<Shown, String> {
        let manager = self.manager.upgrade().ok_or_else(|| ENDING.to_owned())?;
        let caller = self.caller(session, None);
        let report = manager.follow(&caller, task, None, Duration::ZERO).await;
        let report = report.map_err(|problem| self.with_hint(&problem))?;
        Ok(report.shown)
    }

    /// What `output` says of a task. Nothing is marked as read.
    ///
    /// # Errors
    /// With a sentence, if the session has no such task.
    pub async fn show(&self, session: &SessionId, task: &str) -> Result<String, String> {
        let manager = self.manager.upgrade().ok_or_else(|| ENDING.to_owned())?;
        let caller = self.caller(session, None);
        let report = manager.follow(&caller, task, None, Duration::ZERO).await;
        let report = report.map_err(|problem| self.with_hint(&problem))?;
        let text = answer::output(&report, manager.now(), self.reader());
        let part = TextPart::default();
        Ok(answer::output_part(
            text,
            part,
            &report.shown.id,
            &self.prefix,
        ))
    }

    fn caller(&self, session: &SessionId, message: Option<String>) -> Caller {
        Caller::Session {
            session: session.clone(),
            host: self.host.clone(),
            outside: self.outside.clone(),
            message,
        }
    }

    fn reader(&self) -> Reader<'_> {
        let prefix = &self.prefix;
        Reader::Model { prefix }
    }

    /// A problem, and what can be called instead.
    fn with_hint(&self, problem: &Problem) -> String {
        let prefix = &self.prefix;
        let hint = match problem {
            Problem::Refused(Refusal::UnknownTask { .. }) => {
                format!("; call {prefix}list to see which there are")
            }
            Problem::Refused(Refusal::TooLateToTell { task, .. } | Refusal::SummingUp { task }) => {
                format!(": {prefix}task(resume=\"{task}\", prompt=\"…\")")
            }
            Problem::Refused(Refusal::NeverBegan { .. }) => format!("; start a new {prefix}task"),
            Problem::Refused(Refusal::SessionGone { .. }) => {
                format!("; start a new {prefix}task instead")
            }
            Problem::Refused(_) | Problem::Store(_) | Problem::Host(_) | Problem::NotOurs => {
                String::new()
            }
        };
        format!("{problem}{hint}")
    }

    /// Uses a skill: its text for the model to follow, or a sub-agent.
    async fn skill(
        &self,
        manager: &Manager,
        session: &SessionId,
        caller: Caller,
        call: SkillCall,
    ) -> Result<Answered, SkillTrouble> {
        let Some(skills) = &self.skills else {
            return Ok(Answered::failed("there are no skills here".to_owned()));
        };
        let invocation = Invocation {
            name: call.name,
            arguments: call.arguments,
            by: Invoker::Model,
            session: session.clone(),
            model: None,
        };
        let ready = skills.ready(manager, &caller, &invocation).await?;
        let manifest = &ready.skill.manifest;
        if manifest.context == SkillContext::Inherit {
            let text = format!(
                "Skill {} (its files are in {}):\n\n{}",
                manifest.name,
                ready.folder.display(),
                ready.body
            );
            return Ok(Answered::done(text, About::Words));
        }
        let background = call.background.or(manifest.background).unwrap_or(true);
        let task = ready.task(&invocation.arguments, manager.settings());
        if !background {
            let launched = manager.launch_awaited(&caller, task).await?;
            return self.summary(manager, &caller, &launched.shown).await;
        }
        let launched = manager.launch(&caller, task).await?;
        let text = launched.text(&self.prefix);
        Ok(Answered::done(text, About::Task(Box::new(launched.shown))))
    }

    /// Waits for a sub-agent, as long as a caller may wait.
    async fn summary(
        &self,
        manager: &Manager,
        caller: &Caller,
        shown: &Shown,
    ) -> Result<Answered, SkillTrouble> {
        let request = OutputRequest {
            task: shown.task.id.to_string(),
            wait: Some(OutputRequest::LONGEST),
            conversation: None,
            part: TextPart::default(),
        };
        let report = manager.output(caller, request).await?;
        let task = &report.shown.task;
        let State::Ended { outcome, .. } = &task.state else {
            let text = answer::launched(&report.shown, &self.prefix);
            return Ok(Answered::done(text, About::Task(Box::new(report.shown))));
        };
        let summary = SubAgentReport::new(outcome, report.answer.as_deref(), task.chain.as_ref());
        let (mut headline, trace) = (summary.headline(), summary.trace());
        if *outcome == Outcome::Completed {
            let text = format!("{headline}\n{trace}");
            return Ok(Answered::done(text, About::Task(Box::new(report.shown))));
        }
        let run = manager.trace(task.id.as_str()).await?;
        if !run.state.is_own_end() {
            let code = ErrorCode::SubagentError.name();
            headline = format!("{code}: {}", summary.summary);
        }
        Ok(Answered {
            outcome: ToolOutcome::Failed(format!("{headline}\n{trace}")),
            about: About::Task(Box::new(report.shown)),
        })
    }

    async fn answer(
        &self,
        manager: &Manager,
        session: &SessionId,
        caller: Caller,
        request: ToolRequest,
    ) -> Result<Answered, Problem> {
        let (text, about) = match request {
            ToolRequest::Task(args) => {
                let accepted = manager.task(&caller, args).await?;
                let text = accepted.text(&self.prefix);
                (text, About::Task(Box::new(accepted.shown)))
            }
            ToolRequest::Output(request) => {
                let part = request.part;
                let report = manager.output(&caller, request).await?;
                let text = answer::output(&report, manager.now(), self.reader());
                let text = answer::output_part(text, part, &report.shown.id, &self.prefix);
                (text, About::Task(Box::new(report.shown)))
            }
            ToolRequest::List(status) => {
                let request = ListRequest::for_model(session, status);
                let list = manager.list(request).await?;
                let text = list.text(manager.now(), self.reader(), None);
                (text, About::List(list))
            }
            ToolRequest::Cancel(task) => {
                let cancelled = manager.cancel(&caller, &task).await?;
                (cancelled.text(), About::Task(Box::new(cancelled.shown)))
            }
            ToolRequest::Message(request) => {
                let told = manager.message(&caller, request).await?;
                (told.text(self.reader()), About::Task(Box::new(told.shown)))
            }
            ToolRequest::Answer(request) => {
                let given = manager.answer(&caller, request).await?;
                (given.text(), About::Task(Box::new(given.shown)))
            }
            ToolRequest::Clear => {
                let cleared = manager.clear(session).await?;
                (cleared.text(), About::Cleared(cleared))
            }
            ToolRequest::Skill(call) => {
                let used = self.skill(manager, session, caller, call).await;
                return Ok(used.unwrap_or_else(|SkillTrouble { code, why }| {
                    Answered::failed(format!("{}: {why}", code.name()))
                }));
            }
        };
        Ok(Answered::done(text, about))
    }
}

#[async_trait]
impl Delegation for ToolDoor {
    fn tools(&self) -> Vec<ToolSpec> {
        let mut tools = tool_set::specs(&self.prefix);
        let disclosed = self.disclosed();
        let skill = |list: String| tool_set::skill_spec(tool_set::SKILL, Some(&list));
        tools.extend(disclosed.map(skill));
        tools
    }

    async fn call(&self, session: &SessionId, message: &str, request: ToolRequest) -> ToolOutcome {
        let message = Some(message.to_owned());
        self.call_from(session, message, request).await.outcome
    }
}
