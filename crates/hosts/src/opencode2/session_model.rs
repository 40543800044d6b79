//! Which model a session uses.

use asyncagents_core::{id::ModelName, port::HostError};

use crate::both::session_model::SessionModel;

/// `provider/model` or `provider/model#variant`.
pub(super) fn parse(name: &ModelName) -> Result<SessionModel, HostError> {
    let Some((model, variant)) = name.as_str().split_once('#') else {
        return SessionModel::named(name.as_str());
    };
    let variant = Some(variant).filter(|variant| !variant.is_empty());
    Ok(SessionModel {
        variant: variant.map(str::to_owned),
        ..SessionModel::named(model)?
    })
}
