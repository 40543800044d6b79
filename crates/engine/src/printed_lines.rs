//! Lines that a tool has printed. A program prints faster than a person reads, and only a few lines
//! are shown, so what waits to be shown is bounded.

use std::collections::VecDeque;

/// How many of the first lines are kept, and how many of the last.
const KEPT: usize = 32;

/// Lines that a tool has printed, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PrintedLines {
    pub first: Vec<String>,
    /// How many between the first and the last are not kept.
    pub left_out: u64,
    pub last: VecDeque<String>,
}

impl PrintedLines {
    pub fn one(line: &str) -> Self {
        Self {
            first: vec![line.to_owned()],
            ..Self::default()
        }
    }

    /// Adds lines that came after these.
    pub(crate) fn add(&mut self, more: Self) {
        for line in more.first {
            self.push(line);
        }
        if more.left_out > 0 {
            self.left_out += more.left_out + self.last.len() as u64;
            self.last.clear();
        }
        for line in more.last {
            self.push(line);
        }
    }

    fn push(&mut self, line: String) {
        if self.first.len() < KEPT && self.left_out == 0 {
            self.first.push(line);
            return;
        }
        self.last.push_back(line);
        if self.last.len() > KEPT {
            self.last.pop_front();
            self.left_out += 1;
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        let lines = self.first.iter().chain(&self.last);
        lines.map(String::len).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(numbers: std::ops::RangeInclusive<u64>) -> PrintedLines {
        let mut all = PrintedLines::default();
        for number in numbers {
            all.add(PrintedLines::one(&number.to_string()));
        }
        all
    }

    #[test]
    fn the_first_and_the_last_are_kept_and_the_others_counted() {
        let all = lines(1..=1_000_000);
        let kept = KEPT as u64;
        assert_eq!(all.first, lines(1..=kept).first);
        assert_eq!(all.left_out, 1_000_000 - 2 * kept);
        let last: Vec<String> = all.last.into();
        assert_eq!(last, lines(1_000_001 - kept..=1_000_000).first);
    }

    #[test]
    fn two_stretches_are_one() {
        let mut both = lines(1..=500);
        both.add(lines(501..=1_000));
        assert_eq!(both.left_out + 2 * KEPT as u64, 1_000);
        assert_eq!(both.last.back().map(String::as_str), Some("1000"));
    }
}
