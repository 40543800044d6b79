//! How a child is to inherit its parent's conversation.

use std::{fmt, str::FromStr};

use super::Limits;

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

impl Mode {
    /// Every mode, with the name a user types.
    pub const ALL: &[(&str, Mode)] = &[
        ("transcript", Mode::Transcript),
        ("messages", Mode::Messages),
    ];
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let known = Mode::ALL.iter().find(|(_, mode)| mode == self);
        f.write_str(known.map_or("", |(name, _)| name))
    }
}

impl FromStr for Mode {
    type Err = &'static str;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let known = Mode::ALL.iter().find(|(known, _)| *known == name);
        known.map(|(_, mode)| *mode).ok_or("transcript or messages")
    }
}
