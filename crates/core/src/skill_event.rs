//! What a caller who runs a skill is told, in order. The last one is always [`SkillEvent::Done`].

use crate::trace::Step;

/// Something that a caller is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SkillEvent {
    /// It is at work.
    Status {
        /// The task.
        task: String,
        /// What it does.
        message: String,
    },
    /// What came of it.
    Message {
        /// The task.
        task: String,
        /// The summary, and where the whole is.
        parts: [String; 2],
    },
    /// It could not be done.
    Error {
        /// The task.
        task: String,
        /// Which kind of trouble.
        code: ErrorCode,
        /// What went wrong.
        message: String,
    },
    /// Something that the sub-agent did, for callers who want to know.
    SubAgent {
        /// The sub-agent.
        sub_task: String,
        /// What it did.
        step: Box<Step>,
    },
    /// It is over.
    Done {
        /// The task.
        task: String,
        /// How.
        state: FinalState,
    },
}

/// Kinds of trouble.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorCode {
    /// A sub-agent may not go this deep.
    MaxDepthExceeded,
    /// The sub-agent died, was stopped, or could not be started.
    SubagentError,
    /// There is no such skill.
    SkillNotFound,
    /// Its file cannot be used.
    SkillBroken,
    /// The skill is not for this caller.
    NotInvocable,
    /// Its body could not be filled in: a command was refused or failed.
    InvocationFailed,
}

impl ErrorCode {
    /// Every code.
    const ALL: [ErrorCode; 6] = [
        ErrorCode::MaxDepthExceeded,
        ErrorCode::SubagentError,
        ErrorCode::SkillNotFound,
        ErrorCode::SkillBroken,
        ErrorCode::NotInvocable,
        ErrorCode::InvocationFailed,
    ];

    /// Which code an answer of the tool for skills begins with.
    pub fn of_answer(text: &str) -> Option<Self> {
        let code = text.split_once(": ").map(|(code, _)| code)?;
        Self::ALL.into_iter().find(|known| known.name() == code)
    }

    /// Whether the same request would come to the same end, however often it is made.
    pub fn is_final(self) -> bool {
        match self {
            ErrorCode::MaxDepthExceeded
            | ErrorCode::SkillNotFound
            | ErrorCode::SkillBroken
            | ErrorCode::NotInvocable => true,
            ErrorCode::SubagentError | ErrorCode::InvocationFailed => false,
        }
    }

    /// As programs read it.
    pub fn name(self) -> &'static str {
        match self {
            ErrorCode::MaxDepthExceeded => "MAX_DEPTH_EXCEEDED",
            ErrorCode::SubagentError => "SUBAGENT_ERROR",
            ErrorCode::SkillNotFound => "SKILL_NOT_FOUND",
            ErrorCode::SkillBroken => "SKILL_BROKEN",
            ErrorCode::NotInvocable => "NOT_INVOCABLE",
            ErrorCode::InvocationFailed => "INVOCATION_FAILED",
        }
    }
}

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FinalState {
    /// With an answer.
    Completed,
    /// Without.
    Failed,
}

impl FinalState {
    /// As programs read it.
    pub fn name(self) -> &'static str {
        match self {
            FinalState::Completed => "COMPLETED",
            FinalState::Failed => "FAILED",
        }
    }
}
