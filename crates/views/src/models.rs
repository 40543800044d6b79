//! Which models can be used. Of a key only the source is shown.

use serde::Serialize;

/// The default model, the providers, and the short names for models.
#[derive(Debug, Serialize)]
pub struct ModelsView {
    pub aliases: Vec<ModelView>,
    pub default: ModelView,
    pub providers: Vec<ProviderView>,
}

/// A model, or why there is none.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ModelView {
    /// Why it cannot be asked.
    pub error: Option<String>,
    /// PROVIDER/MODEL.
    pub model: Option<String>,
    /// The short name, where it was asked for by that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Unknown models have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price_known: Option<bool>,
    pub usable: bool,
    /// Unknown models have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
}

/// A provider of models.
#[derive(Debug, Serialize)]
pub struct ProviderView {
    pub base_url: String,
    pub key: KeyView,
    pub name: String,
    pub usable: bool,
}

/// Where a provider's key comes from.
#[derive(Debug, Serialize)]
pub struct KeyView {
    pub is_set: Option<bool>,
    /// `none`, `variable`, `command` or `given`.
    pub source: &'static str,
    pub variable: Option<String>,
}
