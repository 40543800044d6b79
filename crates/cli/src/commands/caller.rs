//! Who tells a task something or answers it: a person, or an agent that has typed the command into
//! its shell.

use std::{io, os::fd::AsFd};

use asyncagents_core::{host_ref::HostRef, question::Given, refusal::Refusal, request::Caller};
use asyncagents_runtime::Problem;
use rustix::{process::getpgrp, termios::tcgetpgrp};

use crate::{
    agent_shell::{self, AgentShell},
    exit::Failure,
};

/// Who tells a task something. An agent has a say only in what is below its session.
///
/// # Errors
/// When it is an agent, and its session is not known.
pub(super) fn of_message() -> Result<Caller, Failure> {
    match agent_shell::around() {
        Some(shell) => of_session(shell, "tell"),
        None => Ok(person_or_script()),
    }
}

/// Who gives this answer.
///
/// # Errors
/// When it is a permission, and an agent gives it, or nobody can have typed it; and when an agent
/// gives it whose session is not known.
pub(super) fn of_answer(given: &Given) -> Result<Caller, Failure> {
    let permits = matches!(given, Given::Once | Given::Always);
    match agent_shell::around() {
        Some(AgentShell { agent, .. }) if permits => {
            Err(Problem::from(Refusal::InAgentsShell { agent }).into())
        }
        Some(shell) => of_session(shell, "answer"),
        None => match person_or_script() {
            Caller::Script if permits => Err(Problem::from(Refusal::NotAtTerminal).into()),
            caller => Ok(caller),
        },
    }
}

/// A process that has left the shell of an agent has no agent above it, and no terminal.
fn person_or_script() -> Caller {
    if is_at_terminal() {
        Caller::Person
    } else {
        Caller::Script
    }
}

/// Whether this command is what the keys of a terminal go to. A terminal that was only opened is
/// not enough: it may be somebody else's.
fn is_at_terminal() -> bool {
    let (stdin, stderr) = (io::stdin(), io::stderr());
    let mut streams = [stdin.as_fd(), stderr.as_fd()].into_iter();
    streams.any(|stream| tcgetpgrp(stream).is_ok_and(|foreground| foreground == getpgrp()))
}

fn of_session(shell: AgentShell, what: &'static str) -> Result<Caller, Failure> {
    let AgentShell { agent, session } = shell;
    match session {
        Some(session) => Ok(Caller::Session {
            session,
            // Nothing is launched, so it is not looked at.
            host: HostRef::engine("/").into(),
            outside: None,
            message: None,
        }),
        None => Err(Problem::from(Refusal::UnknownAgentsShell { agent, what }).into()),
    }
}
