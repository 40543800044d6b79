//! Which model a session uses.

use asyncagents_core::{agent::Effort, id::ModelName, port::HostError, skill::Role};
use serde_json::{Value, json};

use super::wire::SessionModel;

/// The model that is asked for, or else the one that a skill would like. A skill may name it by
/// another agent's word for it, which OpenCode does not know.
pub(super) fn wanted<'m>(
    asked: Option<&'m ModelName>,
    role: Option<&'m Role>,
) -> Option<&'m ModelName> {
    let liked = role.and_then(|role| role.terms.model.as_ref());
    let is_known = |model: &&ModelName| {
        let is_known = model.as_str().contains('/') || is_inherited(model);
        if !is_known {
            tracing::warn!(%model, "unknown model in a skill, falling back to the session's");
        }
        is_known
    };
    asked.or_else(|| liked.filter(is_known))
}

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

/// Whether the parent's model is meant, whatever the agent has.
pub(super) fn is_inherited(model: &ModelName) -> bool {
    model.as_str() == ModelName::INHERIT
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
