//! What can go wrong between here and a model's answer.

use std::time::Duration;

use asyncagents_core::fallback::is_about_model;

/// Why there is no answer. No text in it contains a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// A setting that cannot be used.
    #[error("{what}: {why}")]
    Settings {
        /// Which setting.
        what: String,
        /// What is wrong with it.
        why: String,
    },
    /// Neither a short name nor `provider/model`.
    #[error(
        "`{name}` is not a known model: write PROVIDER/MODEL, where PROVIDER is one of {}; \
         declare another in the configuration with `[providers.NAME]` and `base_url = …`",
        known.join(", ")
    )]
    UnknownModel {
        /// What was asked for.
        name: String,
        /// The providers there are.
        known: Vec<String>,
    },
    /// No model was asked for, and no provider has a key.
    #[error(
        "no model is set up: set {}, or choose a local model with `--model ollama/NAME`; \
         `asyncagents demo` needs none",
        alternatives(variables)
    )]
    NoModel {
        /// Any of these would do.
        variables: Vec<String>,
    },
    /// The provider wants a key.
    #[error("{provider} needs a key: {how}")]
    MissingKey {
        provider: String,
        /// How to give it one.
        how: String,
    },
    /// The command that prints the key has failed.
    #[error("the key command of {provider} failed: {why}")]
    KeyCommand {
        provider: String,
        /// In which way. What the command printed is not part of it.
        why: String,
    },
    /// No server answers at this address.
    #[error("cannot reach {provider} at {url}: {why}")]
    Unreachable {
        provider: String,
        /// Where, without secrets.
        url: String,
        /// What the network says.
        why: String,
    },
    /// The provider refuses this request for good.
    #[error("{provider} refuses ({status}): {message}{}", added(hint.as_deref()))]
    Refused {
        provider: String,
        /// The HTTP status.
        status: u16,
        /// What the provider says.
        message: String,
        /// What to check.
        hint: Option<String>,
    },
    /// The conversation does not fit into the model's window.
    #[error("the conversation is too long for the model: {message}")]
    TooLong {
        /// What the provider says.
        message: String,
    },
    /// The answer is longer than any honest one. A retry would give the same.
    #[error(
        "the answer of {provider} was dropped: {what} than {limit} bytes, which `{setting}` allows"
    )]
    AnswerTooLong {
        provider: String,
        /// What is too long.
        what: &'static str,
        /// How long it may be.
        limit: usize,
        /// The setting that says so.
        setting: &'static str,
    },
    /// Every attempt was turned away.
    #[error("{provider} is overloaded: {why} ({})", tries(*attempts))]
    Overloaded {
        provider: String,
        /// How often it was asked.
        attempts: u32,
        /// The error of the last attempt.
        why: String,
    },
    /// Every attempt ended in the middle of the answer.
    #[error("the answer of {provider} was broken off: {why} ({})", tries(*attempts))]
    Broken {
        provider: String,
        /// How often it was asked.
        attempts: u32,
        /// In which way.
        why: String,
    },
}

impl ModelError {
    pub(crate) fn settings(what: impl Into<String>, why: impl ToString) -> Self {
        ModelError::Settings {
            what: what.into(),
            why: why.to_string(),
        }
    }

    /// There is no key, and another process may have one.
    pub fn is_missing_key(&self) -> bool {
        matches!(self, Self::MissingKey { .. } | Self::NoModel { .. })
    }

    /// The model cannot be asked, whatever it is asked: there is no key, no credit or no server, or
    /// every attempt was turned away. Another model may answer the same request.
    pub fn is_unavailable(&self) -> bool {
        match self {
            ModelError::UnknownModel { .. }
            | ModelError::NoModel { .. }
            | ModelError::MissingKey { .. }
            | ModelError::KeyCommand { .. }
            | ModelError::Unreachable { .. }
            | ModelError::Overloaded { .. }
            | ModelError::Broken { .. } => true,
            ModelError::Refused {
                status, message, ..
            } => is_about_model(*status, message),
            ModelError::Settings { .. }
            | ModelError::TooLong { .. }
            | ModelError::AnswerTooLong { .. } => false,
        }
    }

    /// A shorter conversation would help.
    pub fn is_too_long(&self) -> bool {
        matches!(self, ModelError::TooLong { .. })
    }
}

/// Why one attempt failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// A retry is useless.
    Permanent(ModelError),
    /// A retry may succeed.
    Transient {
        kind: TransientKind,
        why: String,
        after: Option<Duration>,
    },
}

/// Decides how a retry waits, and which error is left when all attempts are used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TransientKind {
    /// Too many requests: all requests to this provider wait.
    RateLimited,
    Overloaded,
    Broken,
    Unreachable,
}

impl Failure {
    pub(crate) fn broken(why: impl Into<String>) -> Self {
        Failure::Transient {
            kind: TransientKind::Broken,
            why: why.into(),
            after: None,
        }
    }
}

fn added(hint: Option<&str>) -> String {
    hint.map(|hint| format!("; {hint}")).unwrap_or_default()
}

fn tries(attempts: u32) -> String {
    match attempts {
        1 => "asked once".to_owned(),
        more => format!("asked {more} times"),
    }
}

fn alternatives(names: &[String]) -> String {
    match names {
        [] => "a key".to_owned(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}
