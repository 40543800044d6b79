//! A run of a session: how far it has come since its prompt.

use std::collections::BTreeMap;

use super::{Answer, Block, Call, Stop, ToolOutcome};
use crate::{budget::Cost, fallback::Fallback, id::PostId};

/// The run that is not over.
#[derive(Debug, Clone)]
pub struct Run {
    pub prompt: PostId,
    /// How often the model has answered.
    pub answers: u64,
    /// How often the host had to say something itself since the last useful answer.
    pub nudges: u32,
    /// The last turn was announced.
    pub last_turn: Option<LastTurn>,
    /// What the model said last, all pieces of it.
    pub answer: Option<String>,
    /// How many answers in a row were cut at the model's greatest length.
    pub cuts: u32,
    /// The newest call, and how often it came in a row.
    pub same_calls: u64,
    newest_call: Option<(String, String)>,
    /// What the newest answer has cost.
    pub newest_cost: Cost,
    /// Which models took the place of which.
    pub fallbacks: Vec<Fallback>,
    /// How often calls have failed, by tool and parameters.
    failed: BTreeMap<(String, String), u32>,
}

/// The last turn of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastTurn {
    /// The limit that is reached, in words.
    pub why: String,
    /// Whether the run has failed with that, whatever the model says.
    pub fails: bool,
    pub over: bool,
}

impl Run {
    /// A run that begins with a prompt.
    pub(super) fn of(prompt: PostId) -> Self {
        Self {
            prompt,
            answers: 0,
            nudges: 0,
            last_turn: None,
            answer: None,
            cuts: 0,
            same_calls: 0,
            newest_call: None,
            newest_cost: Cost::default(),
            fallbacks: Vec::new(),
            failed: BTreeMap::new(),
        }
    }

    /// How often a call has failed.
    pub fn failures(&self, call: &Call) -> u32 {
        let key = (call.name.clone(), call.input.clone());
        self.failed.get(&key).copied().unwrap_or(0)
    }

    /// Takes in what came of a call; `began`: it may have changed something.
    pub(super) fn called(&mut self, call: &Call, began: bool, outcome: &ToolOutcome) {
        let key = (call.name.clone(), call.input.clone());
        if outcome.is_error() {
            *self.failed.entry(key).or_default() += 1;
        } else if began {
            // What failed before may work now.
            self.failed.clear();
        } else {
            self.failed.remove(&key);
        }
    }

    /// Takes in an answer; `goes_on`: it continues the one before.
    pub(super) fn note(&mut self, answer: &Answer, goes_on: bool) {
        self.answers += 1;
        self.newest_cost = answer.cost.unwrap_or_default();
        if let Some(last) = &mut self.last_turn {
            last.over = true;
        }
        let text = answer.text();
        if !text.trim().is_empty() {
            match &mut self.answer {
                Some(before) if goes_on => before.push_str(&text),
                _ => self.answer = Some(text),
            }
        }
        let cut = answer.stop == Stop::Length;
        self.cuts = if cut { self.cuts + 1 } else { 0 };
        if is_useful(answer) && !cut {
            self.nudges = 0;
        }
        for call in answer.calls() {
            let call = Some((call.name.clone(), call.input.clone()));
            let before = Some(self.same_calls).filter(|_| self.newest_call == call);
            self.same_calls = before.unwrap_or(0) + 1;
            self.newest_call = call;
        }
    }
}

/// Says something, or wants something done.
pub(super) fn is_useful(answer: &Answer) -> bool {
    answer.blocks.iter().any(|block| match block {
        Block::Text(text) => !text.trim().is_empty(),
        Block::Call(_) => true,
        Block::Reasoning { .. } | Block::Other(_) => false,
    })
}
