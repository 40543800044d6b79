//! Shows on the screen what happens in a session, for the one who runs something there.

use std::{collections::VecDeque, io};

use asyncagents_engine::{Live, PrintedLines};

use crate::{
    color::Tone,
    make_visible::make_visible,
    screen::{Screen, counted},
};

/// How many lines of a tool's output are shown as they come.
const FIRST_LINES: usize = 5;

/// How many of the last are shown when it has ended: there a program says what went wrong.
const LAST_LINES: usize = 15;

/// What the model does while nothing is heard of it.
const THINKING: &str = "thinking";

/// Shows what happens.
pub(crate) struct LiveView {
    screen: Screen,
    output: ToolOutput,
    /// Something was said of the newest answer.
    saying: bool,
    /// An answer was shown whole.
    heard: bool,
    /// Why the answer cannot be written any more, if it cannot. The run goes on.
    deaf: Option<io::Error>,
}

impl LiveView {
    pub(crate) fn new(screen: &Screen) -> Self {
        Self {
            screen: screen.clone(),
            output: ToolOutput::default(),
            saying: false,
            heard: false,
            deaf: None,
        }
    }

    /// The model is asked for the first time.
    pub(crate) fn begin(&self) {
        self.screen.doing(THINKING);
    }

    /// Whether an answer was shown.
    pub(crate) fn has_heard(&self) -> bool {
        self.heard
    }

    /// Shows one thing.
    pub(crate) fn show(&mut self, live: Live) {
        match live {
            Live::Text(text) => {
                self.saying = true;
                self.screen.doing_nothing();
                let said = self.screen.answer(&text);
                self.note(said);
            }
            Live::Reasoning(_) | Live::Notice(_) => self.screen.doing(THINKING),
            Live::Answered => {
                self.heard |= std::mem::take(&mut self.saying);
                self.screen.doing_nothing();
                let said = self.screen.answered();
                self.note(said);
            }
            Live::Retrying(why) => {
                self.saying = false;
                self.screen.take_back();
                let why = make_visible(&why);
                self.screen.remark_in(Tone::Quiet, &format!("· {why}"));
                self.screen.doing(THINKING);
            }
            Live::Tool {
                name,
                target,
                approved,
                ..
            } => self.tool(&make_visible(&name), &target, approved),
            Live::Lines(lines) => {
                for line in self.output.add(lines) {
                    self.line(&line);
                }
            }
            Live::ToolEnded { name, error, .. } => self.tool_ended(&name, error.as_deref()),
            Live::Compacting => {
                self.screen
                    .remark_in(Tone::Quiet, "· the conversation is summarised");
                self.screen.doing("summarising");
            }
            Live::Waiting | Live::Ended(_) => self.screen.doing_nothing(),
        }
    }

    fn tool(&mut self, name: &str, target: &str, approved: bool) {
        self.output = ToolOutput::default();
        self.screen.doing(name);
        // Whoever has just allowed it has read what it does.
        if approved {
            return;
        }
        let mut lines = target.lines().filter(|line| !line.trim().is_empty());
        let first = make_visible(lines.next().unwrap_or_default());
        let more = if lines.next().is_some() { " …" } else { "" };
        let line = format!("· {name} {first}{more}");
        self.screen.remark_in(Tone::Quiet, &line);
    }

    fn tool_ended(&mut self, name: &str, error: Option<&str>) {
        let (left_out, last) = std::mem::take(&mut self.output).last();
        if left_out > 0 {
            let left_out = counted(left_out, "line");
            let line = format!("  │ … {left_out} left out");
            self.screen.remark_in(Tone::Quiet, &line);
        }
        for line in last {
            self.line(&line);
        }
        if let Some(error) = error {
            let (name, error) = (make_visible(name), make_visible(error));
            let line = format!("· {name} failed: {error}");
            self.screen.remark_in(Tone::Bad, &line);
        }
        self.screen.doing(THINKING);
    }

    fn line(&self, line: &str) {
        let line = format!("  │ {}", make_visible(line));
        self.screen.remark_in(Tone::Quiet, &line);
    }

    /// Shows an answer of which nothing was heard.
    pub(crate) fn answer(&mut self, answer: &str) {
        let said = self
            .screen
            .answer(answer)
            .and_then(|()| self.screen.answered());
        self.note(said);
    }

    /// Why the answer could not be written, if it could not.
    pub(crate) fn trouble(self) -> Option<io::Error> {
        self.deaf
    }

    /// An answer that nobody reads is no reason to stop working.
    fn note(&mut self, said: io::Result<()>) {
        if let Err(error) = said {
            self.deaf.get_or_insert(error);
        }
    }
}

/// The output of the tool that is running: its beginning was shown, its end is kept.
#[derive(Debug, Default)]
struct ToolOutput {
    shown: usize,
    kept: VecDeque<String>,
    left_out: u64,
}

impl ToolOutput {
    /// Takes lines. What is returned is shown at once.
    fn add(&mut self, lines: PrintedLines) -> Vec<String> {
        let first = lines.first.into_iter().filter_map(|line| self.push(line));
        let mut shown: Vec<String> = first.collect();
        if lines.left_out > 0 {
            self.left_out += lines.left_out + self.kept.len() as u64;
            self.kept.clear();
        }
        shown.extend(lines.last.into_iter().filter_map(|line| self.push(line)));
        shown
    }

    fn push(&mut self, line: String) -> Option<String> {
        if self.shown < FIRST_LINES && self.left_out == 0 {
            self.shown += 1;
            return Some(line);
        }
        self.kept.push_back(line);
        if self.kept.len() > LAST_LINES {
            self.kept.pop_front();
            self.left_out += 1;
        }
        None
    }

    /// How many lines are left out, and those after them.
    fn last(self) -> (u64, VecDeque<String>) {
        (self.left_out, self.kept)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::{PrintedLines, ToolOutput};

    #[rstest]
    #[case::all(20, "1 2 3 4 5", 0, "6 7 8 9 10 11 12 13 14 15 16 17 18 19 20")]
    #[case::few(2, "1 2", 0, "")]
    #[case::one_more(21, "1 2 3 4 5", 1, "7 8 9 10 11 12 13 14 15 16 17 18 19 20 21")]
    fn the_beginning_and_the_end_are_shown(
        #[case] lines: usize,
        #[case] first: &str,
        #[case] left_out: u64,
        #[case] last: &str,
    ) {
        let mut output = ToolOutput::default();
        let lines = (1..=lines).flat_map(|n| output.add(PrintedLines::one(&n.to_string())));
        assert_eq!(lines.collect::<Vec<_>>().join(" "), first);
        let (out, kept) = output.last();
        let kept: Vec<String> = kept.into();
        assert_eq!((out, kept.join(" ").as_str()), (left_out, last));
    }

    #[test]
    fn lines_that_never_came_are_counted() {
        let mut output = ToolOutput::default();
        for n in 1..=7 {
            output.add(PrintedLines::one(&n.to_string()));
        }
        output.add(PrintedLines {
            first: Vec::new(),
            left_out: 990,
            last: ["1000".to_owned()].into(),
        });
        let (left_out, kept) = output.last();
        assert_eq!(
            (left_out, kept.len()),
            (992, 1),
            "6 and 7 came before the gap"
        );
    }
}
