//! What a call of a tool is answered.

use asyncagents_core::{
    agent::ToolOutcome,
    answer::{self, Shown},
    task_list::TaskList,
};

use crate::Cleared;

/// An answer in words, for models, and what they are about, for programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    pub outcome: ToolOutcome,
    pub about: About,
}

/// What an answer is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum About {
    /// There is nothing but the words.
    Words,
    Task(Box<Shown>),
    List(TaskList),
    Cleared(Cleared),
}

impl Answered {
    pub(crate) fn done(text: String, about: About) -> Self {
        Self {
            outcome: ToolOutcome::Done(text),
            about,
        }
    }

    pub(crate) fn failed(why: String) -> Self {
        Self {
            outcome: ToolOutcome::Failed(why),
            about: About::Words,
        }
    }

    /// The same with no more words than a caller is shown.
    pub(crate) fn bounded(self) -> Self {
        let outcome = match self.outcome {
            ToolOutcome::Done(text) => ToolOutcome::Done(answer::bounded(text)),
            ToolOutcome::Failed(why) => ToolOutcome::Failed(answer::bounded(why)),
            ToolOutcome::Unknown => ToolOutcome::Unknown,
        };
        Self { outcome, ..self }
    }
}
