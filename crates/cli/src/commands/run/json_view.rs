//! A run as a program sees it: a line of JSON for everything that happens.

use std::{collections::HashMap, io, mem};

use asyncagents_core::{
    answer::Shown,
    id::{SessionId, TaskId},
    moment::Moment,
    task::Status,
};
use asyncagents_engine::Live;
use asyncagents_views::{RunEvent, RunTotals, TaskView, arguments};

use super::{follow::View, totals::Totals};
use crate::print;

#[derive(Default)]
pub(super) struct JsonView {
    /// The text so far of the newest answer.
    text: String,
    /// The newest status of each task that was printed.
    statuses: HashMap<TaskId, Status>,
    /// Why events cannot be written any more, if they cannot. The run goes on.
    trouble: Option<io::Error>,
}

impl JsonView {
    fn print(&mut self, event: &RunEvent) {
        if let Err(error) = print::json_line(event) {
            self.trouble.get_or_insert(error);
        }
    }
}

impl View for JsonView {
    fn open(&mut self, session: &SessionId, known: &[Shown]) {
        for shown in known.iter().filter(|shown| !shown.task.is_live()) {
            let status = shown.task.status();
            self.statuses.insert(shown.task.id.clone(), status);
        }
        self.print(&RunEvent::Session {
            id: session.as_str(),
        });
    }

    fn show(&mut self, live: Live) {
        match &live {
            Live::Text(text) => {
                self.print(&RunEvent::TextDelta { text });
                self.text.push_str(text);
            }
            Live::Retrying(why) => {
                if !mem::take(&mut self.text).is_empty() {
                    self.print(&RunEvent::Reset);
                }
                self.print(&RunEvent::Again { why });
            }
            Live::Answered => {
                let text = mem::take(&mut self.text);
                if !text.is_empty() {
                    self.print(&RunEvent::Text { text: &text });
                }
            }
            Live::Tool {
                call,
                name,
                target,
                input,
                ..
            } => self.print(&RunEvent::Tool {
                call,
                name,
                target,
                arguments: arguments(input),
            }),
            Live::ToolEnded {
                call,
                name,
                error,
                result,
            } => self.print(&RunEvent::ToolEnded {
                call,
                name,
                error: error.as_deref(),
                result: result.as_deref(),
            }),
            Live::Notice(text) => self.print(&RunEvent::Notice { text }),
            Live::CommandQueued => self.print(&RunEvent::CommandQueued),
            Live::Compacting => self.print(&RunEvent::Compacting),
            Live::Reasoning(_) | Live::Lines(_) | Live::Waiting | Live::Ended(_) => {}
        }
    }

    fn tasks(&mut self, tasks: &[Shown], now: Moment) {
        for shown in tasks {
            let status = shown.task.status();
            if self.statuses.insert(shown.task.id.clone(), status) != Some(status) {
                let task = Box::new(TaskView::new(shown, now));
                self.print(&RunEvent::Task { task });
            }
        }
    }

    fn end(&mut self, totals: &Totals) {
        let tasks = totals.tasks.iter();
        self.print(&RunEvent::End(Box::new(RunTotals {
            session: totals.session.as_str(),
            answer: totals.answer.as_deref(),
            error: totals.failed(),
            spent: totals.spent.into(),
            cached_tokens: totals.usage.cache_read,
            seconds: totals.took.as_secs_f64(),
            tasks: tasks
                .map(|shown| TaskView::new(shown, totals.now))
                .collect(),
        })));
    }

    fn trouble(self: Box<Self>) -> Option<io::Error> {
        self.trouble
    }
}
