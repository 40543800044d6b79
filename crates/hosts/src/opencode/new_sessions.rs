//! Sessions that were made a moment ago: what they are is known, and that nothing is in them.

use std::{collections::VecDeque, sync::Mutex};

use asyncagents_core::{id::SessionId, lock::lock};

use super::wire::Session;

/// More than are ever between their making and their prompt; the oldest is asked about instead.
const MOST: usize = 256;

#[derive(Default)]
pub(super) struct NewSessions(Mutex<VecDeque<NewSession>>);

struct NewSession {
    session: Session,
    /// Nothing was put into it.
    empty: bool,
}

impl NewSessions {
    /// Notes a session that OpenCode has just made.
    pub(super) fn made(&self, session: Session) {
        let mut all = lock(&self.0);
        if all.len() >= MOST {
            all.pop_front();
        }
        let empty = true;
        all.push_back(NewSession { session, empty });
    }

    /// The session, if nothing was put into it; the caller does so now.
    pub(super) fn fill(&self, id: &SessionId) -> Option<Session> {
        let mut all = lock(&self.0);
        let new = all.iter_mut().find(|new| new.session.id == id.as_str())?;
        std::mem::take(&mut new.empty).then(|| new.session.clone())
    }

    /// The session, if it was not set to work; the caller does so now.
    pub(super) fn set_to_work(&self, id: &SessionId) -> Option<Session> {
        let mut all = lock(&self.0);
        let at = all.iter().position(|new| new.session.id == id.as_str())?;
        all.remove(at).map(|new| new.session)
    }
}
