//! What this OpenCode offers, as it says itself. Versions are not looked at: a path that is there
//! can be used, under the name that it has there.

use std::{
    collections::{BTreeMap, HashSet},
    sync::{Arc, Mutex},
};

use asyncagents_core::{lock::lock, port::HostError};
use serde::{Deserialize, de::IgnoredAny};

use super::api::Api;

/// A call that not every OpenCode has, or not under the same path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Offer {
    /// Makes a session with a whole history.
    Import,
    /// Puts a text into the system prompt of a session.
    Instructions,
    /// Asks a model one thing, without a session and without tools.
    Generate,
}

impl Offer {
    /// Where it may be, the newest name last. `{}` is the session.
    fn paths(self) -> [&'static str; 2] {
        match self {
            Self::Import => ["/api/session/import", "/api/experimental/session/import"],
            Self::Instructions => [
                "/api/session/{}/instructions/entries/{}",
                "/api/experimental/session/{}/instructions/entries/{}",
            ],
            Self::Generate => ["/api/generate", "/api/experimental/generate"],
        }
    }
}

/// The paths of this OpenCode, asked for once.
#[derive(Default)]
pub(super) struct Capabilities(Mutex<Option<Arc<HashSet<String>>>>);

impl Capabilities {
    /// The path of a call; nothing where there is none. `{}` in it is to be filled in.
    pub(super) async fn path(
        &self,
        api: &Api,
        offer: Offer,
    ) -> Result<Option<&'static str>, HostError> {
        let paths = self.paths(api).await?;
        Ok(offer.paths().into_iter().find(|path| paths.contains(*path)))
    }

    /// Another OpenCode may answer from now on.
    pub(super) fn forget(&self) {
        *lock(&self.0) = None;
    }

    async fn paths(&self, api: &Api) -> Result<Arc<HashSet<String>>, HostError> {
        let known = lock(&self.0).clone();
        if let Some(known) = known {
            return Ok(known);
        }
        let described = api.description().await?;
        let described = described.map(|text| paths_in(&text)).unwrap_or_default();
        let described = Arc::new(described);
        *lock(&self.0) = Some(described.clone());
        Ok(described)
    }
}

/// The paths of an OpenAPI document, with `{}` for each parameter.
fn paths_in(description: &str) -> HashSet<String> {
    #[derive(Deserialize)]
    struct Description {
        #[serde(default)]
        paths: BTreeMap<String, IgnoredAny>,
    }
    let read = serde_json::from_str::<Description>(description);
    let read = read.inspect_err(|error| {
        tracing::warn!(%error, "OpenCode describes its API in an unknown way");
    });
    let paths = read.map(|read| read.paths).unwrap_or_default();
    paths.into_keys().map(|path| without_names(&path)).collect()
}

/// `/api/session/{sessionID}/wait` as `/api/session/{}/wait`.
fn without_names(path: &str) -> String {
    let named = |step: &str| step.starts_with('{');
    let steps = path
        .split('/')
        .map(|step| if named(step) { "{}" } else { step });
    steps.collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::paths_in;

    #[test]
    fn a_description_that_is_none_offers_nothing() {
        assert!(paths_in("").is_empty());
        assert!(paths_in("[1]").is_empty());
        let paths = paths_in(r#"{"paths":{"/api/session/{sessionID}/wait":{"post":{}}}}"#);
        assert!(paths.contains("/api/session/{}/wait"), "{paths:?}");
    }
}
