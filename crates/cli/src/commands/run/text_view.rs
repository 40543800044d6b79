//! A run as a person sees it: the answer on standard output, the rest beside it.

use std::io;

use asyncagents_core::{answer::Shown, id::SessionId, moment::Moment};
use asyncagents_engine::{Engine, Live};

use super::{follow::View, totals::Totals};
use crate::{
    live_view::LiveView,
    make_visible::make_visible,
    screen::{Screen, counted, dollars},
};

pub(super) struct TextView {
    screen: Screen,
    live: LiveView,
    engine: Engine,
}

impl TextView {
    pub(super) fn new(screen: &Screen, engine: &Engine) -> Self {
        Self {
            screen: screen.clone(),
            live: LiveView::new(screen),
            engine: engine.clone(),
        }
    }
}

impl View for TextView {
    fn open(&mut self, session: &SessionId, known: &[Shown]) {
        let sandbox = self.engine.sandbox();
        self.screen.remark(&format!("{session} · {sandbox}"));
        for remark in self.engine.remarks() {
            self.screen.remark(&make_visible(&remark));
        }
        self.screen.skip_ended(known);
        self.live.begin();
    }

    fn show(&mut self, live: Live) {
        self.live.show(live);
    }

    fn tasks(&mut self, tasks: &[Shown], now: Moment) {
        self.screen.tasks(tasks, now);
    }

    fn end(&mut self, totals: &Totals) {
        if !self.live.has_answered()
            && let Some(answer) = &totals.answer
        {
            self.live.answer(answer);
        }
        if let Some(why) = totals.failed() {
            self.screen.remark(&format!("asyncagents: {why}"));
        }
        self.screen.remark(&summary(totals));
    }

    fn trouble(self: Box<Self>) -> Option<io::Error> {
        self.live.trouble()
    }
}

/// The totals in a line.
fn summary(totals: &Totals) -> String {
    let spent = &totals.spent;
    let mut line = format!(
        "{}, {}, {}, {}, {:.1} s",
        counted(spent.tokens, "token"),
        counted(spent.turns, "answer"),
        counted(spent.tool_calls, "tool call"),
        dollars(spent.price()),
        totals.took.as_secs_f64(),
    );
    if !totals.tasks.is_empty() {
        let tasks = counted(totals.tasks.len() as u64, "background task");
        line.push_str(&format!(", with {tasks}"));
    }
    let live = totals.tasks.iter().filter(|shown| shown.task.is_live());
    let unfinished = live.count();
    if unfinished > 0 {
        line.push_str(&format!(
            "; {unfinished} of them go on, `asyncagents list` shows them"
        ));
    }
    line
}
