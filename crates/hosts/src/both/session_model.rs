//! A model, as sessions name it.

use asyncagents_core::{agent::Effort, id::ModelName, port::HostError};
use serde::{Deserialize, Serialize};

/// OpenCode's name for what a model has without a variant. It cannot be asked for.
const DEFAULT_VARIANT: &str = "default";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SessionModel {
    pub(crate) id: String,
    #[serde(rename = "providerID")]
    pub(crate) provider: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) variant: Option<String>,
}

impl SessionModel {
    /// By its full name, `provider/model`.
    pub(crate) fn named(name: &str) -> Result<Self, HostError> {
        match name.split_once('/') {
            Some((provider, id)) if !provider.is_empty() && !id.is_empty() => Ok(Self {
                id: id.to_owned(),
                provider: provider.to_owned(),
                variant: None,
            }),
            _ => Err(HostError::Refused(format!(
                "`{name}` is no model of OpenCode; write provider/model"
            ))),
        }
    }

    /// Its full name, without the variant.
    pub(crate) fn name(&self) -> ModelName {
        format!("{}/{}", self.provider, self.id).into()
    }

    /// The same with the variant of an effort, if one is asked for.
    pub(crate) fn with_effort(mut self, effort: Option<Effort>) -> Self {
        let variant = effort.map(|effort| effort.word().to_owned());
        self.variant = variant.or(self.variant);
        self
    }

    /// Without OpenCode's name for no variant, which says nothing.
    pub(crate) fn plain(mut self) -> Self {
        self.variant = self.variant.filter(|variant| variant != DEFAULT_VARIANT);
        self
    }
}
