//! The steps of a run in a session of the built-in agent.

use std::collections::HashMap;

use super::{Step, StepKind, ToolResult};
use crate::{
    agent::{Answer, Block, End, Entry, Filed, ToolOutcome},
    id::PostId,
    last_turn,
    moment::Moment,
};

/// How a run in a session ended.
pub(super) struct RunEnd {
    pub(super) end: End,
    pub(super) answer: Option<String>,
    pub(super) at: Moment,
}

impl RunEnd {
    /// Whether its agent came to an end without success: at a limit, or because the model refused.
    pub(super) fn failed(&self) -> bool {
        matches!(self.end, End::Failed { .. })
    }
}

/// What the entries of a session say about one of its runs: the steps, and how it ended if it
/// has. `told` is what its task was told, by the names of the entries.
pub(super) fn steps_of_entries(
    entries: &[Filed],
    prompt: &PostId,
    told: &HashMap<&PostId, StepKind>,
) -> (Vec<Step>, Option<RunEnd>) {
    let begins =
        |filed: &Filed| matches!(&filed.entry, Entry::Prompted { post, .. } if post == prompt);
    let Some(begun) = entries.iter().position(begins) else {
        return (Vec::new(), None);
    };
    let mut run = Reading::new(entries[begun].at, told);
    for filed in &entries[begun + 1..] {
        match &filed.entry {
            Entry::Ended {
                prompt: ended,
                end,
                answer,
            } if ended == prompt => {
                let ended = RunEnd {
                    end: end.clone(),
                    answer: answer.clone(),
                    at: filed.at,
                };
                return (run.steps, Some(ended));
            }
            // The next run.
            Entry::Prompted { .. } => break,
            _ => run.take(filed),
        }
    }
    (run.steps, None)
}

/// A run that is being read.
struct Reading<'a> {
    told: &'a HashMap<&'a PostId, StepKind>,
    steps: Vec<Step>,
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

/// A call without a result.
struct Open {
    call: String,
    step: usize,
    /// What makes it the same call as another: tool and parameters.
    key: (String, String),
    began: bool,
}

impl<'a> Reading<'a> {
    fn new(begun: Moment, told: &'a HashMap<&'a PostId, StepKind>) -> Self {
        Self {
            told,
            steps: Vec::new(),
            last: begun,
            before: begun,
            open: Vec::new(),
            failed: HashMap::new(),
        }
    }

    fn take(&mut self, filed: &Filed) {
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
                    self.steps[open.step].at = filed.at;
                }
            }
            Entry::ToolEnded { call, outcome } => self.ended(filed.at, call, outcome),
            Entry::Notice { post, visible, .. } => {
                let text = visible.clone();
                let what = match self.told.get(post) {
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
            Entry::Inherited { .. } | Entry::Prompted { .. } | Entry::Ended { .. } => {}
        }
    }

    /// Something that took the time since the entry before.
    fn push(&mut self, filed: &Filed, what: StepKind) {
        let took = filed.at.since(self.before);
        self.steps
            .push(Step::next(&self.steps, self.before, Some(took), what));
    }

    /// Something that took no time.
    fn note(&mut self, filed: &Filed, what: StepKind) {
        self.steps
            .push(Step::next(&self.steps, filed.at, None, what));
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
            self.open.push(Open {
                call: call.id.clone(),
                step: self.steps.len(),
                key,
                began: false,
            });
            self.note(
                filed,
                StepKind::Tool {
                    name: call.name.clone(),
                    input: call.input.clone(),
                    result: ToolResult::Open,
                    retries,
                },
            );
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
        let step = &mut self.steps[open.step];
        // A call that only looks and waited for others began when the last of them had ended.
        if !open.began && self.before > step.at {
            step.at = self.before;
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
