//! The steps of a run in another host, as far as the task's own events tell them.

use std::collections::HashMap;

use super::{StepKind, Steps, ToolResult};
use crate::{
    agent::Usage,
    event::{Event, Saved},
    id::PostId,
    moment::Moment,
    progress::Observation,
    speaker::Speaker,
};

/// What a task's events say about one of its runs, event by event.
#[derive(Debug, Default)]
pub(super) struct EventSteps {
    pub(super) steps: Steps,
    /// What the task was told, by the name that it has in the child's session.
    pub(super) told: HashMap<PostId, StepKind>,
    /// Whether the host has the prompt: what it keeps of the run can be seen there.
    pub(super) is_prompted: bool,
    last: Option<Moment>,
}

impl EventSteps {
    /// The next event; `is_of_run` says whether it is one of this run.
    pub(super) fn take(&mut self, saved: &Saved, is_of_run: bool) {
        if let Event::Messaged { id, from, text } = &saved.event {
            self.told.insert(id.clone(), message(*from, text));
        }
        if !is_of_run {
            return;
        }
        let before = self.last.unwrap_or(saved.at);
        let what = match &saved.event {
            Event::Observed(Observation::Turned(answer) | Observation::AskedBeside(answer)) => {
                StepKind::Model {
                    model: None,
                    usage: Usage::default(),
                    unsplit: answer.tokens,
                    cost: (answer.unpriced == 0).then_some(answer.cost),
                    text: String::new(),
                }
            }
            Event::Observed(Observation::ToolCalled { tool, .. }) => StepKind::Tool {
                name: tool.clone(),
                input: String::new(),
                result: ToolResult::NotReported,
                retries: 0,
            },
            Event::Messaged { from, text, .. } => message(*from, text),
            Event::Replied { reply, .. } => StepKind::Reply {
                text: reply.shown(),
            },
            Event::FellBack(fallback) | Event::Observed(Observation::FellBack(fallback)) => {
                StepKind::FellBack(fallback.clone())
            }
            Event::Started | Event::Prompted => {
                self.is_prompted |= saved.event == Event::Prompted;
                self.last = Some(saved.at);
                return;
            }
            _ => return,
        };
        self.last = Some(saved.at);
        let model = matches!(what, StepKind::Model { .. });
        let at = if model { before } else { saved.at };
        let took = model.then(|| saved.at.since(before));
        self.steps.push(at, took, what);
    }
}

fn message(from: Option<Speaker>, text: &str) -> StepKind {
    let text = text.to_owned();
    StepKind::Message { from, text }
}
