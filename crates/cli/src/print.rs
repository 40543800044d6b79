//! What the user sees: answers on standard output, remarks on standard error.

use std::{
    borrow::Cow,
    io::{self, IsTerminal, Write},
    time::Duration,
};

use asyncagents_core::fork::Stats;
use asyncagents_views::milliseconds;
use serde::Serialize;

use crate::{color::draws, make_visible::make_visible, width};

/// The context, after the preamble if that is wanted.
pub(crate) fn context(preamble: Option<&str>, context: &str) -> io::Result<()> {
    // What a program is to read stays as it is.
    fn shown(text: &str) -> Cow<'_, str> {
        if io::stdout().is_terminal() {
            Cow::Owned(filtered(text))
        } else {
            Cow::Borrowed(text)
        }
    }
    let mut out = io::stdout().lock();
    if let Some(preamble) = preamble {
        writeln!(out, "{}\n", shown(preamble))?;
    }
    writeln!(out, "{}", shown(context))?;
    out.flush()
}

/// How long the steps of a fork took.
#[derive(Clone, Copy)]
pub(crate) struct Took {
    pub(crate) reading: Duration,
    pub(crate) forking: Duration,
}

/// One line on what was kept and what was not, and one more for each surprise.
pub(crate) fn summary(stats: &Stats, took: Took) {
    let Stats {
        messages,
        results,
        characters,
        tokens,
        cut_to_fit,
        ..
    } = stats;
    let about = if tokens.before_is_estimate {
        "about "
    } else {
        ""
    };
    let mut text = format!(
        "messages: {} of {} kept, {} compacted, {} removed; \
         results: {} kept, {} cut, {} repeated, {} removed; \
         characters: {} of {}; tokens: {} of {about}{}; \
         {:.1} ms reading, {:.1} ms forking\n",
        messages.kept,
        messages.r#in,
        messages.compacted,
        messages.removed,
        results.kept,
        results.cut_middle + results.cut_old,
        results.repeated,
        results.removed,
        characters.after,
        characters.before,
        tokens.after,
        tokens.before,
        milliseconds(took.reading),
        milliseconds(took.forking),
    );
    if cut_to_fit.newest {
        text.push_str("too long for the limits, so cut: the newest message\n");
    }
    if cut_to_fit.summary {
        text.push_str("too long for the limits, so cut: the compaction's summary\n");
    }
    if messages.skipped + messages.skipped_parts > 0 {
        text.push_str(&format!(
            "skipped because unreadable: {} messages, {} parts of others\n",
            messages.skipped, messages.skipped_parts,
        ));
    }
    remark(&text);
}

/// What went wrong, in one line.
pub(crate) fn failure(what: &str) {
    // A quoted file must not look like words of ours.
    let lines: Vec<String> = what.lines().map(make_visible).collect();
    remark(&format!("asyncagents: {}\n", lines.join("\n  ")));
}

/// An answer, ending with a line break. What agents say is shown by a terminal, not obeyed by
/// it; nor by the terminal on which a file is looked at later.
pub(crate) fn answer(text: &str) -> io::Result<()> {
    answer_unless_raw(text, false)
}

/// The same as [`answer`]; but raw, and not on a terminal, the text is as it is.
pub(crate) fn answer_unless_raw(text: &str, raw: bool) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let text = text.trim_end_matches('\n');
    let raw = raw && !out.is_terminal();
    let text = if raw { text.into() } else { filtered(text) };
    writeln!(out, "{text}")?;
    out.flush()
}

fn filtered(text: &str) -> String {
    text.chars().filter(harmless).collect()
}

/// Whether a terminal shows it and does not obey it: no control characters, and none that change
/// the order in which others are shown.
pub(crate) fn harmless(c: &char) -> bool {
    let reorders = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    !reorders && (!c.is_control() || matches!(c, '\n' | '\t'))
}

/// An answer: for programs as one line of JSON, for people as text.
pub(crate) fn json_or(
    json: bool,
    view: &impl Serialize,
    text: impl FnOnce() -> String,
) -> io::Result<()> {
    if json {
        json_line(view)
    } else {
        answer(&text())
    }
}

/// An answer as one line of JSON.
pub(crate) fn json_line(answer: &impl Serialize) -> io::Result<()> {
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, answer)?;
    writeln!(out)?;
    out.flush()
}

/// One line that says how far something has come. On a terminal the next one replaces it.
pub(crate) fn progress(line: &str) {
    if !is_live() {
        return remark(&format!("{line}\n"));
    }
    // A line that wraps could not be replaced.
    let columns = width::of_live_lines().saturating_sub(1);
    replace_line(&width::fitting_parts(&filtered(line), "; ", columns));
}

/// Whether progress goes to a terminal.
pub(crate) fn is_live() -> bool {
    draws(&io::stderr())
}

/// There will be no more progress.
pub(crate) fn progress_ends() {
    if is_live() {
        replace_line("");
    }
}

/// Writes to standard error. If that fails, the answer still stands. The text may hold words of a
/// project or a model, which a terminal is not to obey.
pub(crate) fn remark(text: &str) {
    painted(&filtered(text));
}

/// Replaces the line that the terminal is on by a text that is harmless.
pub(crate) fn replace_line(text: &str) {
    let clear = if is_live() { "\r\x1b[2K" } else { "" };
    painted(&format!("{clear}{text}"));
}

/// Writes to standard error what is harmless, and may be in colour.
pub(crate) fn painted(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}
