//! Which model a session uses.

use asyncagents_core::{agent::Effort, id::ModelName, port::HostError};

use super::wire::SessionModel;

/// OpenCode's name for what a model has without a variant.
const DEFAULT_VARIANT: &str = "default";

/// `provider/model` or `provider/model#variant`.
pub(super) fn parse(name: &ModelName) -> Result<SessionModel, HostError> {
    let (model, variant) = match name.as_str().split_once('#') {
        Some((model, variant)) => (model, Some(variant)),
        None => (name.as_str(), None),
    };
    match model.split_once('/') {
        Some((provider, id)) if !provider.is_empty() && !id.is_empty() => Ok(SessionModel {
            id: id.to_owned(),
            provider: provider.to_owned(),
            variant: variant
                .filter(|variant| !variant.is_empty())
                .map(str::to_owned),
        }),
        _ => Err(HostError::Refused(format!(
            "`{name}` is no model of OpenCode; write provider/model"
        ))),
    }
}

impl SessionModel {
    /// Its full name, without the variant.
    pub(super) fn name(&self) -> ModelName {
        format!("{}/{}", self.provider, self.id).into()
    }

    /// The same with the variant of an effort, if one is asked for.
    pub(super) fn with_effort(mut self, effort: Option<Effort>) -> Self {
        let variant = effort.map(|effort| effort.word().to_owned());
        self.variant = variant.or(self.variant);
        self
    }

    /// Without OpenCode's name for no variant, which says nothing.
    pub(super) fn plain(mut self) -> Self {
        self.variant = self.variant.filter(|variant| variant != DEFAULT_VARIANT);
        self
    }
}
