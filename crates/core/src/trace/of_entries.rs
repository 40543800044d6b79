//! The steps of a run in a session of the built-in agent.

use std::collections::HashMap;

use super::{StepKind, Steps, ToolResult};
use crate::{
    agent::{Answer, Block, End, Entry, Filed, ToolOutcome},
    id::{AgentName, PostId},
    last_turn,
    moment::Moment,
};

/// How a run in a session ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunEnd {
    pub end: End,
    pub answer: Option<String>,
    pub at: Moment,
}

impl RunEnd {
    /// Whether its agent came to an end without success: at a limit, or because the model refused.
    pub(super) fn failed(&self) -> bool {
        matches!(self.end, End::Failed { .. })
    }
}

/// What the entries of a session say about one of its runs, entry by entry: the steps, and how it
/// ended if it has.
#[derive(Debug)]
pub(super) struct EntrySteps {
    /// The prompt that began the run.
    prompt: PostId,
    stage: Stage,
    /// Who was asked, and what.
    pub(super) asked: Option<(AgentName, String)>,
    pub(super) end: Option<RunEnd>,
    pub(super) steps: Steps,
    /// When the newest entry was saved.
    last: Moment,
    /// When the entry before the newest moment was saved: entries that are saved together have
    /// one time.
    before: Moment,
    /// The calls of the newest answer that have no result.
    open: Vec<Open>,
    /// How often each call has failed.
    failed: HashMap<(String, String), u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The entries are of runs before it.
    Before,
    During,
    After,
}

/// A call without a result.
#[derive(Debug)]
struct Open {
    call: String,
    /// The number of its step.
    step: u64,
    /// What makes it the same call as another: tool and parameters.
    key: (String, String),
    began: bool,
}

impl EntrySteps {
    pub(super) fn new(prompt: PostId) -> Self {
        Self {
            prompt,
            stage: Stage::Before,
            asked: None,
            end: None,
            steps: Steps::default(),
            last: Moment::default(),
            before: Moment::default(),
            open: Vec::new(),
            failed: HashMap::new(),
        }
    }

    /// The next entry. `told` is what its task was told, by the names of the entries.
    pub(super) fn take(&mut self, filed: &Filed, told: &HashMap<PostId, StepKind>) {
        match (self.stage, &filed.entry) {
            (
                Stage::Before,
                Entry::Prompted {
                    post, agent, text, ..
                },
            ) if *post == self.prompt => {
                self.stage = Stage::During;
                self.asked = Some((agent.clone(), text.clone()));
                (self.last, self.before) = (filed.at, filed.at);
            }
            (Stage::Before | Stage::After, _) => {}
            (
                Stage::During,
                Entry::Ended {
                    prompt,
                    end,
                    answer,
                },
            ) if *prompt == self.prompt => {
                self.stage = Stage::After;
                self.end = Some(RunEnd {
                    end: end.clone(),
                    answer: answer.clone(),
                    at: filed.at,
                });
            }
            // The next run.
            (Stage::During, Entry::Prompted { .. }) => self.stage = Stage::After,
            (Stage::During, _) => self.step(filed, told),
        }
    }

    fn step(&mut self, filed: &Filed, told: &HashMap<PostId, StepKind>) {
        if filed.at != self.last {
            self.before = self.last;
            self.last = filed.at;
        }
        match &filed.entry {
            Entry::Answered { answer, .. } => self.answered(filed, answer),
            Entry::Compacted { answer, .. } => self.push(
                filed,
                StepKind::Compacted {
                    model: answer.model.clone(),
                    usage: answer.usage,
                    cost: answer.cost,
                },
            ),
            Entry::ToolBegan { call } => {
                if let Some(open) = self.open.iter_mut().find(|open| open.call == *call) {
                    open.began = true;
                    if let Some(step) = self.steps.waiting(open.step) {
                        step.at = filed.at;
                    }
                }
            }
            Entry::ToolEnded { call, outcome } => self.ended(filed.at, call, outcome),
            Entry::Notice { post, visible, .. } => {
                let text = visible.clone();
                let what = match told.get(post) {
                    Some(told) => told.clone(),
                    None if post.is_message() => StepKind::Message { from: None, text },
                    None => StepKind::Notice { text },
                };
                self.note(filed, what);
            }
            Entry::Nudged { text } => self.note(filed, StepKind::Nudged { text: text.clone() }),
            Entry::FellBack(fallback) => self.note(filed, StepKind::FellBack(fallback.clone())),
            Entry::LastTurn { why, .. } => {
                let text = last_turn::request(why);
                self.note(filed, StepKind::Nudged { text });
            }
            Entry::Inherited { .. }
            | Entry::Prompted { .. }
            | Entry::AgentSession { .. }
            | Entry::Ended { .. } => {}
        }
    }

    /// Something that took the time since the entry before.
    fn push(&mut self, filed: &Filed, what: StepKind) {
        let took = filed.at.since(self.before);
        self.steps.push(self.before, Some(took), what);
    }

    /// Something that took no time.
    fn note(&mut self, filed: &Filed, what: StepKind) {
        self.steps.push(filed.at, None, what);
    }

    fn answered(&mut self, filed: &Filed, answer: &Answer) {
        for block in &answer.blocks {
            if let Block::Reasoning { text, .. } = block
                && !text.trim().is_empty()
            {
                self.note(filed, StepKind::Thought { text: text.clone() });
            }
        }
        self.push(
            filed,
            StepKind::Model {
                model: Some(answer.model.clone()),
                usage: answer.usage,
                unsplit: 0,
                cost: answer.cost,
                text: answer.text(),
            },
        );
        self.open.clear();
        for call in answer.calls() {
            let key = (call.name.clone(), call.input.clone());
            let retries = self.failed.get(&key).copied().unwrap_or(0);
            let what = StepKind::Tool {
                name: call.name.clone(),
                input: call.input.clone(),
                result: ToolResult::Open,
                retries,
            };
            let step = self.steps.push(filed.at, None, what);
            self.open.push(Open {
                call: call.id.clone(),
                step,
                key,
                began: false,
            });
        }
    }

    fn ended(&mut self, at: Moment, call: &str, outcome: &ToolOutcome) {
        let Some(open) = self.open.iter().position(|open| open.call == call) else {
            return;
        };
        let open = self.open.remove(open);
        if outcome.is_error() {
            *self.failed.entry(open.key).or_default() += 1;
        }
        let before = self.before;
        let Some(step) = self.steps.waiting(open.step) else {
            return;
        };
        // A call that only looks and waited for others began when the last of them had ended.
        if !open.began && before > step.at {
            step.at = before;
        }
        step.took = Some(at.since(step.at));
        if let StepKind::Tool { result, .. } = &mut step.what {
            *result = match outcome {
                ToolOutcome::Done(text) => ToolResult::Done(text.clone()),
                ToolOutcome::Failed(text) => ToolResult::Failed(text.clone()),
                ToolOutcome::Unknown => ToolResult::Unknown,
            };
        }
    }
}
