//! Exit codes, and the one line a failure prints.

use std::{io, process::ExitCode};

use crate::print;

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
pub(crate) fn code(outcome: Result<(), Failure>) -> ExitCode {
    let exit = match outcome {
        Ok(()) => Exit::Done,
        // Whoever reads us has read enough: `asyncagents fork … | head`.
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Done,
        Err(Failure::Output(error)) => {
            print::remark(&format!("asyncagents: cannot write the answer: {error}\n"));
            Exit::Failed
        }
        Err(Failure::Input(error)) => {
            print::remark(&format!("asyncagents: {error:#}\n"));
            Exit::BadInput
        }
    };
    ExitCode::from(exit as u8)
}
