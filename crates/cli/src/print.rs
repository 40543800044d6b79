//! What the user sees: answers on standard output, remarks on standard error.

use std::{
    io::{self, Write},
    time::Duration,
};

use asyncagents_core::fork::Stats;
use serde::Serialize;

use crate::commands::fork::Timed;

/// The context, after the preamble if that is wanted.
pub(crate) fn context(preamble: Option<&str>, context: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if let Some(preamble) = preamble {
        writeln!(out, "{preamble}\n")?;
    }
    writeln!(out, "{context}")?;
    out.flush()
}

/// Context, preamble and statistics as one line of JSON.
pub(crate) fn json(timed: &Timed) -> io::Result<()> {
    #[derive(Serialize)]
    struct Answer<'a> {
        context: &'a str,
        preamble: &'a str,
        stats: TimedStats<'a>,
    }
    #[derive(Serialize)]
    struct TimedStats<'a> {
        #[serde(flatten)]
        stats: &'a Stats,
        took_ms: Took,
    }
    #[derive(Serialize)]
    struct Took {
        reading: f64,
        forking: f64,
    }
    let answer = Answer {
        context: &timed.fork.context,
        preamble: &timed.fork.preamble,
        stats: TimedStats {
            stats: &timed.fork.stats,
            took_ms: Took {
                reading: milliseconds(timed.reading),
                forking: milliseconds(timed.forking),
            },
        },
    };
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, &answer)?;
    writeln!(out)?;
    out.flush()
}

/// One line on what was kept and what was not, and one more if something was unreadable.
pub(crate) fn summary(timed: &Timed) -> io::Result<()> {
    let Stats {
        messages,
        results,
        characters,
        tokens,
        ..
    } = &timed.fork.stats;
    let about = if tokens.before_is_estimate {
        "about "
    } else {
        ""
    };
    let mut err = io::stderr().lock();
    writeln!(
        err,
        "messages: {} of {} kept, {} compacted, {} removed; \
         results: {} kept, {} cut, {} removed; \
         characters: {} of {}; tokens: {} of {about}{}; \
         {:.1} ms reading, {:.1} ms forking",
        messages.kept,
        messages.r#in,
        messages.compacted,
        messages.removed,
        results.kept,
        results.cut_middle + results.cut_old,
        results.removed,
        characters.after,
        characters.before,
        tokens.after,
        tokens.before,
        milliseconds(timed.reading),
        milliseconds(timed.forking),
    )?;
    if messages.skipped + messages.skipped_parts > 0 {
        writeln!(
            err,
            "skipped because unreadable: {} messages, {} parts of others",
            messages.skipped, messages.skipped_parts,
        )?;
    }
    Ok(())
}

/// To the microsecond: more digits would be noise.
fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}
