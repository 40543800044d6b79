//! What a person sees of a run: the answer on standard output; tools, background tasks and
//! questions on standard error, where the tasks are live lines if it is a terminal.

use std::{
    collections::BTreeMap,
    io::{self, IsTerminal, Write},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use asyncagents_core::{
    answer::Shown,
    budget::{Cost, Price},
    id::TaskId,
    moment::Moment,
    task::{Outcome, State, Status},
};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::print::{self, harmless};

/// The terminal of a run. Clones are the same one.
#[derive(Clone)]
pub(crate) struct Screen {
    inner: Arc<Inner>,
}

struct Inner {
    lines: MultiProgress,
    live: bool,
    /// Whether the answer goes to the same terminal as the live lines.
    shared: bool,
    state: Mutex<Shows>,
    /// One question at a time.
    asking: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Shows {
    /// What was said and is not on the screen yet.
    held: String,
    /// The line on the screen is not complete.
    open: bool,
    tasks: BTreeMap<TaskId, Line>,
    /// What has to wait while a question is on the screen.
    later: Option<Vec<Later>>,
}

/// Something for the screen.
enum Later {
    /// A piece of the answer.
    Answer(String),
    /// A line beside it.
    Remark(String),
}

/// A task on the screen.
struct Line {
    bar: Option<ProgressBar>,
    status: Status,
}

impl Screen {
    pub(crate) fn new() -> Self {
        let live = io::stderr().is_terminal();
        Self {
            inner: Arc::new(Inner {
                lines: MultiProgress::new(),
                live,
                shared: live && io::stdout().is_terminal(),
                state: Mutex::default(),
                asking: tokio::sync::Mutex::new(()),
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, Shows> {
        let state = self.inner.state.lock();
        state.unwrap_or_else(PoisonError::into_inner)
    }

    /// The agent says something. Among live lines only whole lines can be printed.
    pub(crate) fn say(&self, text: &str) -> io::Result<()> {
        let mut state = self.state();
        state.held.push_str(text);
        let crowded = self.inner.shared && state.tasks.values().any(|line| line.bar.is_some());
        let ready = match crowded {
            true => state.held.rfind('\n').map_or(0, |end| end + 1),
            false => state.held.len(),
        };
        let ready: String = state.held.drain(..ready).collect();
        self.put(&mut state, &ready)
    }

    /// The agent has said it all.
    pub(crate) fn said(&self) -> io::Result<()> {
        let mut state = self.state();
        let mut rest = std::mem::take(&mut state.held);
        let ends = match rest.chars().next_back() {
            Some(last) => last == '\n',
            None => !state.open,
        };
        if !ends {
            rest.push('\n');
        }
        self.put(&mut state, &rest)
    }

    /// Tasks that were over before: nothing has to be said about them.
    pub(crate) fn knows(&self, tasks: &[Shown]) {
        let mut state = self.state();
        for shown in tasks.iter().filter(|shown| !shown.task.is_live()) {
            let status = shown.task.status();
            let line = Line { bar: None, status };
            state.tasks.insert(shown.task.id.clone(), line);
        }
    }

    /// A line beside the answer.
    pub(crate) fn remark(&self, text: &str) {
        let mut state = self.state();
        // A broken pipe will be met by the answer.
        let _ = self.close(&mut state);
        let text: String = text.chars().filter(harmless).collect();
        let _ = self.show(&mut state, Later::Remark(format!("{text}\n")));
    }

    /// Shows how far the tasks have come, and each end once.
    pub(crate) fn tasks(&self, tasks: &[Shown], now: Moment) {
        for shown in tasks {
            let status = shown.task.status();
            let known = {
                let mut state = self.state();
                let known = state.tasks.get(&shown.task.id).map(|line| line.status);
                if known != Some(status) && known.is_none_or(is_over) && !is_over(status) {
                    let bar = self.inner.live.then(|| self.bar());
                    if bar.is_some() {
                        let _ = self.close(&mut state);
                    }
                    state
                        .tasks
                        .insert(shown.task.id.clone(), Line { bar, status });
                } else if known.is_none() {
                    state
                        .tasks
                        .insert(shown.task.id.clone(), Line { bar: None, status });
                }
                known
            };
            self.update(shown, known, now);
        }
    }

    fn update(&self, shown: &Shown, known: Option<Status>, now: Moment) {
        let status = shown.task.status();
        let line = task_line(shown, now);
        let bar = {
            let mut state = self.state();
            let Some(task) = state.tasks.get_mut(&shown.task.id) else {
                return;
            };
            task.status = status;
            match is_over(status) {
                true => task.bar.take().inspect(ProgressBar::finish_and_clear),
                false => task.bar.clone(),
            }
        };
        match (is_over(status), bar) {
            (false, Some(bar)) => bar.set_message(line),
            (false, None) if known != Some(status) => self.remark(&format!("▸ {line}")),
            (true, _) if known.is_none_or(|known| !is_over(known)) => {
                let sign = match status {
                    Status::Completed => "✓",
                    Status::Cancelled => "⊘",
                    _ => "✗",
                };
                self.remark(&format!("{sign} {line}"));
            }
            (false, None) | (true, _) => {}
        }
    }

    fn bar(&self) -> ProgressBar {
        let bar = self.inner.lines.add(ProgressBar::new_spinner());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(120));
        bar
    }

    /// Takes the live lines off the screen.
    pub(crate) fn end(&self) {
        for line in self.state().tasks.values_mut() {
            if let Some(bar) = line.bar.take() {
                bar.finish_and_clear();
            }
        }
    }

    fn put(&self, state: &mut Shows, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        state.open = !text.ends_with('\n');
        match self.inner.shared {
            true => self.show(state, Later::Answer(text.to_owned())),
            false => write_answer(text),
        }
    }

    /// Shows something now, or after the question that is on the screen.
    fn show(&self, state: &mut Shows, what: Later) -> io::Result<()> {
        if let Some(later) = &mut state.later {
            later.push(what);
            return Ok(());
        }
        match self.inner.live {
            true => self.inner.lines.suspend(|| what.write()),
            false => what.write(),
        }
    }

    /// Ends the line that the agent is writing, if other lines go to the same terminal. The
    /// answer in a file or a pipe stays as it was said.
    fn close(&self, state: &mut Shows) -> io::Result<()> {
        match self.inner.shared && state.open {
            true => self.put(state, "\n"),
            false => Ok(()),
        }
    }

    /// Waits until no other question is on the screen, and keeps the screen for one. Live lines
    /// are off it meanwhile, and what else there is to show comes afterwards: a question stays
    /// as it was drawn, and nothing stands between it and its answer.
    pub(crate) async fn for_question(&self) -> ForQuestion<'_> {
        let turn = self.inner.asking.lock().await;
        let mut state = self.state();
        // A broken pipe will be met by the answer.
        let _ = self.close(&mut state);
        if self.inner.live {
            let _ = self.inner.lines.clear();
            let hidden = ProgressDrawTarget::hidden();
            self.inner.lines.set_draw_target(hidden);
        }
        state.later = Some(Vec::new());
        ForQuestion {
            screen: self,
            open: false,
            _turn: turn,
        }
    }
}

impl Later {
    fn write(&self) -> io::Result<()> {
        match self {
            Later::Answer(text) => write_answer(text),
            Later::Remark(text) => {
                print::remark(text);
                Ok(())
            }
        }
    }
}

fn write_answer(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let shown: String = match out.is_terminal() {
        true => text.chars().filter(harmless).collect(),
        false => text.to_owned(),
    };
    out.write_all(shown.as_bytes()).and_then(|()| out.flush())
}

/// The screen, as long as a question is on it.
pub(crate) struct ForQuestion<'a> {
    screen: &'a Screen,
    /// The line on the screen is not complete.
    open: bool,
    _turn: tokio::sync::MutexGuard<'a, ()>,
}

impl ForQuestion<'_> {
    /// Puts this on the screen, in place of what was typed in this line.
    pub(crate) fn draw(&mut self, text: &str) {
        print::replace_line(text);
        self.open = !text.ends_with('\n');
    }

    /// Someone has pressed Enter.
    pub(crate) fn line_ended(&mut self) {
        self.open = false;
    }
}

impl Drop for ForQuestion<'_> {
    fn drop(&mut self) {
        if self.open {
            print::remark("\n");
        }
        let mut state = self.screen.state();
        for what in state.later.take().into_iter().flatten() {
            // What cannot be written now cannot be written next time either.
            let _ = what.write();
        }
        if self.screen.inner.live {
            let lines = &self.screen.inner.lines;
            lines.set_draw_target(ProgressDrawTarget::stderr());
        }
    }
}

fn is_over(status: Status) -> bool {
    match status {
        Status::Completed | Status::Error | Status::Cancelled => true,
        Status::Queued | Status::Running | Status::Resumed => false,
    }
}

/// `task_3f9c21ab "Find the slow query" running 12 s · grep · 3 tools · 1,204 tokens · $0.0036`
fn task_line(shown: &Shown, now: Moment) -> String {
    let task = &shown.task;
    let (status, spent) = (task.status(), &task.progress.spent);
    let mut line = format!("{} \"{}\" {status}", shown.id, task.brief.description);
    if status != Status::Queued {
        line.push_str(&format!(" {} s", task.ran(now).as_secs()));
    }
    match (&task.state, task.progress.recent.back()) {
        (State::Running { .. }, Some(tool)) => line.push_str(&format!(" · {tool}")),
        (State::Ended { outcome, .. }, _) => {
            if let Outcome::Failed { why } = outcome {
                line.push_str(&format!(" · {why}"));
            }
        }
        (State::Running { .. } | State::Queued { .. }, _) => {}
    }
    if spent.turns > 0 {
        line.push_str(&format!(
            " · {} · {} tokens · {}",
            counted(spent.tool_calls, "tool"),
            grouped(spent.tokens),
            dollars(spent.price()),
        ));
    }
    line
}

/// `1 tool`, `1,204 tools`.
pub(crate) fn counted(number: u64, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {what}{plural}", grouped(number))
}

/// `1,204`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// As exact as anybody wants to read it. A model without a price is not free.
pub(crate) fn dollars(price: Price) -> String {
    let exact = |Cost(millionths)| format!("${:.4}", millionths as f64 / 1e6);
    match price {
        Price::Known(Cost(0)) => "$0.00".to_owned(),
        Price::Known(cost) => exact(cost),
        Price::AtLeast(cost) => format!("at least {}", exact(cost)),
        Price::Unknown => price.to_string(),
    }
}
