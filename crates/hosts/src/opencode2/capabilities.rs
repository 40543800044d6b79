//! What this OpenCode offers, as it says itself. Versions are not looked at: a path that is there
//! can be used, under the name that it has there.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
};

use asyncagents_core::{lock::lock, port::HostError};
use serde_json::Value;

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

/// What this OpenCode says of itself, asked for once.
#[derive(Default)]
pub(super) struct Capabilities(Mutex<Option<Arc<Described>>>);

#[derive(Debug, Default)]
struct Described {
    /// With `{}` for each parameter.
    paths: HashSet<String>,
    /// Whether a session can have rules of its own.
    has_session_rules: bool,
}

impl Capabilities {
    /// The path of a call; nothing where there is none. `{}` in it is to be filled in.
    pub(super) async fn path(
        &self,
        api: &Api,
        offer: Offer,
    ) -> Result<Option<&'static str>, HostError> {
        let described = self.described(api).await?;
        let mut paths = offer.paths().into_iter();
        Ok(paths.find(|path| described.paths.contains(*path)))
    }

    /// Whether a session can have rules of its own. What a session was made with says whether it
    /// has kept them.
    pub(super) async fn has_session_rules(&self, api: &Api) -> Result<bool, HostError> {
        Ok(self.described(api).await?.has_session_rules)
    }

    /// Another OpenCode may answer from now on.
    pub(super) fn forget(&self) {
        *lock(&self.0) = None;
    }

    async fn described(&self, api: &Api) -> Result<Arc<Described>, HostError> {
        let known = lock(&self.0).clone();
        if let Some(known) = known {
            return Ok(known);
        }
        let described = api.description().await?;
        let described = described.map(|text| read(&text)).unwrap_or_default();
        let described = Arc::new(described);
        *lock(&self.0) = Some(described.clone());
        Ok(described)
    }
}

/// What an OpenAPI document says.
fn read(description: &str) -> Described {
    let document = serde_json::from_str::<Value>(description).inspect_err(|error| {
        tracing::warn!(%error, "OpenCode describes its API in an unknown way");
    });
    let document = document.unwrap_or_default();
    let paths = document["paths"].as_object();
    let paths = paths.into_iter().flat_map(|paths| paths.keys());
    let body = &document["paths"]["/api/session"]["post"]["requestBody"];
    let schema = &body["content"]["application/json"]["schema"];
    Described {
        paths: paths.map(|path| without_names(path)).collect(),
        has_session_rules: !resolved(&document, schema)["properties"]["permissions"].is_null(),
    }
}

/// A schema, or the one that it refers to.
fn resolved<'d>(document: &'d Value, schema: &'d Value) -> &'d Value {
    let referred = schema["$ref"]
        .as_str()
        .and_then(|name| name.strip_prefix('#'));
    let referred = referred.and_then(|pointer| document.pointer(pointer));
    referred.unwrap_or(schema)
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
    use super::read;

    #[test]
    fn a_description_that_is_none_offers_nothing() {
        for nothing in ["", "[1]", r#"{"paths":[]}"#] {
            let read = read(nothing);
            assert!(
                read.paths.is_empty() && !read.has_session_rules,
                "{nothing}"
            );
        }
        let read = read(r#"{"paths":{"/api/session/{sessionID}/wait":{"post":{}}}}"#);
        assert!(read.paths.contains("/api/session/{}/wait"), "{read:?}");
    }

    #[test]
    fn a_schema_may_be_elsewhere() {
        let there = r##"{"paths":{"/api/session":{"post":{"requestBody":{"content":{
            "application/json":{"schema":{"$ref":"#/components/schemas/New"}}}}}}},
            "components":{"schemas":{"New":{"properties":{"permissions":{}}}}}}"##;
        assert!(read(there).has_session_rules);
        let without = there.replace("permissions", "title");
        assert!(!read(&without).has_session_rules);
    }
}
