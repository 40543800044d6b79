//! Which providers there are and whether they have a key, for people. No key is in it.

/// A provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderOverview {
    /// What comes before the `/` in a model's name.
    pub name: String,
    /// Its address without secrets.
    pub url: String,
    /// Where its key comes from.
    pub key: KeyState,
}

/// Where a key comes from, and whether it is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyState {
    /// The provider needs none.
    NotNeeded,
    /// An environment variable.
    Variable {
        name: String,
        is_set: bool,
        /// Whether the provider cannot be asked without it.
        needed: bool,
    },
    /// What a command prints when it is needed.
    Command,
    /// The program that uses this library has set it.
    Given,
}

impl KeyState {
    /// Whether the provider can be asked, as far as its key goes.
    pub fn is_usable(&self) -> bool {
        match self {
            KeyState::Variable { is_set, needed, .. } => *is_set || !needed,
            KeyState::NotNeeded | KeyState::Command | KeyState::Given => true,
        }
    }
}
