//! Other agents' names for the agents that are always there.

/// Claude Code's agents, and who does their work here. An agent of that name comes first, whose
/// ever it is.
const ALIASES: &[(&str, &str)] = &[
    ("general-purpose", "general"),
    ("claude", "general"),
    ("bash", "general"),
    // They change Claude Code's own settings, which are files like others.
    ("statusline-setup", "general"),
    ("output-style-setup", "general"),
    ("claude-code-guide", "explore"),
];

/// The agent that is meant by a name: the one that has it, in whatever case of letters, or the
/// one that does the work of an agent that Claude Code has by that name.
pub fn agent_meant<'k>(asked: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let known: Vec<&str> = known.into_iter().collect();
    let exact = |name: &str| known.iter().find(|agent| **agent == name).copied();
    let alike = |name: &str| {
        let name = name.to_lowercase();
        let mut known = known.iter().copied();
        known.find(|agent| agent.to_lowercase() == name)
    };
    let asked = asked.trim();
    let other = || {
        let mut aliases = ALIASES.iter();
        let meant = aliases.find(|(alias, _)| alias.eq_ignore_ascii_case(asked));
        meant.and_then(|(_, agent)| alike(agent))
    };
    exact(asked).or_else(|| alike(asked)).or_else(other)
}
