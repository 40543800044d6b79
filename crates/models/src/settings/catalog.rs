//! Names: which providers and short names are built in, and where a provider listens.

use std::collections::BTreeMap;

use reqwest::Url;

use crate::{error::ModelError, key::KeySource, settings::Provider, wire::Wire};

/// The providers that need no declaration.
pub(crate) fn providers() -> Vec<Provider> {
    use KeySource::{Env, MaybeEnv, None};
    let env = |name: &str| Env(name.to_owned());
    [
        (
            "anthropic",
            Wire::Anthropic,
            "https://api.anthropic.com",
            env("ANTHROPIC_API_KEY"),
        ),
        (
            "openai",
            Wire::Responses,
            "https://api.openai.com",
            env("OPENAI_API_KEY"),
        ),
        (
            "openrouter",
            Wire::Chat,
            "https://openrouter.ai/api",
            env("OPENROUTER_API_KEY"),
        ),
        ("ollama", Wire::Chat, "http://127.0.0.1:11434", None),
        ("lmstudio", Wire::Chat, "http://127.0.0.1:1234", None),
        (
            "vllm",
            Wire::Chat,
            "http://127.0.0.1:8000",
            MaybeEnv("VLLM_API_KEY".to_owned()),
        ),
    ]
    .map(|(name, wire, base_url, key)| Provider {
        name: name.to_owned(),
        wire,
        base_url: base_url.to_owned(),
        key,
        headers: Vec::new(),
    })
    .into()
}

/// The newest model of each kind in the price table.
const ALIASES: [(&str, &str); 5] = [
    ("sonnet", "anthropic/claude-sonnet-5-5"),
    ("opus", "anthropic/claude-opus-5-5"),
    ("haiku", "anthropic/claude-haiku-5-5"),
    ("gpt", "openai/gpt-6.1-sol"),
    ("gpt-mini", "openai/gpt-5.4-mini"),
];

/// The default model, by provider: the first that has a key.
pub(crate) const DEFAULTS: [(&str, &str); 3] = [
    ("anthropic", "anthropic/claude-sonnet-5-5"),
    ("openai", "openai/gpt-6.1-sol"),
    // The router's own choice, which outlives any model.
    ("openrouter", "openrouter/openrouter/auto"),
];

/// The short names that need no declaration.
pub(crate) fn aliases() -> BTreeMap<String, String> {
    let owned = |(short, long): (&str, &str)| (short.to_owned(), long.to_owned());
    ALIASES.map(owned).into()
}

/// Where requests go. People write the base with or without a version and a trailing slash, or
/// the whole address, which is taken as it is.
pub(crate) fn endpoint(provider: &Provider) -> Result<Url, ModelError> {
    let what = format!("base_url of provider {}", provider.name);
    let mut url =
        Url::parse(provider.base_url.trim()).map_err(|error| ModelError::settings(&what, error))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        let why = "it must begin with http:// or https://";
        return Err(ModelError::settings(what, why));
    }
    let verb = match provider.wire {
        Wire::Anthropic => "/messages",
        Wire::Responses => "/responses",
        Wire::Chat => "/chat/completions",
    };
    let path = url.path().trim_end_matches('/');
    let path = match path {
        whole if whole.ends_with(verb) => whole.to_owned(),
        base if base.split('/').any(is_version) => format!("{base}{verb}"),
        base => format!("{base}/v1{verb}"),
    };
    url.set_path(&path);
    Ok(url)
}

/// `v1`, `v4`, `v1beta`.
fn is_version(segment: &str) -> bool {
    let mut letters = segment.chars();
    letters.next() == Some('v') && letters.next().is_some_and(|digit| digit.is_ascii_digit())
}

/// An address as it may be shown: a user name, a password and a query may be secret.
pub(crate) fn shown(url: &str) -> String {
    match Url::parse(url.trim()) {
        Ok(mut url) => {
            let _ = url.set_username("");
            let _ = url.set_password(None);
            url.set_query(None);
            url.set_fragment(None);
            url.as_str().trim_end_matches('/').to_owned()
        }
        Err(_) => "[not an address]".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(Wire::Chat, "http://h", "http://h/v1/chat/completions")]
    #[case(Wire::Chat, "http://h/v4/", "http://h/v4/chat/completions")]
    #[case(Wire::Chat, "http://h/chat/completions", "http://h/chat/completions")]
    #[case(
        Wire::Chat,
        "http://h/x/chat/completions/?v=7",
        "http://h/x/chat/completions?v=7"
    )]
    #[case(
        Wire::Responses,
        "http://h/openai/responses",
        "http://h/openai/responses"
    )]
    #[case(Wire::Anthropic, "http://h/messages", "http://h/messages")]
    fn where_requests_go(#[case] wire: Wire, #[case] base_url: &str, #[case] url: &str) {
        let provider = Provider {
            name: "house".to_owned(),
            wire,
            base_url: base_url.to_owned(),
            key: KeySource::None,
            headers: Vec::new(),
        };
        let endpoint = endpoint(&provider).map(|url| url.to_string());
        assert_eq!(endpoint.as_deref(), Ok(url));
    }
}
