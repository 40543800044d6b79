//! Who tells a task something or answers it: a person, or an agent that has typed the command into
//! its shell.

use asyncagents_core::{
    host_ref::HostRef, id::SessionId, question::Given, refusal::Refusal, request::Caller,
};
use asyncagents_runtime::Problem;

use crate::{
    agent_shell::{self, AgentShell},
    exit::Failure,
};

/// Who calls. An agent whose session is known has a say only in what is below it.
pub(super) fn here() -> Caller {
    agent_shell::around().map_or(Caller::Person, |shell| of_session(shell.session))
}

/// Who gives this answer.
///
/// # Errors
/// When it is a permission, and an agent gives it.
pub(super) fn of_answer(given: &Given) -> Result<Caller, Failure> {
    let Some(AgentShell { agent, session }) = agent_shell::around() else {
        return Ok(Caller::Person);
    };
    match given {
        Given::Once | Given::Always => Err(Problem::from(Refusal::InAgentsShell { agent }).into()),
        Given::Reject { .. } | Given::Text(_) | Given::Values(_) => Ok(of_session(session)),
    }
}

fn of_session(session: Option<SessionId>) -> Caller {
    match session {
        Some(session) => Caller::Session {
            session,
            // Nothing is launched, so it is not looked at.
            host: HostRef::engine("/").into(),
            message: None,
        },
        None => Caller::Person,
    }
}
