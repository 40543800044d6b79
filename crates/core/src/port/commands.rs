//! What a skill's own commands are run by.

use async_trait::async_trait;

/// Runs commands of skills, where they can do no harm.
#[async_trait]
pub trait Commands: Send + Sync {
    /// Runs a command and returns what it prints.
    ///
    /// # Errors
    /// With a sentence: it is refused, or has failed.
    async fn run(&self, command: &str) -> Result<String, String>;
}
