//! How hard a model thinks.

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

impl Effort {
    /// The words for it, in every protocol too.
    pub const ALL: [(&'static str, Effort); 3] = [
        ("low", Effort::Low),
        ("medium", Effort::Medium),
        ("high", Effort::High),
    ];

    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Effort::Low => "low",
            Effort::Medium => "medium",
            Effort::High => "high",
        }
    }

    /// By its word. What some models have above `high` is `high` to all others.
    pub fn named(word: &str) -> Option<Self> {
        let word = word.trim().to_lowercase();
        let known = Self::ALL.iter().find(|(name, _)| *name == word);
        let above = matches!(word.as_str(), "xhigh" | "max").then_some(Effort::High);
        known.map(|(_, effort)| *effort).or(above)
    }
}
