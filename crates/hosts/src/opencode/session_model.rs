//! Which model a session uses.

use asyncagents_core::{agent::Effort, id::ModelName, port::HostError};
use serde_json::{Value, json};

use super::wire::SessionModel;

/// Names a model in a prompt.
pub(super) fn set(body: &mut Value, model: Option<&SessionModel>) {
    let Some(model) = model else { return };
    body["model"] = json!({"providerID": model.provider, "modelID": model.id});
    // OpenCode's name for the default cannot be asked for.
    if let Some(variant) = model.variant.as_deref().filter(|name| *name != "default") {
        body["variant"] = json!(variant);
    }
}

/// Names an effort in a prompt, which OpenCode calls a variant of the model. It is put over the one
/// that the session has.
pub(super) fn set_effort(body: &mut Value, effort: Option<Effort>) {
    if let Some(effort) = effort {
        body["variant"] = json!(effort.word());
    }
}

pub(super) fn parse(name: &ModelName) -> Result<SessionModel, HostError> {
    match name.as_str().split_once('/') {
        Some((provider, id)) if !provider.is_empty() && !id.is_empty() => Ok(SessionModel {
            id: id.to_owned(),
            provider: provider.to_owned(),
            variant: None,
        }),
        _ => Err(HostError::Refused(format!(
            "`{name}` is no model of OpenCode; write provider/model"
        ))),
    }
}
