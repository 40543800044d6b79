//! The settings at the head of a Markdown file: YAML between two lines `---`.

use serde::de::DeserializeOwned;
use serde_saphyr::{RenderOptions, SnippetMode, UserMessageFormatter};

/// A file in its two parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Split<'a> {
    pub(crate) front: &'a str,
    pub(crate) body: &'a str,
}

/// Why a file has no two parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unsplit {
    /// It does not begin with a fence.
    NoFence,
    /// The settings do not end.
    Unclosed,
}

/// Why settings cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unreadable {
    /// The line within the settings, from 1, if it is known.
    pub(crate) line: Option<usize>,
    pub(crate) why: String,
}

/// The settings between the two lines `---`, and what follows. A byte order mark and either
/// kind of line end are fine.
pub(crate) fn split(text: &str) -> Result<Split<'_>, Unsplit> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let rest = text.strip_prefix("---").ok_or(Unsplit::NoFence)?;
    let rest = rest.trim_start_matches([' ', '\t']);
    let rest = rest.strip_prefix("\r\n").or(rest.strip_prefix('\n'));
    let rest = rest.ok_or(Unsplit::NoFence)?;
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            let (front, body) = rest.split_at(at);
            let body = body.get(line.len()..).unwrap_or_default();
            return Ok(Split { front, body });
        }
        at += line.len();
    }
    Err(Unsplit::Unclosed)
}

/// Settings that were read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Settings<T> {
    pub(crate) values: T,
    /// Why they are no YAML, if they are none and could be read all the same.
    pub(crate) mended: Option<Unreadable>,
}

/// Strict YAML first. Many write `description: Use when: x`, which is none; then the values
/// of plain lines are taken as text. Lines stay where they are.
pub(crate) fn read<T: DeserializeOwned + Default>(front: &str) -> Result<Settings<T>, Unreadable> {
    let strict = |values| Settings {
        values,
        mended: None,
    };
    if front.trim().is_empty() {
        return Ok(strict(T::default()));
    }
    parse(front).map(strict).or_else(|error| {
        let quoted: Vec<String> = front.lines().map(quote).collect();
        let mended = Some(unreadable(&error));
        let values = parse(&quoted.join("\n"));
        values
            .map(|values| Settings { values, mended })
            .map_err(|_| unreadable(&error))
    })
}

/// Settings are short. What grows while it is read is a trap.
fn parse<T: DeserializeOwned>(front: &str) -> Result<T, serde_saphyr::Error> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_nodes: MOST_NODES },
    };
    serde_saphyr::from_str_with_options(front, options)
}

/// How many keys, values and entries of lists settings may have.
const MOST_NODES: usize = 5_000;

/// `key: any: text` as `key: "any: text"`, and `key: [one] [other]` as well.
fn quote(line: &str) -> String {
    let is_text = |value: &str| {
        let starts = value.starts_with(['"', '\'', '[', '{', '|', '>']);
        (value.contains(": ") && !starts) || (value.starts_with('[') && value.contains("] ["))
    };
    match line.split_once(": ") {
        Some((key, value)) if is_text(value) => {
            let value = value.trim_end().replace('\\', "\\\\").replace('"', "\\\"");
            format!("{key}: \"{value}\"")
        }
        _ => line.to_owned(),
    }
}

fn unreadable(error: &serde_saphyr::Error) -> Unreadable {
    let line = error.location().map(|location| location.line());
    let plain = serde_saphyr::render_options! {
        formatter: &UserMessageFormatter,
        snippets: SnippetMode::Off,
    };
    let plain: RenderOptions = plain;
    let why = error.render_with_options(plain);
    let why = why.lines().next().unwrap_or_default();
    // Where it is, is said apart.
    let why = why.split(" at line ").next().unwrap_or_default();
    Unreadable {
        line: line.and_then(|line| usize::try_from(line).ok()),
        why: why.to_owned(),
    }
}
