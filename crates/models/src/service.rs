//! A provider, with its key and what all requests to it share.

use std::sync::Arc;

use asyncagents_core::secret::Secret;
use reqwest::Url;
use tokio::sync::Mutex;

use crate::{
    error::ModelError,
    http::Http,
    key::{KeySource, printed_by},
    rate_limit::RateLimit,
    settings::{Provider, Settings, catalog},
    unwanted::Refusals,
};

/// What all providers share.
pub(crate) struct Shared {
    pub(crate) settings: Settings,
    pub(crate) http: Http,
    pub(crate) environment: Environment,
}

type Environment = Box<dyn Fn(&str) -> Option<String> + Send + Sync>;

impl Shared {
    /// An empty variable is as good as none.
    pub(crate) fn variable(&self, name: &str) -> Option<Secret> {
        let secret = Secret::new((self.environment)(name)?);
        Some(secret).filter(|secret| !secret.reveal().is_empty())
    }
}

/// A provider, and what all requests to it share.
pub(crate) struct Service {
    pub(crate) shared: Arc<Shared>,
    pub(crate) provider: Provider,
    pub(crate) url: Url,
    /// The address without secrets.
    pub(crate) shown: String,
    pub(crate) rate_limit: Arc<RateLimit>,
    /// What the key command has printed.
    printed: Mutex<Option<Secret>>,
    pub(crate) refusals: Refusals,
}

impl Service {
    pub(crate) fn new(provider: Provider, shared: &Arc<Shared>) -> Result<Self, ModelError> {
        Ok(Self {
            shared: Arc::clone(shared),
            url: catalog::endpoint(&provider)?,
            shown: catalog::shown(&provider.base_url),
            rate_limit: Arc::default(),
            printed: Mutex::default(),
            refusals: Refusals::default(),
            provider,
        })
    }

    /// The key, unless a command prints it.
    pub(crate) fn plain_key(&self) -> Result<Option<Secret>, ModelError> {
        match &self.provider.key {
            KeySource::None | KeySource::Command(_) => Ok(None),
            KeySource::MaybeEnv(name) => Ok(self.shared.variable(name)),
            KeySource::Given(secret) => Ok(Some(secret.clone())),
            KeySource::Env(name) => match self.shared.variable(name) {
                Some(secret) => Ok(Some(secret)),
                None => Err(ModelError::MissingKey {
                    provider: self.provider.name.clone(),
                    how: format!("set {name}"),
                }),
            },
        }
    }

    /// The key. A command is run only if it has not yet printed another one than `refused`.
    pub(crate) async fn key(&self, refused: Option<&Secret>) -> Result<Option<Secret>, ModelError> {
        let KeySource::Command(command) = &self.provider.key else {
            return self.plain_key();
        };
        let mut printed = self.printed.lock().await;
        if printed.is_none() || printed.as_ref() == refused {
            *printed = None;
            *printed = Some(printed_by(&self.provider.name, command).await?);
        }
        Ok(printed.clone())
    }
}
