//! What the supervisor tells about the end of a command: one line.

use std::io::Write;

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Report {
    /// With an exit code.
    Exited(i32),
    /// By a signal.
    Killed(i32),
    /// It could not be started as ordered.
    Failed(String),
    /// It used more than it may and was ended, with all that came of it.
    Exceeded(String),
    /// What became of its supervisor. All that came of the command has ended; nobody knows how.
    Lost(String),
    /// It ended, but not all that came of it, and why.
    Left(String),
}

impl Report {
    /// The line.
    pub(crate) fn line(&self) -> String {
        match self {
            Report::Exited(code) => format!("exited {code}\n"),
            Report::Killed(signal) => format!("killed {signal}\n"),
            Report::Failed(why) => format!("failed {}\n", one_line(why)),
            Report::Exceeded(what) => format!("exceeded {}\n", one_line(what)),
            Report::Lost(how) => format!("lost {}\n", one_line(how)),
            Report::Left(why) => format!("left {}\n", one_line(why)),
        }
    }

    /// Reads the line. `None`: nobody was left to write it.
    pub(crate) fn read(line: &str) -> Option<Self> {
        let (word, rest) = line.trim_end().split_once(' ')?;
        match word {
            "exited" => rest.parse().ok().map(Report::Exited),
            "killed" => rest.parse().ok().map(Report::Killed),
            "failed" => Some(Report::Failed(rest.to_owned())),
            "exceeded" => Some(Report::Exceeded(rest.to_owned())),
            "lost" => Some(Report::Lost(rest.to_owned())),
            "left" => Some(Report::Left(rest.to_owned())),
            _ => None,
        }
    }
}

fn one_line(text: &str) -> String {
    text.trim().replace('\n', " ")
}

/// Writes to somebody who may no longer listen.
pub(super) fn say(mut to: impl Write, text: &str) {
    to.write_all(text.as_bytes()).ok();
    to.flush().ok();
}
