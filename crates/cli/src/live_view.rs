//! Shows on the screen what happens in a session, to the person who runs something there.

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

/// Shown while the model has sent nothing yet.
const THINKING: &str = "thinking";
const QUEUED: &str = "waiting for a slot: as many commands run as may (limits.commands)";

/// A session on the screen.
pub(crate) struct LiveView {
    screen: Screen,
    output: ToolOutput,
    /// The newest answer has text.
    has_text: bool,
    /// An answer was shown whole.
    has_answered: bool,
    /// Why the answer cannot be written any more, if it cannot. The run goes on.
    write_error: Option<io::Error>,
}

impl LiveView {
    pub(crate) fn new(screen: &Screen) -> Self {
        Self {
            screen: screen.clone(),
            output: ToolOutput::default(),
            has_text: false,
            has_answered: false,
            write_error: None,
        }
    }

    /// The model is asked for the first time.
    pub(crate) fn begin(&self) {
        self.screen.doing(THINKING);
    }

    /// Whether an answer was shown.
    pub(crate) fn has_answered(&self) -> bool {
        self.has_answered
    }

    pub(crate) fn show(&mut self, live: Live) {
        match live {
            Live::Text(text) => {
                self.has_text = true;
                self.screen.doing_nothing();
                self.note(self.screen.answer(&text));
            }
            Live::Reasoning(_) | Live::Notice(_) => self.screen.doing(THINKING),
            Live::Answered => {
                self.has_answered |= std::mem::take(&mut self.has_text);
                self.screen.doing_nothing();
                self.note(self.screen.answered());
            }
            Live::Retrying(why) => {
                self.has_text = false;
                self.screen.take_back();
                self.remark(&format!("· {}", make_visible(&why)));
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
                self.remark("· the conversation is summarised");
                self.screen.doing("summarising");
            }
            Live::CommandQueued => self.screen.doing(QUEUED),
            Live::Waiting | Live::Ended(_) => self.screen.doing_nothing(),
        }
    }

    fn tool(&mut self, name: &str, target: &str, approved: bool) {
        self.output = ToolOutput::default();
        self.screen.doing(name);
        // The person who has just approved it has read what it does.
        if approved {
            return;
        }
        let mut lines = target.lines().filter(|line| !line.trim().is_empty());
        let first = make_visible(lines.next().unwrap_or_default());
        let more = if lines.next().is_some() { " …" } else { "" };
        self.remark(&format!("· {name} {first}{more}"));
    }

    fn tool_ended(&mut self, name: &str, error: Option<&str>) {
        let (left_out, last) = std::mem::take(&mut self.output).last();
        if left_out > 0 {
            let left_out = counted(left_out, "line");
            self.remark(&format!("  │ … {left_out} left out"));
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
        self.remark(&format!("  │ {}", make_visible(line)));
    }

    fn remark(&self, line: &str) {
        self.screen.remark_in(Tone::Quiet, line);
    }

    /// Shows an answer that no event has shown.
    pub(crate) fn answer(&mut self, answer: &str) {
        let shown = self.screen.answer(answer);
        self.note(shown.and_then(|()| self.screen.answered()));
    }

    /// Why the answer could not be written, if it could not.
    pub(crate) fn trouble(self) -> Option<io::Error> {
        self.write_error
    }

    /// An answer that cannot be written is no reason to stop working.
    fn note(&mut self, written: io::Result<()>) {
        if let Err(error) = written {
            self.write_error.get_or_insert(error);
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
