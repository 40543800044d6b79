//! Which model a prompt is for.

use asyncagents_core::agent::Effort;
use serde_json::{Value, json};

use crate::both::session_model::SessionModel;

/// Names a model in a prompt.
pub(super) fn set(body: &mut Value, model: Option<SessionModel>) {
    let Some(model) = model.map(SessionModel::plain) else {
        return;
    };
    body["model"] = json!({"providerID": model.provider, "modelID": model.id});
    if let Some(variant) = model.variant {
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
