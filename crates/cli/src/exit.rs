//! Exit codes, and the one line a failure prints.

use std::{borrow::Cow, fmt, io, path::Path, process::ExitCode};

use anyhow::anyhow;
use asyncagents_core::{
    port::{HostError, StoreError, StoreErrorKind},
    refusal::Refusal,
};
use asyncagents_runtime::{Problem, ProblemKind};

use crate::{print, worker_process::stopped_process};

/// How the command ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Everything went well.
    Done = 0,
    /// I/O or internal error: the answer could not be written, the disk is full, the host cannot
    /// be reached. Or a check (`skill check`, `setup opencode --check`) found something
    /// wrong.
    Failed = 1,
    /// What was asked cannot be done: wrong arguments, an input that is not what it should
    /// be, a task that does not exist, a limit.
    BadInput = 2,
    /// `output`: the task has not ended yet.
    NotYet = 3,
    /// `run`, `skill run`, `output`, `task --follow`: it ended with an error, or was cancelled.
    TaskFailed = 4,
    /// `notices wait`: there is a notice. Its exit code is 2, which is how Claude Code knows.
    Notice = 5,
}

impl Exit {
    fn code(self) -> u8 {
        match self {
            Exit::Notice => Exit::BadInput as u8,
            Exit::Done | Exit::Failed | Exit::BadInput | Exit::NotYet | Exit::TaskFailed => {
                self as u8
            }
        }
    }
}

/// Why a command did not do what was asked.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Wrong arguments or input, or refused.
    Input(anyhow::Error),
    /// I/O or internal error.
    Machine(anyhow::Error),
    /// The answer could not be written.
    Output(io::Error),
}

impl Failure {
    pub(crate) fn store(error: StoreError) -> Self {
        Problem::Store(error).into()
    }

    /// The same where an agent's hook has failed. Agents take exit code 2 for a decision: they refuse
    /// the prompt or the call, or let no turn end.
    pub(crate) fn of_hook(self) -> Self {
        match self {
            Failure::Input(error) | Failure::Machine(error) => Failure::Machine(error),
            Failure::Output(error) => Failure::Output(error),
        }
    }
}

/// The one table from kinds of problems to how the command ends.
impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        let error = match hint(&problem) {
            Some(hint) => anyhow!("{problem}; {hint}"),
            None => problem.clone().into(),
        };
        match problem.kind() {
            ProblemKind::Refused(_) | ProblemKind::WrongDatabase => Failure::Input(error),
            ProblemKind::Unavailable | ProblemKind::Failed => Failure::Machine(error),
        }
    }
}

/// What can be done about a problem, at a shell.
fn hint(problem: &Problem) -> Option<Cow<'static, str>> {
    let hint = match problem {
        Problem::Refused(Refusal::UnknownTask { .. }) => "`asyncagents list` shows which there are",
        Problem::Refused(Refusal::UnknownChain { .. }) => "`asyncagents trace` shows the newest",
        Problem::Refused(Refusal::TooLateToTell { .. } | Refusal::SummingUp { .. }) => {
            "`asyncagents resume ID PROMPT` does that"
        }
        Problem::Refused(Refusal::NotAsking { .. }) => "`asyncagents output ID` shows what it does",
        Problem::Refused(Refusal::WhichQuestion { .. }) => "`--question` takes its ID",
        Problem::Refused(Refusal::NeverBegan { .. }) => "start a new `asyncagents task`",
        Problem::Refused(Refusal::SessionGone { .. }) => "start a new `asyncagents task` instead",
        Problem::Refused(_) | Problem::Host(_) | Problem::NotOurs => return None,
        Problem::Store(error) => return store_hint(error),
    };
    Some(hint.into())
}

fn store_hint(error: &StoreError) -> Option<Cow<'static, str>> {
    let place = Path::new(error.place());
    let hint = match error.kind() {
        StoreErrorKind::NotADatabase | StoreErrorKind::NotOurs => {
            "it was left alone. Choose another file with --db"
        }
        StoreErrorKind::Newer { .. } => {
            "it was left alone. Update asyncagents, or choose another file with --db"
        }
        StoreErrorKind::Unknown { .. } => {
            return Some(format!("it was left alone. {}", adopting(place)).into());
        }
        StoreErrorKind::InUse { .. } => {
            "nothing was changed. A worker ends by itself when it has nothing to do; an OpenCode has \
             to be restarted. Try again then"
        }
        StoreErrorKind::CannotOpen => "choose another file with --db",
        StoreErrorKind::Damaged => {
            "it was left as it is. If the system's log tells of a disk that failed to read, try \
             again; else bring back a copy, or choose another file with --db"
        }
        StoreErrorKind::Locked => {
            // A lease expires, and a lock on a file does not.
            return Some(match stopped_process(place) {
                Some(process) => format!(
                    "nothing was saved. asyncagents, process {process}, was stopped while it wrote: \
                     `kill -CONT {process}` lets it go on, `kill -KILL {process}` ends it, and \
                     nothing is lost by either"
                )
                .into(),
                None => "nothing was saved. Try again when that program has let go of it".into(),
            });
        }
        StoreErrorKind::ReadOnly => {
            "nothing was saved. Make it writable, or choose another file with --db"
        }
        StoreErrorKind::Full => "nothing was saved. Make room and try again",
        StoreErrorKind::Disk(_) => {
            "nothing was saved. The system's log tells more; a quota or a limit on the size of \
             files looks the same"
        }
        StoreErrorKind::Failed => return None,
    };
    Some(hint.into())
}

/// How a database without a seal becomes the user's.
pub(crate) fn adopting(database: &Path) -> String {
    format!(
        "`asyncagents db adopt --db {}` makes it yours; with --keep-conversations if you know that \
         all of it is your own",
        database.display()
    )
}

/// What a user has asked for and cannot have, in the host's words alone.
pub(crate) fn refused(error: HostError) -> Failure {
    match error {
        HostError::Refused(why) => Failure::Input(anyhow!(why)),
        error => Problem::from(error).into(),
    }
}

/// The same as [`refused`], for a session that was named.
pub(crate) fn no_session(error: HostError) -> Failure {
    match error {
        HostError::NoSession(session) => Failure::Input(anyhow!(
            "there is no session {session}; `asyncagents sessions` lists those of this folder, and \
             `asyncagents run --continue` goes on with the newest"
        )),
        error => refused(error),
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Failure::Output(error) => write!(f, "cannot write the answer: {error}"),
            Failure::Machine(error) | Failure::Input(error) => write!(f, "{error:#}"),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure::Output(error)
    }
}

/// Prints what went wrong, if anything did, and returns the exit code.
pub(crate) fn code(outcome: Result<Exit, Failure>) -> ExitCode {
    let exit = match outcome {
        Ok(exit) => exit,
        // The reader has read enough: `asyncagents fork … | head`.
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Done,
        Err(failure) => {
            print::failure(&failure.to_string());
            match failure {
                Failure::Output(_) | Failure::Machine(_) => Exit::Failed,
                Failure::Input(_) => Exit::BadInput,
            }
        }
    };
    ExitCode::from(exit.code())
}
