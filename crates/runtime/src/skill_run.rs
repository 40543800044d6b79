//! Runs a skill as a stream of events. Whatever happens, the last event is `Done`.

use std::{collections::VecDeque, time::Duration};

use asyncagents_core::{
    id::TaskId,
    request::Caller,
    skill::SkillContext,
    skill_event::{ErrorCode, SkillEvent},
    sub_agent_report::SubAgentReport,
    task::{Outcome, State},
    trace::{Trace, TraceState},
};
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::{Invocation, Manager, NewSteps, Problem, SkillTrouble, Skills, TraceFollower};

/// How long one wait for news of a task may last.
const POLL_INTERVAL: Duration = Duration::from_secs(5);

/// A skill that is run.
pub struct SkillRun {
    manager: Manager,
    skills: Skills,
    caller: Caller,
    invocation: Invocation,
    /// Whether the sub-agent's own steps are events too.
    sub_agent_events: bool,
    task: TaskId,
    /// The launch. It survives a caller that drops the future of `next`, and happens once.
    launching: JoinSet<Result<(SkillContext, String), SkillTrouble>>,
    stage: Stage,
    ready: VecDeque<SkillEvent>,
    /// Reads the sub-agent's steps, each once.
    follower: Option<TraceFollower>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Stage {
    Asked,
    Launching,
    Launched {
        context: SkillContext,
        /// The newest event of the task that was seen.
        seen: Option<u64>,
    },
    Over,
}

impl SkillRun {
    /// Runs a skill when its events are asked for.
    pub fn new(manager: &Manager, skills: &Skills, caller: Caller, invocation: Invocation) -> Self {
        Self {
            manager: manager.clone(),
            skills: skills.clone(),
            caller,
            invocation,
            sub_agent_events: false,
            launching: JoinSet::new(),
            task: TaskId::from_random(Uuid::new_v4().as_u128()),
            stage: Stage::Asked,
            ready: VecDeque::new(),
            follower: None,
        }
    }

    /// The same, with the sub-agent's own steps as events.
    #[must_use]
    pub fn with_sub_agent_events(self) -> Self {
        Self {
            sub_agent_events: true,
            ..self
        }
    }

    /// The task that runs the skill, launched or not.
    pub fn task(&self) -> &TaskId {
        &self.task
    }

    /// The next event; nothing after the last.
    pub async fn next(&mut self) -> Option<SkillEvent> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            match self.stage.clone() {
                Stage::Asked => {
                    self.launching.spawn(launch(
                        self.manager.clone(),
                        self.skills.clone(),
                        self.caller.clone(),
                        self.invocation.clone(),
                        self.task.clone(),
                    ));
                    self.stage = Stage::Launching;
                }
                Stage::Launching => match self.launching.join_next().await {
                    Some(Ok(Ok((context, message)))) => {
                        let task = self.task.to_string();
                        self.ready.push_back(SkillEvent::Status { task, message });
                        let seen = None;
                        self.stage = Stage::Launched { context, seen };
                    }
                    Some(Ok(Err(trouble))) => self.fail(trouble.code, trouble.why),
                    Some(Err(error)) => self.fail(ErrorCode::SubagentError, error.to_string()),
                    None => self.fail(ErrorCode::SubagentError, NOT_BEGUN.to_owned()),
                },
                Stage::Launched { context, seen } => {
                    if let Err(problem) = self.follow(context, seen).await {
                        self.fail(ErrorCode::SubagentError, problem.to_string());
                    }
                }
                Stage::Over => return None,
            }
        }
    }

    /// Cancels the task, or its launch. The last event is `Done` all the same.
    ///
    /// # Errors
    /// When the task has ended already, or the store fails.
    pub async fn stop(&mut self) -> Result<(), Problem> {
        self.launching.shutdown().await;
        let task = self.task.to_string();
        let cancelled = self.manager.cancel(&Caller::Person, &task).await;
        match (&self.stage, cancelled) {
            (Stage::Asked | Stage::Launching, Ok(_)) => {
                // It was launched, but its first event was not emitted.
                let message = format!("Spawning sub-agent for skill: {}", self.invocation.name);
                self.ready.push_back(SkillEvent::Status { task, message });
                let (context, seen) = (SkillContext::Isolated, None);
                self.stage = Stage::Launched { context, seen };
                Ok(())
            }
            (Stage::Asked | Stage::Launching, Err(Problem::Refused(_))) => {
                self.fail(ErrorCode::SubagentError, NOT_BEGUN.to_owned());
                Ok(())
            }
            (_, cancelled) => cancelled.map(drop),
        }
    }

    async fn follow(&mut self, context: SkillContext, seen: Option<u64>) -> Result<(), Problem> {
        let asked = self.task.to_string();
        let report = self
            .manager
            .follow(&Caller::Person, &asked, seen, POLL_INTERVAL)
            .await?;
        let task = report.shown.task;
        let seen = Some(task.seq);
        self.stage = Stage::Launched { context, seen };
        if self.sub_agent_events {
            self.emit_steps(task.place.depth).await?;
        }
        let State::Ended { outcome, .. } = &task.state else {
            return Ok(());
        };
        let (_, trace) = self.steps().await?;
        let completed = *outcome == Outcome::Completed;
        let answer = report.answer;
        let summary = SubAgentReport::new(outcome, answer.as_deref(), trace.chain.as_ref());
        let task = asked;
        self.ready.push_back(match &trace.state {
            TraceState::Ended { own: false, .. } => SkillEvent::Error {
                task,
                code: ErrorCode::SubagentError,
                message: format!("{} ({})", summary.summary, summary.trace()),
            },
            TraceState::Queued | TraceState::Running | TraceState::Ended { own: true, .. } => {
                let text = if context == SkillContext::Inherit && completed {
                    answer.unwrap_or_default()
                } else {
                    summary.headline()
                };
                let parts = [text, summary.trace()];
                SkillEvent::Message { task, parts }
            }
        });
        self.done(completed);
        Ok(())
    }

    /// Emits the new steps. One without a result follows when it has one.
    async fn emit_steps(&mut self, depth: u32) -> Result<(), Problem> {
        let sub_task = format!("{}-subagent-{depth}", self.task);
        let (runs, _) = self.steps().await?;
        let own = runs.into_iter().filter(|run| run.depth == 0);
        for step in own.flat_map(|run| run.steps) {
            self.ready.push_back(SkillEvent::SubAgent {
                sub_task: sub_task.clone(),
                step: Box::new(step),
            });
        }
        Ok(())
    }

    /// What is new in the run of the task, and how it stands.
    async fn steps(&mut self) -> Result<(Vec<NewSteps>, Trace), Problem> {
        let follower = match &mut self.follower {
            Some(follower) => follower,
            none => none.insert(self.manager.follow_trace(self.task.as_str()).await?),
        };
        follower.next().await
    }

    fn fail(&mut self, code: ErrorCode, message: String) {
        let task = self.task.to_string();
        self.ready.push_back(SkillEvent::Error {
            task,
            code,
            message,
        });
        self.done(false);
    }

    fn done(&mut self, completed: bool) {
        let task = self.task.to_string();
        self.ready.push_back(SkillEvent::Done { task, completed });
        self.stage = Stage::Over;
    }
}

/// The error of a skill that was stopped too early.
const NOT_BEGUN: &str = "it was stopped before it began";

/// Launches the task; returns where it runs, and the message of the first event.
async fn launch(
    manager: Manager,
    skills: Skills,
    caller: Caller,
    invocation: Invocation,
    task: TaskId,
) -> Result<(SkillContext, String), SkillTrouble> {
    // A person has no session; the skill's variable is the session that the task will have.
    let session = match &caller {
        Caller::Session { session, .. } => session.clone(),
        Caller::Shell { .. } | Caller::Person | Caller::Script => task.session(),
    };
    let invocation = Invocation {
        session,
        ..invocation
    };
    let ready = skills.ready(&manager, &caller, &invocation).await?;
    let manifest = &ready.skill.manifest;
    let (context, name) = (manifest.context, manifest.name.clone());
    let mut wanted = ready.task(&invocation.arguments, manager.settings());
    wanted.model = invocation.model.or(wanted.model);
    manager.launch_as(&caller, wanted, task).await?;
    let message = match context {
        SkillContext::Isolated => format!("Spawning sub-agent for skill: {name}"),
        SkillContext::Inherit => format!("Running skill: {name}"),
    };
    Ok((context, message))
}
