//! Why a request is refused that the protocol's library could not read.

use rmcp::{ErrorData, model::ErrorCode};

use super::skills;

/// A method that is known has the wrong parameters.
pub(super) fn refused(method: &str) -> ErrorData {
    let parameters = match method {
        "tools/call" => r#"{"name": TOOL, "arguments": {…}}"#,
        "prompts/get" => r#"{"name": SKILL, "arguments": {…}}"#,
        "resources/read" => r#"{"uri": "asyncagents://tasks/ID"}"#,
        "tasks/get" | "tasks/cancel" => r#"{"taskId": ID}"#,
        "tasks/update" => r#"{"taskId": ID, "inputResponses": {…}}"#,
        skills::GET => r#"{"uri": "skill://NAME/SKILL.md"}"#,
        _ => {
            let unknown = format!("there is no method {method}");
            return ErrorData::new(ErrorCode::METHOD_NOT_FOUND, unknown, None);
        }
    };
    let why = format!("{method}: the parameters must be {parameters}");
    ErrorData::invalid_params(why, None)
}
