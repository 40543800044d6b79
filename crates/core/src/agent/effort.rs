//! How hard a model thinks.

use crate::words::words;

/// How long a model thinks before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effort {
    /// Briefly.
    Low,
    /// As long as most questions need.
    Medium,
    /// Thoroughly.
    High,
}

// The words are those of every protocol too.
words! {
    Effort { Low = "low", Medium = "medium", High = "high" }
}

impl Effort {
    /// By its word. What some models have above `high` is `high` to all others.
    pub fn named(word: &str) -> Option<Self> {
        let word = word.trim().to_lowercase();
        let above = matches!(word.as_str(), "xhigh" | "max").then_some(Effort::High);
        Self::of_word(&word).or(above)
    }
}
