//! The sessions that a client has open.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use asyncagents_core::{id::SessionId, lock::lock};

use super::{AgentError, session::Session};

/// The sessions that a client has open. Clones are the same.
#[derive(Clone, Default)]
pub struct OpenSessions(Arc<Mutex<HashMap<SessionId, Arc<Session>>>>);

impl OpenSessions {
    /// The open session of this name.
    pub(super) fn get(&self, session: &SessionId) -> Result<Arc<Session>, AgentError> {
        let found = lock(&self.0).get(session).cloned();
        found.ok_or_else(|| AgentError::NotOpen(session.clone()))
    }

    /// Opens a session. One that is open stays as it is.
    pub(super) fn open(&self, session: Arc<Session>) -> Arc<Session> {
        let mut open = lock(&self.0);
        open.entry(session.id.clone()).or_insert(session).clone()
    }

    pub(super) fn close(&self, session: &SessionId) -> Option<Arc<Session>> {
        lock(&self.0).remove(session)
    }
}
