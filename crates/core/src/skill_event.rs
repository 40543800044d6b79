//! The events of a skill that is run, in order. The last one is always [`SkillEvent::Done`].

use crate::trace::Step;

/// An event of a skill that is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SkillEvent {
    /// The skill is at work.
    Status { task: String, message: String },
    /// The summary, and where the whole is.
    Message { task: String, parts: [String; 2] },
    /// The skill could not be run, or its sub-agent failed.
    Error {
        task: String,
        code: ErrorCode,
        message: String,
    },
    /// A step of the sub-agent, for callers who want to know.
    SubAgent { sub_task: String, step: Box<Step> },
    /// No event follows.
    Done { task: String, completed: bool },
}

/// Why a skill did not complete, as programs read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorCode {
    /// A sub-agent may not go this deep.
    MaxDepthExceeded,
    /// The sub-agent died, was stopped, or could not be started.
    SubagentError,
    /// There is no such skill.
    SkillNotFound,
    /// The skill's file cannot be used.
    SkillBroken,
    /// The skill is not for this caller.
    NotInvocable,
    /// The skill's body could not be filled in: a command was refused or failed.
    InvocationFailed,
}

impl ErrorCode {
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

    /// Whether the error is permanent: the same request would fail however often it is made.
    pub fn is_final(self) -> bool {
        match self {
            ErrorCode::MaxDepthExceeded
            | ErrorCode::SkillNotFound
            | ErrorCode::SkillBroken
            | ErrorCode::NotInvocable => true,
            ErrorCode::SubagentError | ErrorCode::InvocationFailed => false,
        }
    }

    /// The code as it is written.
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
