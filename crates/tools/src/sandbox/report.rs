//! What the supervisor reports about the end of a command: one line.

use std::io::Write;

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Report {
    Exited(i32),
    Killed(i32),
    /// The command could not be started as ordered.
    Failed(String),
    /// The command used more than it may and was ended, with all its processes.
    Exceeded(String),
    /// What became of the supervisor. All processes of the command have ended; how is unknown.
    Lost(String),
    /// The command ended, but not all its processes, and why.
    Left(String),
}

impl Report {
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

    /// Reads the line. `None`: the processes that write it were killed.
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

/// Writes to a pipe that may be closed at its other end.
pub(super) fn write_text(mut to: impl Write, text: &str) {
    to.write_all(text.as_bytes()).ok();
    to.flush().ok();
}
