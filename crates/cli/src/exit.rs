//! Exit codes, and the one line a failure prints.

use std::{fmt, io, path::Path, process::ExitCode};

use anyhow::anyhow;
use asyncagents_core::{
    port::{HostError, StoreError, StoreErrorKind},
    refusal::Refusal,
};
use asyncagents_runtime::Problem;

use crate::{print, worker_process::stopped_process};

/// How the command ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Everything went well.
    Done = 0,
    /// The machine failed: the answer could not be written, the disk is full, the host
    /// cannot be reached. Or a check (`skill check`, `setup opencode --check`) found something
    /// wrong.
    Failed = 1,
    /// What was asked cannot be done: wrong arguments, an input that is not what it should
    /// be, a task that does not exist, a limit.
    BadInput = 2,
    /// `output`: the task has not ended yet.
    NotYet = 3,
    /// `run`, `skill run`, `output`, `task --follow`: it ended with an error, or was cancelled.
    TaskFailed = 4,
}

/// Why a command did not do what was asked.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The input's fault.
    Input(anyhow::Error),
    /// The machine's.
    Machine(anyhow::Error),
    /// The answer could not be written.
    Output(io::Error),
}

impl Failure {
    pub(crate) fn store(error: StoreError) -> Self {
        Problem::Store(error).into()
    }
}

/// The one table from kinds of problems to how the command ends, with a hint where there is
/// something to do.
impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        let hinted = |hint: &str| anyhow!("{problem}; {hint}");
        match &problem {
            Problem::Refused(Refusal::UnknownTask { asked }) => Failure::Input(anyhow!(
                "there is no task `{asked}`; `asyncagents list` shows which there are"
            )),
            Problem::Refused(
                refusal @ (Refusal::NeverBegan { .. } | Refusal::SessionGone { .. }),
            ) => {
                // A model is told of its tool.
                let refusal = refusal
                    .to_string()
                    .replace("asyncagents_task", "`asyncagents task`");
                Failure::Input(anyhow!(refusal))
            }
            Problem::Refused(_) => Failure::Input(problem.into()),
            Problem::NotOurs => Failure::Machine(problem.into()),
            Problem::Host(error) => match error {
                HostError::Refused(_) | HostError::NoSession(_) => Failure::Input(problem.into()),
                HostError::Unreachable(_) => Failure::Machine(problem.into()),
            },
            Problem::Store(error) => match error.kind() {
                StoreErrorKind::NotADatabase | StoreErrorKind::NotOurs => {
                    Failure::Input(hinted("it was left alone. Choose another file with --db"))
                }
                StoreErrorKind::Newer { .. } => Failure::Input(hinted(
                    "it was left alone. Update asyncagents, or choose another file with --db",
                )),
                StoreErrorKind::Unknown { .. } => Failure::Input(hinted(&format!(
                    "it was left alone. {}",
                    adopting(Path::new(error.place()))
                ))),
                StoreErrorKind::InUse { .. } => Failure::Machine(hinted(
                    "nothing was changed. A worker ends by itself when it has nothing to do; an \
                     OpenCode has to be restarted. Try again then",
                )),
                StoreErrorKind::CannotOpen => {
                    Failure::Input(hinted("choose another file with --db"))
                }
                StoreErrorKind::Damaged => Failure::Machine(hinted(
                    "it was left as it is. If the system's log tells of a disk that failed to read, try \
                     again; else bring back a copy, or choose another file with --db",
                )),
                StoreErrorKind::Locked => {
                    Failure::Machine(match stopped_process(Path::new(error.place())) {
                        // Its lease runs out, and a lock on a file does not.
                        Some(process) => hinted(&format!(
                            "nothing was saved. asyncagents, process {process}, was stopped while it \
                         wrote: `kill -CONT {process}` lets it go on, `kill -KILL {process}` ends it, \
                         and nothing is lost by either"
                        )),
                        None => hinted(
                            "nothing was saved. Try again when that program has let go of it",
                        ),
                    })
                }
                StoreErrorKind::ReadOnly => Failure::Machine(hinted(
                    "nothing was saved. Make it writable, or choose another file with --db",
                )),
                StoreErrorKind::Full => {
                    Failure::Machine(hinted("nothing was saved. Make room and try again"))
                }
                StoreErrorKind::Disk(_) => Failure::Machine(hinted(
                    "nothing was saved. The system's log tells more; a quota or a limit on the size of \
                     files looks the same",
                )),
                StoreErrorKind::Failed => Failure::Machine(problem.into()),
            },
        }
    }
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

/// The same, for a session that was named.
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

/// Says what went wrong and how to end.
pub(crate) fn code(outcome: Result<Exit, Failure>) -> ExitCode {
    let exit = match outcome {
        Ok(exit) => exit,
        // Whoever reads us has read enough: `asyncagents fork … | head`.
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Done,
        Err(failure) => {
            print::failure(&failure.to_string());
            match failure {
                Failure::Output(_) | Failure::Machine(_) => Exit::Failed,
                Failure::Input(_) => Exit::BadInput,
            }
        }
    };
    ExitCode::from(exit as u8)
}
