//! What a person sees of a run: the answer on standard output; tools, background tasks and
//! questions on standard error, where the tasks are live lines if it is a terminal.

use std::{
    collections::BTreeMap,
    io::{self, BufRead, IsTerminal, Write},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use asyncagents_core::{
    answer::Shown,
    budget::Cost,
    id::TaskId,
    moment::Moment,
    task::{Outcome, State, Status},
};
use asyncagents_engine::{Approver, Question, Reply};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::sync::mpsc;

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
    /// One question at a time; what is typed comes line by line, from a thread of its own.
    asking: tokio::sync::Mutex<Option<mpsc::UnboundedReceiver<String>>>,
    /// Live lines are off the screen while a question is on it.
    asking_now: AtomicBool,
}

#[derive(Default)]
struct Shows {
    /// What was said and is not on the screen yet.
    held: String,
    /// The line on the screen is not complete.
    open: bool,
    tasks: BTreeMap<TaskId, Line>,
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
                asking: tokio::sync::Mutex::new(None),
                asking_now: AtomicBool::new(false),
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
        self.alone(|| print::remark(&format!("{text}\n")));
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
        let mut put = Ok(());
        self.alone(|| {
            let mut out = io::stdout().lock();
            let shown: String = match out.is_terminal() {
                true => text.chars().filter(harmless).collect(),
                false => text.to_owned(),
            };
            put = out.write_all(shown.as_bytes()).and_then(|()| out.flush());
        });
        put
    }

    /// Ends the line that the agent is writing, if other lines go to the same terminal. The
    /// answer in a file or a pipe stays as it was said.
    fn close(&self, state: &mut Shows) -> io::Result<()> {
        match self.inner.shared && state.open {
            true => self.put(state, "\n"),
            false => Ok(()),
        }
    }

    /// Does something while no live line is on the screen.
    fn alone(&self, what: impl FnOnce()) {
        match self.inner.live && !self.inner.asking_now.load(Ordering::SeqCst) {
            true => self.inner.lines.suspend(what),
            false => what(),
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
            dollars(spent.cost),
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
pub(crate) fn dollars(cost: Cost) -> String {
    match cost {
        Cost(0) => "no price known".to_owned(),
        Cost(millionths) => format!("${:.4}", millionths as f64 / 1e6),
    }
}

/// Asks at the terminal, one question after the other.
#[async_trait]
impl Approver for Screen {
    async fn ask(&self, question: Question) -> Reply {
        let mut typed = self.inner.asking.lock().await;
        let typed = typed.get_or_insert_with(lines_typed);
        // What was typed before it was asked is no answer to it.
        while typed.try_recv().is_ok() {}
        let _quiet = Quiet::new(self);
        let harmless = |text: &str| text.chars().filter(harmless).collect::<String>();
        let who = match question.background {
            true => format!("the background task \"{}\"", question.title),
            false => format!("the agent {}", question.agent),
        };
        let target = question.target.lines().next().unwrap_or_default();
        let mut text = format!("? {who} wants to use {}: {target}\n", question.tool);
        for line in &question.preview {
            text.push_str(&format!("  {line}\n"));
        }
        self.remark(harmless(&text).trim_end());
        loop {
            let always = harmless(&question.always);
            print::remark(&format!(
                "  [y]es, [a]lways ({always}), or [n]o (and why): "
            ));
            let Some(line) = typed.recv().await else {
                return Reply::No("nobody answered".to_owned());
            };
            if let Some(reply) = reply_from(&line) {
                return reply;
            }
        }
    }
}

/// Takes the live lines off the screen for as long as it lives.
struct Quiet<'a>(&'a Screen);

impl<'a> Quiet<'a> {
    fn new(screen: &'a Screen) -> Self {
        let lines = &screen.inner.lines;
        if screen.inner.live {
            let _ = lines.clear();
            lines.set_draw_target(ProgressDrawTarget::hidden());
        }
        screen.inner.asking_now.store(true, Ordering::SeqCst);
        Self(screen)
    }
}

impl Drop for Quiet<'_> {
    fn drop(&mut self) {
        self.0.inner.asking_now.store(false, Ordering::SeqCst);
        if self.0.inner.live {
            self.0
                .inner
                .lines
                .set_draw_target(ProgressDrawTarget::stderr());
        }
    }
}

/// What is typed, line by line. A thread waits for it, so that nothing else has to.
fn lines_typed() -> mpsc::UnboundedReceiver<String> {
    let (sender, receiver) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

/// What a line means; nothing if it means nothing.
fn reply_from(line: &str) -> Option<Reply> {
    let line = line.trim();
    let (word, why) = line.split_once([' ', ',']).unwrap_or((line, ""));
    Some(match word.to_lowercase().as_str() {
        "y" | "yes" => Reply::Yes,
        "a" | "always" => Reply::Always,
        "n" | "no" if !why.trim().is_empty() => {
            Reply::No(format!("the user says no: {}", why.trim()))
        }
        "n" | "no" => Reply::No("the user says no".to_owned()),
        _ => return None,
    })
}
