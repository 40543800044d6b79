//! Why a process could not be restricted.

/// Why a process could not be restricted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unrestricted {
    /// This machine lacks the means.
    #[error("{0}")]
    Lacking(String),
    /// The machine has the means, and they failed.
    #[cfg(target_os = "linux")]
    #[error("{0}")]
    Failed(String),
}

#[cfg(target_os = "linux")]
impl From<landlock::RulesetError> for Unrestricted {
    fn from(error: landlock::RulesetError) -> Self {
        Unrestricted::Failed(format!("Landlock: {error}"))
    }
}

#[cfg(target_os = "linux")]
impl From<rustix::io::Errno> for Unrestricted {
    fn from(error: rustix::io::Errno) -> Self {
        Unrestricted::Failed(format!("giving up rights: {error}"))
    }
}
