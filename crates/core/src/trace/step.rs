//! One thing that happened in a run.

use std::time::Duration;

use crate::{
    agent::Usage, budget::Cost, fallback::Fallback, id::ModelName, moment::Moment, speaker::Speaker,
};

/// One thing that happened in a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Its number in the run, from 1.
    pub seq: u64,
    pub at: Moment,
    /// How long it took, if it is over.
    pub took: Option<Duration>,
    pub what: StepKind,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepKind {
    Thought {
        /// What people may read of it.
        text: String,
    },
    Model {
        /// Which model, if its host says so.
        model: Option<ModelName>,
        usage: Usage,
        /// Tokens of which its host does not say the kind.
        unsplit: u64,
        /// What that cost, if the price is known.
        cost: Option<Cost>,
        text: String,
    },
    /// The conversation was summarised, by a model.
    Compacted {
        model: ModelName,
        usage: Usage,
        /// What that cost, if the price is known.
        cost: Option<Cost>,
    },
    Tool {
        name: String,
        /// The parameters, where the host says them.
        input: String,
        result: ToolResult,
        /// How often the same call had failed before in this run.
        retries: u32,
    },
    /// A background task has ended.
    Notice { text: String },
    /// The task was told something while it was queued or worked.
    Message {
        /// Who told it, if that was saved.
        from: Option<Speaker>,
        text: String,
    },
    /// What it asked was answered.
    Reply { text: String },
    /// A model was unavailable, and another one was asked from here on.
    FellBack(Fallback),
    /// The host said something to the model in the user's place.
    Nudged { text: String },
}

impl Step {
    /// The step after those before it in its run: an entry may be several steps, so that they have
    /// numbers of their own.
    pub(super) fn next(
        before: &[Step],
        at: Moment,
        took: Option<Duration>,
        what: StepKind,
    ) -> Self {
        let seq = u64::try_from(before.len()).map_or(u64::MAX, |steps| steps + 1);
        Self {
            seq,
            at,
            took,
            what,
        }
    }

    /// Whether there is more to come of it.
    pub fn is_open(&self) -> bool {
        let open = ToolResult::Open;
        matches!(&self.what, StepKind::Tool { result, .. } if *result == open)
    }
}

/// What came of a tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolResult {
    Open,
    Done(String),
    Failed(String),
    /// The process ended while it was running.
    Unknown,
    /// Its host does not say.
    NotReported,
}
