//! What callers ask for, checked at the door.

use std::time::Duration;

use crate::{
    budget::Budget,
    host_ref::HostSetup,
    id::{AgentName, ModelName, SessionId},
    refusal::Refusal,
    skill::{Manifest, Role, Terms, UsualTerms},
    task::Context,
    task_limits::LONGEST_PROMPT,
};

/// What a caller of `asyncagents_task` says, as it comes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TaskArgs {
    /// A few words for people.
    pub description: String,
    /// What the task has to do.
    pub prompt: String,
    /// Who works on it.
    pub agent: String,
    /// Whether the child inherits the conversation.
    pub fork: bool,
    /// A finished task to go on with, by its ID or the beginning of it.
    pub resume: Option<String>,
    /// The model, if not the agent's own.
    pub model: Option<String>,
    /// What the task may spend.
    pub budget: Budget,
}

/// What a caller of `asyncagents_task` wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskRequest {
    /// A new task.
    Launch(Box<LaunchTask>),
    /// A follow-up.
    Resume(ResumeTask),
}

/// A task to launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchTask {
    /// A few words for people.
    pub description: String,
    /// What to do.
    pub prompt: String,
    /// Who does it.
    pub agent: AgentName,
    /// What the child knows at the start.
    pub context: Context,
    /// The model, if not the agent's own.
    pub model: Option<ModelName>,
    /// What the task may spend.
    pub budget: Budget,
    /// The skill that it runs. Its terms have the iterations that the skill has; what is left
    /// of them at its depth is worked out at the launch.
    pub role: Option<Role>,
}

impl LaunchTask {
    /// A sub-agent that runs a skill.
    pub fn of_skill(
        skill: &Manifest,
        arguments: &str,
        instructions: String,
        usual: UsualTerms,
    ) -> Self {
        let prompt = match arguments.trim() {
            "" => format!("Execute the skill '{}'.", skill.name),
            said => said.to_owned(),
        };
        let terms = Terms {
            skill: skill.name.clone(),
            tools: skill.tools.clone(),
            iterations: skill.max_iterations.unwrap_or(usual.iterations),
            retries: skill.max_retries.unwrap_or(usual.retries),
            iteration_time: skill.iteration_time,
            model: skill.model.as_deref().map(ModelName::from),
            effort: skill.effort,
        };
        let agent = skill.agent.as_deref().unwrap_or(Self::USUAL_AGENT);
        Self {
            prompt,
            agent: agent.into(),
            role: Some(Role {
                terms,
                instructions,
            }),
            ..Self::of_body(skill, arguments, String::new())
        }
    }

    /// A task that does what a skill says, as any other.
    pub fn of_body(skill: &Manifest, arguments: &str, body: String) -> Self {
        let description = match one_line(arguments) {
            said if said.is_empty() => format!("skill {}", skill.name),
            said => one_line(&format!("skill {}: {said}", skill.name)),
        };
        Self {
            description,
            prompt: body,
            // Which agent a skill names is for forks.
            agent: Self::USUAL_AGENT.into(),
            context: Context::Fresh,
            model: None,
            budget: Budget {
                time: skill.time,
                ..Budget::default()
            },
            role: None,
        }
    }

    /// Who runs a skill that does not say.
    pub const USUAL_AGENT: &str = "general";
}

/// A finished task to go on with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResumeTask {
    /// Its ID or the beginning of it.
    pub task: String,
    /// What to do now.
    pub prompt: String,
    /// What was said and does not apply.
    pub ignored: Vec<&'static str>,
}

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Caller {
    /// An agent's session, in its host.
    Session {
        /// The session.
        session: SessionId,
        /// Where it lives.
        host: HostSetup,
        /// The message it is writing, where the host says which it is.
        message: Option<String>,
    },
    /// A person at a shell, who launches in the name of a session and may see and steer every
    /// task. Each launch is a tree of its own.
    Shell {
        /// The session that is told.
        session: SessionId,
        /// Where its tasks run.
        host: HostSetup,
    },
    /// A person who only looks and steers.
    Person,
}

impl Caller {
    /// The session that a task is launched from, and its host.
    ///
    /// # Errors
    /// When the caller only looks on.
    pub fn launches_from(&self) -> Result<(&SessionId, &HostSetup), Refusal> {
        match self {
            Caller::Session { session, host, .. } | Caller::Shell { session, host } => {
                Ok((session, host))
            }
            Caller::Person => Err(Refusal::Missing {
                name: "session",
                hint: "a task is launched from a session, which is told when it has finished",
            }),
        }
    }

    /// The message that the session is writing, where the host says which it is.
    pub fn message(&self) -> Option<&str> {
        match self {
            Caller::Session { message, .. } => message.as_deref(),
            Caller::Shell { .. } | Caller::Person => None,
        }
    }

    /// The session that is calling, if an agent is.
    pub fn session(&self) -> Option<&SessionId> {
        match self {
            Caller::Session { session, .. } => Some(session),
            Caller::Shell { .. } | Caller::Person => None,
        }
    }
}

/// How long a description may be.
const DESCRIPTION: usize = 80;

impl TryFrom<TaskArgs> for TaskRequest {
    type Error = Refusal;

    fn try_from(args: TaskArgs) -> Result<Self, Refusal> {
        if args.fork && args.resume.is_some() {
            return Err(Refusal::ForkWithResume);
        }
        if args.prompt.trim().is_empty() {
            return Err(Refusal::EmptyPrompt);
        }
        if args.prompt.len() > LONGEST_PROMPT {
            return Err(Refusal::PromptTooLong);
        }
        if let Some(task) = args.resume {
            let said = [
                ("description", !args.description.trim().is_empty()),
                ("agent", !args.agent.trim().is_empty()),
                ("model", args.model.is_some()),
                ("budget", args.budget != Budget::default()),
            ];
            let ignored = said.iter().filter(|(_, said)| *said);
            return Ok(TaskRequest::Resume(ResumeTask {
                task,
                prompt: args.prompt,
                ignored: ignored.map(|(name, _)| *name).collect(),
            }));
        }
        if args.agent.trim().is_empty() {
            return Err(Refusal::Missing {
                name: "agent",
                hint: "say which agent works on the task",
            });
        }
        let description = match one_line(&args.description) {
            said if said.is_empty() => {
                one_line(args.prompt.trim().lines().next().unwrap_or_default())
            }
            said => said,
        };
        Ok(TaskRequest::Launch(Box::new(LaunchTask {
            description,
            prompt: args.prompt,
            agent: args.agent.trim().into(),
            context: if args.fork {
                Context::Forked
            } else {
                Context::Fresh
            },
            model: args.model.map(ModelName::from),
            budget: args.budget,
            role: None,
        })))
    }
}

/// One line, not too long, with nothing in it that a terminal would obey.
fn one_line(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let line = words.join(" ");
    match line.char_indices().nth(DESCRIPTION) {
        Some((end, _)) => format!("{}…", line[..end].trim_end()),
        None => line,
    }
}

/// What a caller of `asyncagents_output` wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputRequest {
    /// The task's ID or the beginning of it.
    pub task: String,
    /// How long to wait for the task to end. Without, the answer comes at once.
    pub wait: Option<Duration>,
    /// What to show of the child's conversation, if anything.
    pub conversation: Option<ConversationRequest>,
}

/// What to show of a child's conversation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConversationRequest {
    /// Only what came after this message.
    pub since: Option<String>,
    /// Only the newest so many messages.
    pub limit: Option<usize>,
    /// What the tools answered, too.
    pub tool_results: bool,
}

impl OutputRequest {
    /// How long a blocked caller waits if it does not say.
    pub const TIMEOUT: Duration = Duration::from_secs(30);
    /// How long it may wait.
    pub const LONGEST: Duration = Duration::from_secs(600);

    /// Checks what a caller said; `timeout` is in seconds.
    ///
    /// # Errors
    /// For a timeout that is longer than allowed.
    pub fn new(task: &str, block: bool, timeout: Option<u64>) -> Result<Self, Refusal> {
        let wait = timeout.map_or(Self::TIMEOUT, Duration::from_secs);
        if wait > Self::LONGEST {
            return Err(Refusal::OutOfRange {
                name: "timeout",
                value: wait.as_secs().to_string(),
                allowed: "0 to 600 seconds",
            });
        }
        Ok(Self {
            task: task.trim().to_owned(),
            wait: block.then_some(wait),
            conversation: None,
        })
    }
}
