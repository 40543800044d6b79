//! Lines with their numbers, as a model is shown them.

use std::fmt::Write;

/// Numbers lines for a model, in as few tokens as still let it name each line it speaks of: no
/// padding, and no number where a line has no letter or digit (empty lines, closing brackets).
/// Such a line stands as it is, so it cannot be taken for a numbered one.
pub(super) struct Numbered {
    text: String,
    /// How many characters it has.
    used: usize,
}

impl Numbered {
    pub(super) fn new() -> Self {
        Self {
            text: String::new(),
            used: 0,
        }
    }

    pub(super) fn used(&self) -> usize {
        self.used
    }

    /// Adds a line, unless there would be more than `room` characters. The first always fits, and
    /// always has a number: it says where the others are.
    pub(super) fn add(&mut self, number: u64, line: &str, room: usize) -> bool {
        let before = self.text.len();
        if before == 0 || line.contains(char::is_alphanumeric) {
            // Writing to a string cannot fail.
            let _ = write!(self.text, "{number}\t");
        }
        self.text.push_str(line);
        self.text.push('\n');
        let length = self.text[before..].chars().count();
        if before > 0 && self.used + length > room {
            self.text.truncate(before);
            return false;
        }
        self.used += length;
        true
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }
}

/// Lines with their numbers, from that of the first.
pub(super) fn numbered(lines: impl Iterator<Item = String>, first: usize) -> String {
    let mut numbered = Numbered::new();
    for (number, line) in (first as u64..).zip(lines) {
        numbered.add(number, &line, usize::MAX);
    }
    numbered.into_text()
}
