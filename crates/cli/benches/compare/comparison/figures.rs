//! Numbers as people read them, and tables of them.

use std::{fmt, time::Duration};

/// Tells the person who waits what is going on.
#[expect(clippy::print_stderr, reason = "a benchmark talks to a person")]
pub(crate) fn say(line: &str) {
    eprintln!("{line}");
}

/// A table in Markdown, with what must be known about it.
pub(crate) struct Table {
    title: String,
    header: Vec<String>,
    rows: Vec<Vec<String>>,
    notes: Vec<String>,
}

impl Table {
    pub(crate) fn new(title: impl Into<String>, header: &[&str]) -> Self {
        Self {
            title: title.into(),
            header: header.iter().map(|&name| name.to_owned()).collect(),
            rows: Vec::new(),
            notes: Vec::new(),
        }
    }

    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    pub(crate) fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    pub(crate) fn title(&self) -> &str {
        &self.title
    }

    /// What a row says in the column whose name begins so.
    pub(crate) fn cell(&self, row: &str, column: &str) -> Option<&str> {
        let column = self
            .header
            .iter()
            .position(|name| name.starts_with(column))?;
        let named = |cells: &&Vec<String>| cells.first().is_some_and(|name| name == row);
        let cells = self.rows.iter().find(named)?;
        cells.get(column).map(String::as_str)
    }

    /// A row for somebody of whom there are no figures.
    pub(crate) fn failed(&mut self, name: &str, why: &str) {
        let mut cells = vec!["failed".to_owned(); self.header.len()];
        if let Some(first) = cells.first_mut() {
            name.clone_into(first);
        }
        self.rows.push(cells);
        self.note(format!("**{name} failed**: {why}"));
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "### {}\n", self.title)?;
        writeln!(f, "| {} |", self.header.join(" | "))?;
        writeln!(f, "|{}", "---|".repeat(self.header.len()))?;
        for row in &self.rows {
            writeln!(f, "| {} |", row.join(" | "))?;
        }
        for note in &self.notes {
            writeln!(f, "\n{note}")?;
        }
        Ok(())
    }
}

pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    values.get(middle).copied().unwrap_or(f64::NAN)
}

pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// `median [best]`, with three digits that count.
pub(crate) fn median_and_best(values: Vec<f64>) -> String {
    let best = values.iter().copied().fold(f64::INFINITY, f64::min);
    let several = values.len() > 1;
    let median = digits(median(values));
    if several {
        format!("{median} [{}]", digits(best))
    } else {
        median
    }
}

/// With three digits that count, and commas between thousands.
pub(crate) fn digits(value: f64) -> String {
    match value {
        value if !value.is_finite() => "–".to_owned(),
        value if value.abs() < 10.0 => format!("{value:.2}"),
        value if value.abs() < 100.0 => format!("{value:.1}"),
        value => thousands(value.round() as u64),
    }
}

pub(crate) fn thousands(value: u64) -> String {
    match value {
        0..1_000 => value.to_string(),
        _ => format!("{},{:03}", thousands(value / 1_000), value % 1_000),
    }
}

pub(crate) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

pub(crate) fn megabytes(bytes: u64) -> String {
    digits(bytes as f64 / 1e6)
}

pub(crate) fn kilobytes(bytes: usize) -> String {
    digits(bytes as f64 / 1e3)
}
