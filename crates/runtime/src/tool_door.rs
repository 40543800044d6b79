//! The tools for background tasks and skills, as a model calls them: a call in, a text out.

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

use crate::{Invocation, Invoker, Manager, Problem, SkillTrouble, Skills, WeakManager};

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
    ) -> ToolOutcome {
        let Some(manager) = self.manager.upgrade() else {
            return ToolOutcome::Failed("asyncagents is ending; nothing was done".to_owned());
        };
        let caller = Caller::Session {
            session: session.clone(),
            host: self.host.clone(),
            outside: self.outside.clone(),
            message,
        };
        let answered = self.answer(&manager, session, caller, request).await;
        match answered {
            Ok(ToolOutcome::Done(text)) => ToolOutcome::Done(answer::bounded(text)),
            Ok(ToolOutcome::Failed(why)) => ToolOutcome::Failed(answer::bounded(why)),
            Ok(ToolOutcome::Unknown) => ToolOutcome::Unknown,
            Err(problem) => ToolOutcome::Failed(answer::bounded(self.with_hint(&problem))),
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
    ) -> Result<ToolOutcome, SkillTrouble> {
        let Some(skills) = &self.skills else {
            return Ok(ToolOutcome::Failed("there are no skills here".to_owned()));
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
            return Ok(ToolOutcome::Done(format!(
                "Skill {} (its files are in {}):\n\n{}",
                manifest.name,
                ready.folder.display(),
                ready.body
            )));
        }
        let background = call.background.or(manifest.background).unwrap_or(true);
        let task = ready.task(&invocation.arguments, manager.settings());
        if !background {
            let launched = manager.launch_awaited(&caller, task).await?;
            return self.summary(manager, &caller, &launched.shown).await;
        }
        let launched = manager.launch(&caller, task).await?;
        Ok(ToolOutcome::Done(launched.text(&self.prefix)))
    }

    /// Waits for a sub-agent, as long as a caller may wait.
    async fn summary(
        &self,
        manager: &Manager,
        caller: &Caller,
        shown: &Shown,
    ) -> Result<ToolOutcome, SkillTrouble> {
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
            return Ok(ToolOutcome::Done(text));
        };
        let summary = SubAgentReport::new(outcome, report.answer.as_deref(), task.chain.as_ref());
        let (mut headline, trace) = (summary.headline(), summary.trace());
        if *outcome == Outcome::Completed {
            return Ok(ToolOutcome::Done(format!("{headline}\n{trace}")));
        }
        let run = manager.trace(task.id.as_str()).await?;
        if !run.state.is_own_end() {
            let code = ErrorCode::SubagentError.name();
            headline = format!("{code}: {}", summary.summary);
        }
        Ok(ToolOutcome::Failed(format!("{headline}\n{trace}")))
    }

    async fn answer(
        &self,
        manager: &Manager,
        session: &SessionId,
        caller: Caller,
        request: ToolRequest,
    ) -> Result<ToolOutcome, Problem> {
        Ok(ToolOutcome::Done(match request {
            ToolRequest::Task(args) => manager.task(&caller, args).await?.text(&self.prefix),
            ToolRequest::Output(request) => {
                let part = request.part;
                let report = manager.output(&caller, request).await?;
                let text = answer::output(&report, manager.now(), self.reader());
                answer::output_part(text, part, &report.shown.id, &self.prefix)
            }
            ToolRequest::List(status) => {
                let request = ListRequest::for_model(session, status);
                let list = manager.list(request).await?;
                list.text(manager.now(), self.reader(), None)
            }
            ToolRequest::Cancel(task) => manager.cancel(&caller, &task).await?.text(),
            ToolRequest::Message(request) => {
                let told = manager.message(&caller, request).await?;
                told.text(self.reader())
            }
            ToolRequest::Answer(request) => manager.answer(&caller, request).await?.text(),
            ToolRequest::Clear => manager.clear(session).await?.text(),
            ToolRequest::Skill(call) => {
                let used = self.skill(manager, session, caller, call).await;
                return Ok(used.unwrap_or_else(|SkillTrouble { code, why }| {
                    ToolOutcome::Failed(format!("{}: {why}", code.name()))
                }));
            }
        }))
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
        self.call_from(session, message, request).await
    }
}
