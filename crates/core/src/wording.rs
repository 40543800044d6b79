//! Numbers, lists and durations as people write them.

use std::{fmt::Display, time::Duration};

use crate::shorten::shorten;

/// Who reads an answer: what can be done next is said in their words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reader<'a> {
    /// At a shell.
    Person,
    Model {
        /// The prefix of the tools' names.
        prefix: &'a str,
    },
}

/// `12500` as `12,500`.
pub fn grouped(number: impl Display) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 message`, `2,000 messages`.
pub fn counted(number: impl Display, one: &str, many: &str) -> String {
    let number = grouped(number);
    let noun = if number == "1" { one } else { many };
    format!("{number} {noun}")
}

/// What somebody has written, as much of it as tells which it is: it may be megabytes.
pub(crate) fn brief(text: &str) -> String {
    shorten(text, 200, "…")
}

/// `a, b and c`.
pub fn listed<S: AsRef<str>>(items: impl IntoIterator<Item = S>, last: &str) -> String {
    let items: Vec<S> = items.into_iter().collect();
    let mut text = String::new();
    for (at, item) in items.iter().enumerate() {
        if at > 0 && at + 1 == items.len() {
            text.push_str(&format!(" {last} "));
        } else if at > 0 {
            text.push_str(", ");
        }
        text.push_str(item.as_ref());
    }
    text
}

/// `350ms`, `3.2s`, `45s`, `2m 05s`, `1h 02m`.
pub(crate) fn duration(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0 => format!("{}ms", time.as_millis()),
        1..10 => format!("{seconds}.{}s", time.subsec_millis() / 100),
        10..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h {:02}m", seconds / 3_600, seconds / 60 % 60),
    }
}
