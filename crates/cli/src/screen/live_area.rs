//! The lines at the bottom of the terminal that are drawn again and again.

use std::{
    io::{self, Write},
    time::{Duration, Instant},
};

use crate::width;

/// How often the lines are drawn at most.
pub(super) const FRAME: Duration = Duration::from_millis(250);

const SPINNER: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/// The lines that are on the screen. The cursor stands behind the last one.
#[derive(Default)]
pub(super) struct LiveArea {
    /// How wide each line is.
    drawn: Vec<usize>,
    frame: usize,
    last: Option<Instant>,
}

impl LiveArea {
    /// Whether it is time to draw again.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        // A timer that is a little early is meant.
        let frame = FRAME - FRAME / 10;
        self.last
            .is_none_or(|last| now.duration_since(last) >= frame)
    }

    /// Draws these lines in place of the others, as many as fit.
    pub(super) fn draw(&mut self, lines: Vec<String>, now: Instant) {
        let mut text = self.erased();
        if lines.is_empty() && text.is_empty() {
            return;
        }
        self.last = Some(now);
        let spinner = SPINNER.get(self.frame % SPINNER.len()).unwrap_or(&'·');
        self.frame += 1;
        // In the last column some terminals begin a new line.
        let columns = width::of_live_lines().saturating_sub(1);
        for (at, line) in fitting(lines, width::lines()).iter().enumerate() {
            if at > 0 {
                text.push_str("\r\n");
            }
            let line = width::fitting(&format!("{spinner} {line}"), columns);
            text.push_str(&line);
            self.drawn.push(width::width(&line));
        }
        // A terminal that has gone does not end the run.
        let _ = io::stderr().lock().write_all(text.as_bytes());
    }

    /// Takes the lines off the screen.
    pub(super) fn erase(&mut self) {
        let text = self.erased();
        if !text.is_empty() {
            let _ = io::stderr().lock().write_all(text.as_bytes());
        }
    }

    /// What erases the lines. A terminal that has become narrower shows one in several rows.
    fn erased(&mut self) -> String {
        if self.drawn.is_empty() {
            return String::new();
        }
        let columns = width::of_live_lines().max(1);
        let rows = self
            .drawn
            .drain(..)
            .map(|line| line.div_ceil(columns).max(1));
        let above = rows.sum::<usize>().saturating_sub(1);
        let mut text = "\r".to_owned();
        if above > 0 {
            text.push_str(&format!("\x1b[{above}A"));
        }
        // From here to the end of the screen.
        text.push_str("\x1b[J");
        text
    }
}

/// As many of the lines as there is room for, and how many more there are.
fn fitting(mut lines: Vec<String>, rows: usize) -> Vec<String> {
    let most = rows.saturating_sub(2).max(1);
    if lines.len() > most {
        let more = lines.len() - (most - 1);
        lines.truncate(most - 1);
        lines.push(format!("… and {more} more"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::fitting;

    #[test]
    fn more_lines_than_the_screen_has_are_counted() {
        let lines: Vec<String> = (1..=9).map(|n| n.to_string()).collect();
        assert_eq!(fitting(lines.clone(), 24), lines);
        assert_eq!(fitting(lines.clone(), 6), ["1", "2", "3", "… and 6 more"]);
        assert_eq!(fitting(lines, 0), ["… and 9 more"]);
    }
}
