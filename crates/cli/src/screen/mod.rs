//! What a person sees of a run: the answer on standard output; tools, background tasks and
//! questions on standard error, where the tasks are live lines if it is a terminal.

mod frames;
mod held;
mod live_area;
mod task_line;

use std::{
    collections::BTreeMap,
    io::{self, IsTerminal},
    sync::{Arc, Mutex, MutexGuard},
    time::{Duration, Instant},
};

use asyncagents_core::{answer::Shown, id::TaskId, lock::lock, moment::Moment, task::Status};

pub(crate) use self::frames::Frames;
pub(crate) use self::task_line::{counted, dollars};
use self::{
    held::{Held, Piece},
    live_area::LiveArea,
    task_line::{task_line, task_line_within},
};
use crate::{
    color::{Color, Paint, Tone, draws},
    markdown::Markdown,
    print::{self, harmless},
    width,
};

/// How often [`Screen::tick`] is called at most while a run is followed.
pub(crate) const FRAME: Duration = live_area::FRAME;

/// The terminal of a run. Clones are the same one.
#[derive(Clone)]
pub(crate) struct Screen {
    inner: Arc<Inner>,
}

struct Inner {
    /// Standard error is a terminal on which lines can be drawn again.
    live: bool,
    /// The answer goes to a terminal, where it is shown as it comes.
    streams: bool,
    /// The answer goes to the same terminal as the live lines.
    shared: bool,
    /// Control characters stay in an answer that goes to a file or a pipe.
    raw: bool,
    paint: Paint,
    state: Mutex<State>,
    /// One question at a time.
    asking: tokio::sync::Mutex<()>,
}

struct State {
    /// Text of the answer that is not on the screen yet.
    held: String,
    /// A part of the newest answer is on the screen.
    begun: bool,
    /// The line on the screen is not complete.
    open: bool,
    markdown: Markdown,
    tasks: BTreeMap<TaskId, Line>,
    /// What the agent is doing, and since when.
    doing: Option<(String, Instant)>,
    area: LiveArea,
    /// What has to wait while a question is on the screen.
    later: Option<Held>,
}

/// A task on the screen.
struct Line {
    /// Lines are in the order in which the tasks came.
    place: usize,
    status: Status,
    /// The task and when it was read, if it has not ended.
    live: Option<(Shown, Moment)>,
}

impl Screen {
    pub(crate) fn new(color: Color, raw: bool) -> Self {
        let live = draws(&io::stderr());
        let streams = io::stdout().is_terminal();
        let state = State {
            held: String::new(),
            begun: false,
            open: false,
            markdown: Markdown::new(color.paint(&io::stdout())),
            tasks: BTreeMap::new(),
            doing: None,
            area: LiveArea::default(),
            later: None,
        };
        Self {
            inner: Arc::new(Inner {
                live,
                streams,
                shared: streams && io::stderr().is_terminal(),
                raw: raw && !streams,
                paint: color.paint(&io::stderr()),
                state: Mutex::new(state),
                asking: tokio::sync::Mutex::new(()),
            }),
        }
    }

    /// When [`Screen::tick`] is to be called.
    pub(crate) fn frames(&self) -> Frames {
        Frames::new(self.inner.live)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.inner.state)
    }

    /// A piece of the answer. A file or a pipe gets no answer that may break off. Among live lines
    /// only whole lines can be printed.
    pub(crate) fn answer(&self, text: &str) -> io::Result<()> {
        let mut state = self.state();
        state.held.push_str(text);
        let crowded = self.inner.shared && state.tasks.values().any(|line| line.live.is_some());
        let ready = if !self.inner.streams {
            0
        } else if crowded {
            state.held.rfind('\n').map_or(0, |end| end + 1)
        } else {
            state.held.len()
        };
        let ready: String = state.held.drain(..ready).collect();
        self.put(&mut state, &ready)
    }

    /// The answer is complete.
    pub(crate) fn answered(&self) -> io::Result<()> {
        let mut state = self.state();
        let rest = std::mem::take(&mut state.held);
        let put = self.put(&mut state, &rest);
        state.begun = false;
        put.and_then(|()| self.end_line(&mut state))
    }

    /// What was shown of this answer is void: it broke off, and another begins.
    pub(crate) fn take_back(&self) {
        let mut state = self.state();
        state.held.clear();
        // A broken pipe is an error of the next answer.
        let _ = self.end_line(&mut state);
        let begun = std::mem::take(&mut state.begun);
        drop(state);
        if begun {
            self.remark("· the answer broke off; what was said of it does not count");
        }
    }

    /// Ends the line of the answer, wherever that goes.
    fn end_line(&self, state: &mut State) -> io::Result<()> {
        let mut rest = state.markdown.finish();
        if std::mem::take(&mut state.open) {
            rest.push('\n');
        }
        self.write(state, rest)
    }

    /// Tasks that ended before: their end is not shown.
    pub(crate) fn skip_ended(&self, tasks: &[Shown]) {
        for shown in tasks.iter().filter(|shown| !shown.task.is_live()) {
            self.note(shown, Moment::default());
        }
    }

    /// A line beside the answer.
    pub(crate) fn remark(&self, text: &str) {
        self.remark_in(Tone::Plain, text);
    }

    /// A line beside the answer, in a tone.
    pub(crate) fn remark_in(&self, tone: Tone, text: &str) {
        let mut state = self.state();
        // A broken pipe is an error of the next answer.
        let _ = self.close(&mut state);
        let text: String = text.chars().filter(harmless).collect();
        let text = self.inner.paint.over(tone, &format!("{text}\n"));
        let _ = self.show(&mut state, Piece::Remark(text));
    }

    /// Shows what the agent is doing, on a terminal, until it does something else.
    pub(crate) fn doing(&self, what: &str) {
        let mut state = self.state();
        if state.doing.as_ref().is_none_or(|(doing, _)| doing != what) {
            state.doing = Some((what.to_owned(), Instant::now()));
        }
    }

    /// The agent shows by itself what it is doing.
    pub(crate) fn doing_nothing(&self) {
        self.state().doing = None;
    }

    /// Draws the live lines, if it is time to.
    pub(crate) fn tick(&self) {
        let (mut state, now) = (self.state(), Instant::now());
        if !self.inner.live || state.later.is_some() || !state.area.is_due(now) {
            return;
        }
        let columns = width::of_live_lines().saturating_sub(3);
        let mut tasks: Vec<&Line> = state.tasks.values().collect();
        tasks.sort_by_key(|line| line.place);
        let live = tasks.into_iter().filter_map(|line| line.live.as_ref());
        let mut lines: Vec<String> = live
            .map(|(shown, now)| task_line_within(shown, *now, columns))
            .collect();
        if !lines.is_empty() {
            // A broken pipe is an error of the next answer.
            let _ = self.close(&mut state);
        }
        // A line of the answer that is being written shows that there is something being done.
        let writing = self.inner.shared && state.open;
        if let Some((doing, since)) = state.doing.as_ref().filter(|_| !writing) {
            lines.push(format!("{doing} {} s", since.elapsed().as_secs()));
        }
        if !writing {
            let visible = |line: String| line.chars().filter(harmless).collect();
            let lines = lines.into_iter().map(visible).collect();
            state.area.draw(lines, now);
        }
    }

    /// Shows how far the tasks have come, and each end once.
    pub(crate) fn tasks(&self, tasks: &[Shown], now: Moment) {
        for shown in tasks {
            let status = shown.task.status();
            let before = self.note(shown, now);
            let (sign, tone) = match status {
                Status::Completed => ("✓", Tone::Good),
                Status::Cancelled => ("⊘", Tone::Quiet),
                Status::Error => ("✗", Tone::Bad),
                Status::Queued | Status::Running | Status::Resumed => ("▸", Tone::Plain),
            };
            let is_new = if is_over(status) {
                !before.is_some_and(is_over)
            } else {
                before != Some(status) && !self.inner.live
            };
            if is_new {
                self.remark_in(tone, &format!("{sign} {}", task_line(shown, now)));
            }
        }
    }

    /// Records the status of a task and returns the one before.
    fn note(&self, shown: &Shown, now: Moment) -> Option<Status> {
        let mut state = self.state();
        let status = shown.task.status();
        let known = state.tasks.get(&shown.task.id);
        let before = known.map(|line| line.status);
        let place = known.map_or(state.tasks.len(), |line| line.place);
        let live = self.inner.live && !is_over(status);
        let line = Line {
            place,
            status,
            live: live.then(|| (shown.clone(), now)),
        };
        state.tasks.insert(shown.task.id.clone(), line);
        before
    }

    /// Takes the live lines off the screen.
    pub(crate) fn end(&self) {
        let mut state = self.state();
        state.doing = None;
        for line in state.tasks.values_mut() {
            line.live = None;
        }
        if state.later.is_none() {
            state.area.erase();
        }
    }

    fn put(&self, state: &mut State, text: &str) -> io::Result<()> {
        let Some(last) = text.chars().next_back() else {
            return Ok(());
        };
        (state.begun, state.open) = (true, last != '\n');
        let is_shown = |c: &char| self.inner.raw || harmless(c);
        let text: String = text.chars().filter(is_shown).collect();
        let text = state.markdown.push(&text);
        self.write(state, text)
    }

    fn write(&self, state: &mut State, text: String) -> io::Result<()> {
        if text.is_empty() {
            Ok(())
        } else if self.inner.shared {
            self.show(state, Piece::Answer(text))
        } else {
            Piece::Answer(text).write()
        }
    }

    /// Shows something now, or after the question that is on the screen.
    fn show(&self, state: &mut State, what: Piece) -> io::Result<()> {
        if let Some(later) = &mut state.later {
            later.add(what);
            return Ok(());
        }
        state.area.erase();
        what.write()
    }

    /// Ends the line that the agent is writing, if other lines go to the same terminal.
    fn close(&self, state: &mut State) -> io::Result<()> {
        if self.inner.shared && state.open {
            self.end_line(state)
        } else {
            Ok(())
        }
    }

    /// Waits until no other question is on the screen, and keeps the screen for one. Live lines
    /// are off it meanwhile, and what else there is to show comes afterwards: a question stays
    /// as it was drawn, and nothing stands between it and its answer.
    pub(crate) async fn for_question(&self) -> ForQuestion<'_> {
        let turn = self.inner.asking.lock().await;
        let mut state = self.state();
        // A broken pipe is an error of the next answer.
        let _ = self.close(&mut state);
        state.area.erase();
        state.later = Some(Held::default());
        ForQuestion {
            screen: self,
            open: false,
            _turn: turn,
        }
    }
}

/// The screen, as long as a question is on it.
pub(crate) struct ForQuestion<'a> {
    screen: &'a Screen,
    /// The line on the screen is not complete.
    open: bool,
    _turn: tokio::sync::MutexGuard<'a, ()>,
}

impl ForQuestion<'_> {
    /// Puts this on the screen, in place of what was typed in this line. Of several lines the
    /// first is seen first.
    pub(crate) fn draw(&mut self, text: &str) {
        let mut text: String = text.chars().filter(harmless).collect();
        self.open = !text.ends_with('\n');
        if let Some((head, rest)) = text.split_once('\n') {
            let head = self.screen.inner.paint.over(Tone::Strong, head);
            text = format!("{head}\n{rest}");
        }
        print::replace_line(&text);
    }

    /// The user has pressed Enter.
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
        if let Some(later) = state.later.take() {
            later.write();
        }
    }
}

fn is_over(status: Status) -> bool {
    match status {
        Status::Completed | Status::Error | Status::Cancelled => true,
        Status::Queued | Status::Running | Status::Resumed => false,
    }
}
