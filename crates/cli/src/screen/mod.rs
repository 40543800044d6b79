//! What a person sees of a run: the answer on standard output; tools, background tasks and
//! questions on standard error, where the tasks are live lines if it is a terminal.

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

/// How often whoever follows a run calls [`Screen::tick`].
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
    state: Mutex<Shows>,
    /// One question at a time.
    asking: tokio::sync::Mutex<()>,
}

struct Shows {
    /// What was said and is not on the screen yet.
    held: String,
    /// Something of the newest answer is on the screen.
    begun: bool,
    /// The line on the screen is not complete.
    open: bool,
    markdown: Markdown,
    tasks: BTreeMap<TaskId, Line>,
    /// What is being done, and since when.
    doing: Option<(String, Instant)>,
    area: LiveArea,
    /// What has to wait while a question is on the screen.
    later: Option<Held>,
}

/// A task on the screen.
struct Line {
    /// As the others came, so they stand.
    place: usize,
    status: Status,
    /// Where it stands, if it is not over.
    live: Option<(Shown, Moment)>,
}

impl Screen {
    pub(crate) fn new(color: Color, raw: bool) -> Self {
        let live = draws(&io::stderr());
        let streams = io::stdout().is_terminal();
        let shows = Shows {
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
                state: Mutex::new(shows),
                asking: tokio::sync::Mutex::new(()),
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, Shows> {
        lock(&self.inner.state)
    }

    /// The agent says something. A file or a pipe gets no answer that may break off. Among live
    /// lines only whole lines can be printed.
    pub(crate) fn say(&self, text: &str) -> io::Result<()> {
        let mut state = self.state();
        state.held.push_str(text);
        let crowded = self.inner.shared && state.tasks.values().any(|line| line.live.is_some());
        let ready = match (self.inner.streams, crowded) {
            (false, _) => 0,
            (true, true) => state.held.rfind('\n').map_or(0, |end| end + 1),
            (true, false) => state.held.len(),
        };
        let ready: String = state.held.drain(..ready).collect();
        self.put(&mut state, &ready)
    }

    /// The agent has said it all.
    pub(crate) fn said(&self) -> io::Result<()> {
        let mut state = self.state();
        let rest = std::mem::take(&mut state.held);
        let put = self.put(&mut state, &rest);
        state.begun = false;
        put.and_then(|()| self.end_line(&mut state))
    }

    /// What was said of this answer is void: it broke off, and another begins.
    pub(crate) fn take_back(&self) {
        let begun = {
            let mut state = self.state();
            state.held.clear();
            // A broken pipe will be met by the answer.
            let _ = self.end_line(&mut state);
            std::mem::take(&mut state.begun)
        };
        if begun {
            self.remark("· the answer broke off; what was said of it does not count");
        }
    }

    /// Ends the line of the answer, wherever that goes.
    fn end_line(&self, state: &mut Shows) -> io::Result<()> {
        let rest = state.markdown.finish();
        let rest = match state.open {
            true => rest + "\n",
            false => rest,
        };
        state.open = false;
        self.write(state, rest)
    }

    /// Tasks that were over before: nothing has to be said about them.
    pub(crate) fn knows(&self, tasks: &[Shown]) {
        let mut state = self.state();
        for shown in tasks.iter().filter(|shown| !shown.task.is_live()) {
            let line = Line {
                place: state.tasks.len(),
                status: shown.task.status(),
                live: None,
            };
            state.tasks.insert(shown.task.id.clone(), line);
        }
    }

    /// A line beside the answer.
    pub(crate) fn remark(&self, text: &str) {
        self.remark_in(Tone::Plain, text);
    }

    /// A line beside the answer, in a tone.
    pub(crate) fn remark_in(&self, tone: Tone, text: &str) {
        let mut state = self.state();
        // A broken pipe will be met by the answer.
        let _ = self.close(&mut state);
        let text: String = text.chars().filter(harmless).collect();
        let text = self.inner.paint.over(tone, &format!("{text}\n"));
        let _ = self.show(&mut state, Piece::Remark(text));
    }

    /// Says what the agent is doing, on a terminal, until it does something else.
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
            // A broken pipe will be met by the answer.
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
            let was_over = before.is_none_or(is_over);
            match is_over(status) {
                false if before != Some(status) && !self.inner.live => {
                    self.remark(&format!("▸ {}", task_line(shown, now)));
                }
                true if !was_over || before.is_none() => {
                    let (sign, tone) = match status {
                        Status::Completed => ("✓", Tone::Good),
                        Status::Cancelled => ("⊘", Tone::Quiet),
                        _ => ("✗", Tone::Bad),
                    };
                    self.remark_in(tone, &format!("{sign} {}", task_line(shown, now)));
                }
                false | true => {}
            }
        }
    }

    /// Takes down where a task stands; returns where it stood before.
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

    fn put(&self, state: &mut Shows, text: &str) -> io::Result<()> {
        let Some(last) = text.chars().next_back() else {
            return Ok(());
        };
        (state.begun, state.open) = (true, last != '\n');
        let text: String = match self.inner.raw {
            true => text.to_owned(),
            false => text.chars().filter(harmless).collect(),
        };
        let text = state.markdown.push(&text);
        self.write(state, text)
    }

    fn write(&self, state: &mut Shows, text: String) -> io::Result<()> {
        match (text.is_empty(), self.inner.shared) {
            (true, _) => Ok(()),
            (false, true) => self.show(state, Piece::Answer(text)),
            (false, false) => Piece::Answer(text).write(),
        }
    }

    /// Shows something now, or after the question that is on the screen.
    fn show(&self, state: &mut Shows, what: Piece) -> io::Result<()> {
        if let Some(later) = &mut state.later {
            later.add(what);
            return Ok(());
        }
        state.area.erase();
        what.write()
    }

    /// Ends the line that the agent is writing, if other lines go to the same terminal.
    fn close(&self, state: &mut Shows) -> io::Result<()> {
        match self.inner.shared && state.open {
            true => self.end_line(state),
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
        let text: String = text.chars().filter(harmless).collect();
        let shown = match text.split_once('\n') {
            Some((head, rest)) => {
                let head = self.screen.inner.paint.over(Tone::Strong, head);
                format!("{head}\n{rest}")
            }
            None => text.clone(),
        };
        print::replace_line(&shown);
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
