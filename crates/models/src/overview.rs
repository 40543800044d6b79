//! Who could be asked, for people. No key is in it.

/// A provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderOverview {
    /// What comes before the `/` in a model's name.
    pub name: String,
    /// Where it is, without what may be secret.
    pub url: String,
    /// Where its key comes from.
    pub key: KeyState,
}

/// Where a key comes from, and whether it is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyState {
    /// It needs none.
    NotNeeded,
    /// An environment variable.
    Variable {
        /// Its name.
        name: String,
        /// It has a value.
        is_set: bool,
        /// Without it the provider is not asked.
        needed: bool,
    },
    /// What a command prints when it is needed.
    Command,
    /// The program that uses this has given it.
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
