//! A run as a program sees it: a line of JSON for everything that happens.

use std::{collections::HashMap, io, mem};

use asyncagents_core::{
    answer::Shown,
    id::{SessionId, TaskId},
    moment::Moment,
    task::Status,
};
use asyncagents_engine::Live;
use serde_json::{Value, json};

use super::{follow::View, totals::Totals};
use crate::{print, view};

/// What a program sees.
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
    fn print(&mut self, line: &Value) {
        if let Err(error) = print::json_line(line) {
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
        self.print(&json!({"type": "session", "id": session.as_str()}));
    }

    fn show(&mut self, live: Live) {
        match live {
            Live::Text(text) => {
                self.print(&json!({"type": "text_delta", "text": text}));
                self.text.push_str(&text);
            }
            Live::Again(why) => {
                if !mem::take(&mut self.text).is_empty() {
                    self.print(&json!({"type": "reset"}));
                }
                self.print(&json!({"type": "again", "why": why}));
            }
            Live::Answered => {
                let text = mem::take(&mut self.text);
                if !text.is_empty() {
                    self.print(&json!({"type": "text", "text": text}));
                }
            }
            Live::Tool {
                call,
                name,
                target,
                input,
                ..
            } => self.print(&json!({
                "type": "tool",
                "call": call,
                "name": name,
                "target": target,
                "arguments": view::arguments(&input),
            })),
            Live::ToolEnded {
                call,
                name,
                error,
                result,
            } => self.print(&json!({
                "type": "tool_ended",
                "call": call,
                "name": name,
                "error": error,
                "result": result,
            })),
            Live::Told(text) => self.print(&json!({"type": "told", "text": text})),
            Live::Compacting => self.print(&json!({"type": "compacting"})),
            Live::Reasoning(_) | Live::Lines(_) | Live::Waiting | Live::Ended(_) => {}
        }
    }

    fn tasks(&mut self, tasks: &[Shown], now: Moment) {
        for shown in tasks {
            let status = shown.task.status();
            if self.statuses.insert(shown.task.id.clone(), status) != Some(status) {
                self.print(&json!({"type": "task", "task": view::task(shown, now)}));
            }
        }
    }

    fn end(&mut self, totals: &Totals) {
        let tasks = totals.tasks.iter();
        let tasks: Vec<_> = tasks.map(|shown| view::task(shown, totals.now)).collect();
        let spent = &totals.spent;
        self.print(&json!({
            "type": "end",
            "session": totals.session.as_str(),
            "answer": totals.ended.answer,
            "error": totals.failed(),
            "tokens": spent.tokens,
            "cached_tokens": totals.usage.cache_read,
            "cost_usd": spent.price().dollars(),
            "unpriced_tokens": spent.unpriced,
            "turns": spent.turns,
            "tool_calls": spent.tool_calls,
            "seconds": totals.took.as_secs_f64(),
            "tasks": tasks,
        }));
    }

    fn trouble(self: Box<Self>) -> Option<io::Error> {
        self.trouble
    }
}
