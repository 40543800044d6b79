//! An agent, as a model has to know it.

/// An agent, as a model has to know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentNote {
    pub name: String,
    /// What the agent is for.
    pub about: String,
}
