//! What a session consists of, as it is kept.

use super::{Answer, ToolOutcome};
use crate::{
    fallback::Fallback,
    id::{AgentName, ChainId, ModelName, PostId},
    moment::Moment,
};

/// One thing that happened in a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// The parent's conversation, for a forked child.
    Inherited {
        post: PostId,
        /// What the child must know about the context.
        preamble: String,
        context: String,
    },
    /// Something to do. A run begins.
    Prompted {
        post: PostId,
        text: String,
        agent: AgentName,
        /// With which model, if not the session's.
        model: Option<ModelName>,
        /// The trace of the run, if it is a person's. A task's run has it with the task.
        chain: Option<ChainId>,
    },
    /// Another agent works in the session, in one of its own.
    AgentSession {
        /// The agent's name for it.
        id: String,
        /// The process that works in it from here on, as those that started it name it.
        process: Option<String>,
        /// Whether the agent can make another session that begins with all of this one.
        forks: bool,
    },
    /// A background task has ended.
    Notice {
        post: PostId,
        /// For people and the model.
        visible: String,
        /// For the model only.
        hidden: String,
    },
    /// The host tells the model something in the user's place: that its answer was empty.
    Nudged {
        text: String,
    },
    /// The next answer is the last of the run, and one without tools.
    LastTurn {
        /// The limit that is reached, in words.
        why: String,
        /// Whether the run has failed with that, whatever the model says.
        fails: bool,
    },
    /// The model was unavailable, and another one is asked from here on.
    FellBack(Fallback),
    Answered {
        /// The newest entry that the model had been shown.
        seen: u64,
        answer: Answer,
    },
    /// A tool that changes something is about to run.
    ToolBegan {
        call: String,
    },
    ToolEnded {
        call: String,
        outcome: ToolOutcome,
    },
    /// Everything before was summarised, because the window was nearly full.
    Compacted {
        /// The newest entry that is in the summary.
        seen: u64,
        /// The summary, as the model wrote it.
        answer: Answer,
    },
    Ended {
        /// The prompt that began it.
        prompt: PostId,
        end: End,
        /// What the model said last.
        answer: Option<String>,
    },
}

/// How a run of a session ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    Answered,
    /// Without success: a limit was reached, or the model would not.
    Failed {
        why: String,
    },
    /// It could not go on: the model could not be asked.
    Broken {
        why: String,
    },
    Aborted,
}

/// An entry in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filed {
    /// Its number in the session, from 1.
    pub seq: u64,
    pub at: Moment,
    pub entry: Entry,
}

impl Entry {
    /// The name under which it can be found again, if it has one.
    pub fn post(&self) -> Option<&PostId> {
        match self {
            Entry::Inherited { post, .. }
            | Entry::Prompted { post, .. }
            | Entry::Notice { post, .. } => Some(post),
            Entry::AgentSession { .. }
            | Entry::Nudged { .. }
            | Entry::LastTurn { .. }
            | Entry::FellBack(_)
            | Entry::Answered { .. }
            | Entry::ToolBegan { .. }
            | Entry::ToolEnded { .. }
            | Entry::Compacted { .. }
            | Entry::Ended { .. } => None,
        }
    }
}
