//! Keys: where they come from, and how they stay out of texts.

use std::{process::Stdio, time::Duration};

use asyncagents_core::secret::Secret;

use crate::error::ModelError;

/// A password manager may ask a person first.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(120);

/// Where a provider's key comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    /// The provider needs none.
    None,
    /// An environment variable.
    Env(String),
    /// An environment variable that need not be set.
    MaybeEnv(String),
    /// What a shell command prints. It is run once, when the key is needed first, and again when
    /// the provider no longer accepts what it has printed.
    Command(String),
    /// The key itself.
    Given(Secret),
}

impl KeySource {
    /// The variable that holds it.
    pub(crate) fn variable(&self) -> Option<&str> {
        match self {
            KeySource::Env(name) | KeySource::MaybeEnv(name) => Some(name),
            KeySource::None | KeySource::Command(_) | KeySource::Given(_) => None,
        }
    }

    /// What to check when the provider does not accept it.
    pub(crate) fn hint(&self) -> String {
        match self {
            KeySource::None => "it seems to need a key".to_owned(),
            KeySource::Env(name) | KeySource::MaybeEnv(name) => format!("check {name}"),
            KeySource::Command(_) => "check what its key command prints".to_owned(),
            KeySource::Given(_) => "check its key".to_owned(),
        }
    }
}

/// What the key command prints.
pub(crate) async fn printed_by(provider: &str, command: &str) -> Result<Secret, ModelError> {
    let failed = |why: String| ModelError::KeyCommand {
        provider: provider.to_owned(),
        why,
    };
    let running = tokio::process::Command::new("sh")
        .args(["-c", command])
        // Not in a project's folder, where programs may find things that the project put there.
        .current_dir("/")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(COMMAND_TIMEOUT, running)
        .await
        .map_err(|_| {
            failed(format!(
                "it took longer than {} s",
                COMMAND_TIMEOUT.as_secs()
            ))
        })?
        .map_err(|error| failed(error.kind().to_string()))?;
    if !output.status.success() {
        return Err(failed(output.status.to_string()));
    }
    let text =
        String::from_utf8(output.stdout).map_err(|_| failed("it printed no text".to_owned()))?;
    let secret = Secret::new(text);
    if secret.reveal().is_empty() {
        return Err(failed("it printed nothing".to_owned()));
    }
    Ok(secret)
}

/// Takes secrets out of texts that come from outside.
#[derive(Default)]
pub(crate) struct Redactor(Vec<Secret>);

impl Redactor {
    /// What is shorter than this would blank out ordinary words.
    const SHORTEST: usize = 6;

    pub(crate) fn hide(&mut self, secret: Secret) {
        if secret.reveal().len() >= Self::SHORTEST {
            self.0.push(secret);
        }
    }

    pub(crate) fn clean(&self, text: &str) -> String {
        let hidden = |text: String, secret: &Secret| text.replace(secret.reveal(), "[key]");
        self.0.iter().fold(text.to_owned(), hidden)
    }
}
