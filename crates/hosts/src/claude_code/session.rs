//! What we call a session of Claude Code: by its ID, a sub-agent's by that and its own.

use asyncagents_core::id::SessionId;

use crate::jsonl::is_id;

/// A session, or a sub-agent in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionName {
    pub session: String,
    pub agent: Option<String>,
}

impl SessionName {
    /// A session, or a sub-agent in it. Nothing if these are no IDs: they become names of files.
    pub fn new(session: &str, agent: Option<&str>) -> Option<Self> {
        if !is_id(session) || !agent.is_none_or(is_id) {
            return None;
        }
        Some(Self {
            session: session.to_owned(),
            agent: agent.map(str::to_owned),
        })
    }

    /// Reads what [`SessionName::id`] has written.
    pub fn parse(id: &SessionId) -> Option<Self> {
        Self::parse_text(id.as_str())
    }

    /// Reads `SESSION` or `SESSION/AGENT`.
    pub fn parse_text(id: &str) -> Option<Self> {
        match id.split_once('/') {
            Some((session, agent)) => Self::new(session, Some(agent)),
            None => Self::new(id, None),
        }
    }

    /// The session as tasks name it.
    pub fn id(&self) -> SessionId {
        match &self.agent {
            Some(agent) => format!("{}/{agent}", self.session).as_str().into(),
            None => self.session.as_str().into(),
        }
    }
}
