//! Exit codes, and the one line a failure prints.

use std::{io, process::ExitCode};

/// How the command ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Everything went well.
    Done = 0,
    /// The machine failed: the answer could not be written, say.
    Failed = 1,
    /// What was asked cannot be done: wrong arguments, or an input that is not a session.
    BadInput = 2,
}

/// Why a command did not do what was asked.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The input's fault.
    Input(anyhow::Error),
    /// Ours, or the machine's.
    Output(io::Error),
}

/// Says what went wrong and how to end.
#[expect(clippy::print_stderr, reason = "the one place that reports a failure")]
pub(crate) fn code(outcome: Result<(), Failure>) -> ExitCode {
    let exit = match outcome {
        Ok(()) => Exit::Done,
        // Whoever reads us has read enough: `asyncagents fork … | head`.
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Done,
        Err(Failure::Output(error)) => {
            eprintln!("asyncagents: cannot write the answer: {error}");
            Exit::Failed
        }
        Err(Failure::Input(error)) => {
            eprintln!("asyncagents: {error:#}");
            Exit::BadInput
        }
    };
    ExitCode::from(exit as u8)
}
