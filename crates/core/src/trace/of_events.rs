//! The steps of a run in another host, as far as the task's own events tell them.

use std::collections::HashMap;

use super::{Step, StepKind, ToolResult};
use crate::{
    agent::Usage,
    event::{Event, Saved},
    id::PostId,
    moment::Moment,
    progress::Observation,
    speaker::Speaker,
};

/// What a task was told, by the name that it has in the child's session.
pub(super) fn told(events: &[Saved]) -> HashMap<&PostId, StepKind> {
    let told = events.iter().filter_map(|saved| match &saved.event {
        Event::Messaged { id, from, text } => Some((id, message(*from, text))),
        _ => None,
    });
    told.collect()
}

fn message(from: Option<Speaker>, text: &str) -> StepKind {
    let text = text.to_owned();
    StepKind::Message { from, text }
}

/// What a task's events say about one of its runs.
pub(super) fn steps_of_events(events: &[Saved], run: u32) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut at_run = 0;
    let mut last: Option<Moment> = None;
    for saved in events {
        if matches!(saved.event, Event::Resumed { .. }) {
            at_run += 1;
        }
        if at_run != run {
            continue;
        }
        let before = last.unwrap_or(saved.at);
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
                last = Some(saved.at);
                continue;
            }
            _ => continue,
        };
        last = Some(saved.at);
        let model = matches!(what, StepKind::Model { .. });
        let at = if model { before } else { saved.at };
        let took = model.then(|| saved.at.since(before));
        steps.push(Step::next(&steps, at, took, what));
    }
    steps
}
