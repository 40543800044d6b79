//! One thing that happened in a run.

use std::time::Duration;

use crate::{agent::Usage, budget::Cost, id::ModelName, moment::Moment};

/// One thing that happened in a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Its number in the run, from 1.
    pub seq: u64,
    /// When it began.
    pub at: Moment,
    /// How long it took, if it is over.
    pub took: Option<Duration>,
    /// What happened.
    pub what: StepKind,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepKind {
    /// The model thought something.
    Thought {
        /// What people may read of it.
        text: String,
    },
    /// The model answered.
    Model {
        /// Which model, if its host says so.
        model: Option<ModelName>,
        /// What it used.
        usage: Usage,
        /// Tokens of which its host does not say the kind.
        untold: u64,
        /// What that cost, if anybody knows the price.
        cost: Option<Cost>,
        /// What it said.
        said: String,
    },
    /// The conversation was summarised, by a model.
    Compacted {
        /// Which model.
        model: ModelName,
        /// What it used.
        usage: Usage,
        /// What that cost, if anybody knows the price.
        cost: Option<Cost>,
    },
    /// A tool was called.
    Tool {
        /// The tool.
        name: String,
        /// The parameters, where the host says them.
        input: String,
        /// What came of it.
        result: ToolResult,
        /// How often the same call had failed before in this run.
        retries: u32,
    },
    /// A background task was told of.
    Told {
        /// What was said.
        text: String,
    },
    /// The host said something to the model in the user's place.
    Nudged {
        /// What it said.
        text: String,
    },
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
    /// Nothing yet.
    Open,
    /// This.
    Done(String),
    /// An error.
    Failed(String),
    /// The process ended while it was running.
    Unknown,
    /// Its host does not say.
    Untold,
}
