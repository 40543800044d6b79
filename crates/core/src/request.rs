//! Requests of callers, checked before anything else sees them.

use std::{collections::BTreeMap, time::Duration};

use crate::{
    agent::Effort,
    budget::Budget,
    host_ref::{HostRef, HostSetup},
    id::{AgentName, ModelName, SessionId},
    question::{Given, Reply},
    refusal::Refusal,
    skill::{Manifest, Role, Terms, UsualTerms},
    speaker::Speaker,
    task::{Context, Task},
    task_limits::LONGEST_PROMPT,
};

/// The arguments of the task tool or command, unchecked.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TaskArgs {
    /// Shown in lists and notices.
    pub description: String,
    pub prompt: String,
    pub agent: String,
    /// Another agent that works on it, by its name in the user's settings.
    pub host: Option<String>,
    /// Whether the child inherits the conversation.
    pub fork: bool,
    /// A finished task to go on with, by its ID or the beginning of it.
    pub resume: Option<String>,
    /// The model, if not the agent's own.
    pub model: Option<String>,
    /// How hard the model thinks: one of the words of [`Effort`].
    pub effort: Option<String>,
    pub budget: Budget,
}

/// A request to launch or resume a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskRequest {
    Launch(Box<LaunchTask>),
    Resume(ResumeTask),
}

/// A task to launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchTask {
    /// Shown in lists and notices.
    pub description: String,
    pub prompt: String,
    pub agent: AgentName,
    /// Another agent that works on it, if not one of the caller's host.
    pub host: Option<String>,
    /// What the child knows at the start.
    pub context: Context,
    /// The model, if not the agent's own.
    pub model: Option<ModelName>,
    /// How hard the model thinks, if that is asked for.
    pub effort: Option<Effort>,
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
            request => request.to_owned(),
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
            request if request.is_empty() => format!("skill {}", skill.name),
            request => one_line(&format!("skill {}: {request}", skill.name)),
        };
        Self {
            description,
            prompt: body,
            // Which agent a skill names is for forks.
            agent: Self::USUAL_AGENT.into(),
            host: None,
            context: Context::Fresh,
            model: None,
            effort: None,
            budget: Budget {
                time: skill.time,
                ..Budget::default()
            },
            role: None,
        }
    }

    /// The agent that runs a skill which names none.
    pub const USUAL_AGENT: &str = "general";
}

/// A finished task to go on with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResumeTask {
    /// The ID or the beginning of it.
    pub task: String,
    pub prompt: String,
    /// Arguments that were given and do not apply.
    pub ignored: Vec<&'static str>,
}

/// Who makes a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Caller {
    /// An agent's session.
    Session {
        session: SessionId,
        /// Where its tasks run: its own host, unless that is outside.
        host: HostSetup,
        /// The program it lives in, where that runs no tasks.
        outside: Option<HostRef>,
        /// The message it is writing, where the host says which it is.
        message: Option<String>,
    },
    /// A person at a shell, who launches in the name of a session and may see and steer every
    /// task. Each launch is a tree of its own.
    Shell {
        /// The session that gets the notices.
        session: SessionId,
        host: HostSetup,
    },
    /// A person who reads and steers, and launches nothing.
    Person,
    /// A command that nobody was seen to type: a script's, or one that has left an agent's shell. It
    /// steers as a person does, permits nothing, and does not pass for one.
    Script,
}

impl Caller {
    /// The session that a task is launched from, and its host.
    ///
    /// # Errors
    /// When the caller launches nothing.
    pub fn launches_from(&self) -> Result<(&SessionId, &HostSetup), Refusal> {
        match self {
            Caller::Session { session, host, .. } | Caller::Shell { session, host } => {
                Ok((session, host))
            }
            Caller::Person | Caller::Script => Err(Refusal::Missing {
                name: "session",
                hint: "a task is launched from a session, which is told when it has finished",
            }),
        }
    }

    /// The program that the session lives in, where that runs no tasks.
    pub fn outside(&self) -> Option<&HostRef> {
        match self {
            Caller::Session { outside, .. } => outside.as_ref(),
            Caller::Shell { .. } | Caller::Person | Caller::Script => None,
        }
    }

    /// The message that the session is writing, where the host says which it is.
    pub fn message(&self) -> Option<&str> {
        match self {
            Caller::Session { message, .. } => message.as_deref(),
            Caller::Shell { .. } | Caller::Person | Caller::Script => None,
        }
    }

    /// Whether it may give this reply. What a model may permit is what its user lets it.
    ///
    /// # Errors
    /// When only a person may.
    pub fn may_reply(
        &self,
        reply: &Reply,
        question: &str,
        model_may_permit: bool,
    ) -> Result<(), Refusal> {
        let refused = |always| {
            let question = question.to_owned();
            Err(Refusal::OnlyAPersonPermits { always, question })
        };
        match (self, reply) {
            (Caller::Shell { .. } | Caller::Person, _)
            | (Caller::Session { .. } | Caller::Script, Reply::Reject { .. } | Reply::Values(_)) => {
                Ok(())
            }
            (Caller::Script, Reply::Once | Reply::Always) => Err(Refusal::NotAtTerminal),
            (Caller::Session { .. }, Reply::Once) if model_may_permit => Ok(()),
            (Caller::Session { .. }, Reply::Once) => refused(false),
            (Caller::Session { .. }, Reply::Always) => refused(true),
        }
    }

    /// The session that is calling, if an agent is.
    pub fn session(&self) -> Option<&SessionId> {
        match self {
            Caller::Session { session, .. } => Some(session),
            Caller::Shell { .. } | Caller::Person | Caller::Script => None,
        }
    }

    /// Who it is to a task that it tells something.
    pub fn speaker(&self, task: &Task) -> Speaker {
        match self {
            Caller::Session { session, .. } if *session == task.place.parent => Speaker::Parent,
            Caller::Session { .. } => Speaker::Ancestor,
            Caller::Shell { .. } | Caller::Person => Speaker::Person,
            Caller::Script => Speaker::Script,
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
            let given = [
                ("description", !args.description.trim().is_empty()),
                ("agent", !args.agent.trim().is_empty()),
                ("host", args.host.is_some()),
                ("model", args.model.is_some()),
                ("effort", args.effort.is_some()),
                ("budget", args.budget != Budget::default()),
            ];
            let ignored = given.iter().filter(|(_, is_given)| *is_given);
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
            empty if empty.is_empty() => {
                one_line(args.prompt.trim().lines().next().unwrap_or_default())
            }
            description => description,
        };
        Ok(TaskRequest::Launch(Box::new(LaunchTask {
            description,
            prompt: args.prompt,
            agent: args.agent.trim().into(),
            host: args.host.as_deref().and_then(filled).map(str::to_owned),
            context: if args.fork {
                Context::Forked
            } else {
                Context::Fresh
            },
            model: args.model.as_deref().and_then(filled).map(ModelName::from),
            effort: args
                .effort
                .as_deref()
                .and_then(filled)
                .map(effort)
                .transpose()?,
            budget: args.budget,
            role: None,
        })))
    }
}

/// A text that says something.
fn filled(text: &str) -> Option<&str> {
    Some(text.trim()).filter(|text| !text.is_empty())
}

fn effort(word: &str) -> Result<Effort, Refusal> {
    Effort::of_word(&word.to_lowercase()).ok_or_else(|| Refusal::OutOfRange {
        name: "effort",
        value: word.to_owned(),
        allowed: "low, medium or high",
    })
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

/// Something that a task is to be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageRequest {
    /// The ID or the beginning of it.
    pub task: String,
    pub text: String,
}

impl MessageRequest {
    /// Checks the arguments of a call.
    ///
    /// # Errors
    /// For a text that is empty, or longer than any model can read.
    pub fn new(task: &str, text: String) -> Result<Self, Refusal> {
        if text.trim().is_empty() {
            return Err(Refusal::EmptyMessage);
        }
        if text.len() > LONGEST_PROMPT {
            return Err(Refusal::MessageTooLong);
        }
        let task = task.trim().to_owned();
        Ok(Self { task, text })
    }
}

/// An answer to what a task asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerRequest {
    /// The ID or the beginning of it.
    pub task: String,
    /// Which question, by its code or the host's name for it. Without, the only one.
    pub question: Option<String>,
    pub given: Given,
}

impl AnswerRequest {
    /// Checks the arguments of a call. `decision` is a word, or left out for an answer in words.
    ///
    /// # Errors
    /// For what cannot be an answer to anything.
    pub fn new(
        task: &str,
        decision: Option<&str>,
        text: Option<String>,
        values: BTreeMap<String, Vec<String>>,
    ) -> Result<Self, Refusal> {
        let text = text.filter(|text| !text.trim().is_empty());
        let longest = values.values().flatten().chain(&text).map(String::len);
        if longest.sum::<usize>() > LONGEST_PROMPT {
            return Err(Refusal::MessageTooLong);
        }
        let given = match (decision, text) {
            (Some("reject"), text) => Given::Reject { text },
            (Some("once"), None) => Given::Once,
            (Some("always"), None) => Given::Always,
            (Some("once" | "always"), Some(_)) => {
                return Err(Refusal::OutOfRange {
                    name: "text",
                    value: "a text with a permission".to_owned(),
                    allowed: "a text with `reject`, or as an answer without a decision",
                });
            }
            (None | Some("" | "answer"), Some(text)) if values.is_empty() => Given::Text(text),
            (None | Some("" | "answer"), None) if !values.is_empty() => Given::Values(values),
            (None | Some("" | "answer"), _) => {
                return Err(Refusal::Missing {
                    name: "decision",
                    hint: "say `once`, `always` or `reject`, or answer with a text or with values",
                });
            }
            (Some(word), _) => {
                return Err(Refusal::OutOfRange {
                    name: "decision",
                    value: format!("`{word}`"),
                    allowed: "once, always, reject, or none with a text or with values",
                });
            }
        };
        Ok(Self {
            task: task.trim().to_owned(),
            question: None,
            given,
        })
    }
}

/// A request for a task's status and result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputRequest {
    /// The ID or the beginning of it.
    pub task: String,
    /// How long to wait for the task to end. Without, the answer comes at once.
    pub wait: Option<Duration>,
    /// What to show of the child's conversation, if anything.
    pub conversation: Option<ConversationRequest>,
    /// Which part of the answer, where that is long.
    pub part: TextPart,
}

/// A part of a long text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextPart {
    /// How many characters to leave out at the beginning.
    pub offset: usize,
    /// How many characters to show at most.
    pub max_chars: usize,
}

impl TextPart {
    /// How many characters an agent is answered at most: other agents cut what is longer, or put it
    /// into files.
    pub const MOST: usize = 30_000;

    /// The part that a call asks for.
    pub fn new(offset: Option<u64>, max_chars: Option<u64>) -> Self {
        let whole = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        Self {
            offset: offset.map_or(0, whole),
            max_chars: max_chars.map_or(Self::MOST, whole).clamp(1, Self::MOST),
        }
    }
}

impl Default for TextPart {
    fn default() -> Self {
        Self::new(None, None)
    }
}

/// Which part of a child's conversation to show.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConversationRequest {
    /// Show only what came after this message.
    pub since: Option<String>,
    /// Show at most so many of the newest messages.
    pub limit: Option<usize>,
    pub tool_results: bool,
}

impl OutputRequest {
    /// How long a blocked caller waits by default.
    pub const TIMEOUT: Duration = Duration::from_secs(30);
    /// How long a blocked caller may wait.
    pub const LONGEST: Duration = Duration::from_secs(600);

    /// Checks the arguments of a call; `timeout` is in seconds.
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
            part: TextPart::default(),
        })
    }
}
