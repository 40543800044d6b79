//! What an answer of OpenCode means.

use asyncagents_core::port::HostError;
use serde::Deserialize;
use serde_json::Value;

use crate::connection::Response;

/// The status of a connection for an answer that is too long for it.
pub(crate) const TOO_LONG: u16 = 413;
/// The status where something else has the name, or the time, that was asked for.
pub(crate) const CONFLICT: u16 = 409;

/// The response, or the error that its status means.
pub(crate) fn judged(response: Response, path: &str) -> Result<Response, HostError> {
    match response.status {
        200..400 => Ok(response),
        404 => {
            let session = path.split("/session/").nth(1).unwrap_or(path);
            let session = session.split('/').next().unwrap_or_default();
            Err(HostError::NoSession(session.into()))
        }
        // Transient: a retry may succeed.
        429 | 500.. => Err(HostError::Unreachable(answered(&response))),
        _ => Err(HostError::Refused(answered(&response))),
    }
}

/// What OpenCode said, for people.
pub(crate) fn answered(response: &Response) -> String {
    let body: Value = serde_json::from_str(&response.body).unwrap_or_default();
    let message = body["data"]["message"]
        .as_str()
        .or(body["message"].as_str());
    let message = message.unwrap_or(&response.body);
    let message: String = message.chars().take(300).collect();
    format!("OpenCode answered {}: {message}", response.status)
}

/// Nothing instead of the error that there is no such session.
pub(crate) fn absent<T>(found: Result<T, HostError>) -> Result<Option<T>, HostError> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(HostError::NoSession(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A refused notice is retried: a server that refuses a password today may take another tomorrow.
pub(crate) fn transient(error: HostError) -> HostError {
    match error {
        HostError::Refused(why) => HostError::Unreachable(why),
        HostError::Unreachable(_) | HostError::NoSession(_) => error,
    }
}

pub(crate) fn parse<'t, T: Deserialize<'t>>(text: &'t str) -> Result<T, HostError> {
    serde_json::from_str(text).map_err(|error| {
        HostError::Refused(format!("OpenCode answered something unknown: {error}"))
    })
}
