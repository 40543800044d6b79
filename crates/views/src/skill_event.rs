//! What happens while a skill runs.

use asyncagents_core::skill_event::SkillEvent;
use serde::Serialize;

use crate::StepView;

/// An event of a skill that is run.
#[derive(Debug, Serialize)]
#[serde(remote = "Self", tag = "type", rename_all = "snake_case")]
pub enum SkillEventView<'a> {
    /// The skill is at work.
    Status {
        task_id: &'a str,
        state: &'static str,
        message: &'a str,
    },
    /// The summary, and where the whole is.
    Message {
        task_id: &'a str,
        message_parts: [TextPart<'a>; 2],
    },
    /// The skill could not be run, or its sub-agent failed.
    Error {
        task_id: &'a str,
        error_code: &'static str,
        error_message: &'a str,
    },
    /// A step of the sub-agent.
    SubAgent {
        task_id: &'a str,
        step: StepView<'a>,
    },
    /// The last event.
    Done {
        task_id: &'a str,
        final_state: &'static str,
    },
}

#[derive(Debug, Serialize)]
pub struct TextPart<'a> {
    text: &'a str,
}

impl<'a> From<&'a SkillEvent> for SkillEventView<'a> {
    fn from(event: &'a SkillEvent) -> Self {
        match event {
            SkillEvent::Status { task, message } => Self::Status {
                task_id: task,
                state: "RUNNING",
                message,
            },
            SkillEvent::Message { task, parts } => Self::Message {
                task_id: task,
                message_parts: parts.each_ref().map(|text| TextPart { text }),
            },
            SkillEvent::Error {
                task,
                code,
                message,
            } => Self::Error {
                task_id: task,
                error_code: code.name(),
                error_message: message,
            },
            SkillEvent::SubAgent { sub_task, step } => Self::SubAgent {
                task_id: sub_task,
                step: StepView::new(step),
            },
            SkillEvent::Done { task, completed } => Self::Done {
                task_id: task,
                final_state: if *completed { "COMPLETED" } else { "FAILED" },
            },
        }
    }
}
