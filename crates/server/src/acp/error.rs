//! Why something cannot be done, and how the client is told.

use agent_client_protocol::{Error, ErrorCode};
use asyncagents_core::id::SessionId;
use serde_json::json;
use thiserror::Error as ThisError;

/// Why the built-in agent does not do something.
#[derive(Debug, Clone, PartialEq, Eq, ThisError)]
pub enum AgentError {
    #[error("there is no session `{0}`; session/list has those that there are")]
    NoSession(SessionId),
    #[error("the session `{0}` is not open here; session/load opens one from earlier")]
    NotOpen(SessionId),
    /// It cannot be done so; what to change is said.
    #[error("{0}")]
    Refused(String),
    /// It should have worked.
    #[error("{0}")]
    Failed(String),
}

/// The one table from kinds of errors to codes. Editors show the message, so that is the sentence.
impl From<AgentError> for Error {
    fn from(error: AgentError) -> Self {
        let message = error.to_string();
        match error {
            AgentError::NoSession(session) | AgentError::NotOpen(session) => {
                let data = json!({ "sessionId": session.as_str() });
                Error::new(ErrorCode::RESOURCE_NOT_FOUND, message).data(data)
            }
            AgentError::Refused(_) => Error::new(ErrorCode::INVALID_PARAMS, message),
            AgentError::Failed(_) => Error::new(ErrorCode::INTERNAL_ERROR, message),
        }
    }
}

/// An error about what the client has sent.
pub(super) fn refused(why: impl Into<String>) -> Error {
    AgentError::Refused(why.into()).into()
}
