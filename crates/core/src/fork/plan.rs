//! How a child is to inherit its parent's conversation.

use super::Limits;
use crate::words::words;

/// How a child is to inherit its parent's conversation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// What is kept of it.
    pub limits: Limits,
    /// In what form it is passed on.
    pub mode: Mode,
    /// The parent's message that asked for the fork, where the host says which it is. What
    /// came after it is not inherited, however long the task waited for a slot.
    pub asked_in: Option<String>,
}

/// In what form a conversation is passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// As one text.
    #[default]
    Transcript,
    /// As messages of the child's own session, in hosts that can do that.
    Messages,
}

words! {
    Mode { Transcript = "transcript", Messages = "messages" }
}
