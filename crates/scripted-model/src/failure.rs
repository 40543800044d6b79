//! An HTTP error, before it is put into a protocol.

use serde::Deserialize;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) status: u16,
    pub(crate) code: Option<String>,
    pub(crate) message: String,
}

impl Failure {
    /// A request that no model would answer.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self {
            status: 400,
            code: None,
            message: message.into(),
        }
    }

    /// A request of OpenAI's protocols without a field.
    pub(crate) fn missing(field: &str) -> Self {
        Self::invalid(format!("Missing required parameter: '{field}'."))
    }
}

/// Reads the body of a request.
pub(crate) fn parse<'a, T: Deserialize<'a>>(body: &'a str) -> Result<T, Failure> {
    serde_json::from_str(body)
        .map_err(|error| Failure::invalid(format!("the body is not a request: {error}")))
}
