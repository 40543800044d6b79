//! One thing that happened in a run.

use std::time::Duration;

use super::TraceTotals;
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

/// The steps of a run, as far as they are known. Those that were handed out are only counted: who
/// follows a run keeps no more of it than what waits.
#[derive(Debug, Default)]
pub(super) struct Steps {
    /// How many were handed out, and what they come to.
    gone: u64,
    gone_totals: TraceTotals,
    waiting: Vec<Step>,
}

impl Steps {
    /// Adds a step and returns its number: an entry may be several steps, so that they have numbers
    /// of their own.
    pub(super) fn push(&mut self, at: Moment, took: Option<Duration>, what: StepKind) -> u64 {
        let waiting = u64::try_from(self.waiting.len()).unwrap_or(u64::MAX);
        let seq = self.gone.saturating_add(waiting).saturating_add(1);
        self.waiting.push(Step {
            seq,
            at,
            took,
            what,
        });
        seq
    }

    /// A step that was not handed out, by its number.
    pub(super) fn waiting(&mut self, seq: u64) -> Option<&mut Step> {
        let at = usize::try_from(seq.checked_sub(self.gone)?).ok()?;
        self.waiting.get_mut(at.checked_sub(1)?)
    }

    /// Hands out the steps up to the first of which there is more to come, or all.
    pub(super) fn hand_out(&mut self, all: bool) -> Vec<Step> {
        let settled = self
            .waiting
            .iter()
            .take_while(|step| all || !step.is_open());
        let settled = settled.count();
        let out: Vec<Step> = self.waiting.drain(..settled).collect();
        self.gone += u64::try_from(settled).unwrap_or(u64::MAX);
        self.gone_totals = self.gone_totals.plus(TraceTotals::of(&out));
        out
    }

    /// What all of them come to.
    pub(super) fn totals(&self) -> TraceTotals {
        self.gone_totals.plus(TraceTotals::of(&self.waiting))
    }
}
