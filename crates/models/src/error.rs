//! What can go wrong between here and a model's answer.

use std::time::Duration;

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
        /// Which one.
        provider: String,
        /// How to give it one.
        how: String,
    },
    /// The command that prints the key has failed.
    #[error("the key command of {provider} failed: {why}")]
    KeyCommand {
        /// Whose key.
        provider: String,
        /// In which way. What the command printed is not part of it.
        why: String,
    },
    /// Nobody answers there.
    #[error("cannot reach {provider} at {url}: {why}")]
    Unreachable {
        /// Who.
        provider: String,
        /// Where, without secrets.
        url: String,
        /// What the network says.
        why: String,
    },
    /// The provider does not want this request, now or later.
    #[error("{provider} refuses ({status}): {message}{}", added(hint.as_deref()))]
    Refused {
        /// Who.
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
    /// The answer did not end where every honest answer does. The same request would give the
    /// same.
    #[error(
        "the answer of {provider} was dropped: {what} than {limit} bytes, which `{setting}` allows"
    )]
    AnswerTooLong {
        /// Who.
        provider: String,
        /// What is too long.
        what: &'static str,
        /// How long it may be.
        limit: usize,
        /// The setting that says so.
        setting: &'static str,
    },
    /// The provider had no time for us, as often as we asked.
    #[error("{provider} is overloaded: {why} ({})", tries(*attempts))]
    Overloaded {
        /// Who.
        provider: String,
        /// How often it was asked.
        attempts: u32,
        /// What it said last.
        why: String,
    },
    /// Answers came, but none was whole.
    #[error("the answer of {provider} was broken off: {why} ({})", tries(*attempts))]
    Broken {
        /// Who.
        provider: String,
        /// How often it was asked.
        attempts: u32,
        /// In which way.
        why: String,
    },
}

impl ModelError {
    /// A shorter conversation would help.
    pub fn is_too_long(&self) -> bool {
        matches!(self, ModelError::TooLong { .. })
    }

    /// The same request may succeed later, without anybody changing anything.
    pub fn is_passing(&self) -> bool {
        match self {
            ModelError::Unreachable { .. }
            | ModelError::Overloaded { .. }
            | ModelError::Broken { .. } => true,
            ModelError::Settings { .. }
            | ModelError::UnknownModel { .. }
            | ModelError::NoModel { .. }
            | ModelError::MissingKey { .. }
            | ModelError::KeyCommand { .. }
            | ModelError::Refused { .. }
            | ModelError::TooLong { .. }
            | ModelError::AnswerTooLong { .. } => false,
        }
    }
}

/// Why one attempt gave no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// It is useless to try again.
    Final(ModelError),
    /// Too many requests: nobody may send one for a while.
    Limited {
        why: String,
        after: Option<Duration>,
    },
    /// It may go better next time.
    Passing {
        kind: Passing,
        why: String,
        after: Option<Duration>,
    },
}

/// What kind of trouble passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Passing {
    Overloaded,
    Broken,
    Unreachable,
}

impl Failure {
    pub(crate) fn broken(why: impl Into<String>) -> Self {
        Failure::Passing {
            kind: Passing::Broken,
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
