//! The toolboxes of sessions, with what they know of files: of those that are driven, and of the ones
//! that were last. One that has gone is made again, and its model has to read a file before it
//! changes it, as after the end of the process.

use std::{
    collections::{HashMap, VecDeque},
    io,
    sync::Mutex,
};

use asyncagents_core::{id::SessionId, lock::lock};
use asyncagents_tools::Toolbox;

/// How many sessions that are not driven keep theirs: a process may drive very many in its time.
pub(crate) const MOST_IDLE: usize = 128;

#[derive(Default)]
pub(crate) struct Toolboxes(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    toolboxes: HashMap<SessionId, Toolbox>,
    /// The sessions that are not driven, the one that ended first first.
    idle: VecDeque<SessionId>,
}

impl Toolboxes {
    /// The toolbox of a session that is driven from now on.
    pub(crate) fn open(
        &self,
        session: &SessionId,
        make: impl FnOnce() -> io::Result<Toolbox>,
    ) -> io::Result<Toolbox> {
        let mut kept = lock(&self.0);
        kept.idle.retain(|idle| idle != session);
        if let Some(known) = kept.toolboxes.get(session) {
            return Ok(known.clone());
        }
        let made = make()?;
        kept.toolboxes.insert(session.clone(), made.clone());
        Ok(made)
    }

    /// A session is not driven any more. Returns the one that had to make room, if there is one.
    pub(crate) fn rest(&self, session: &SessionId) -> Option<SessionId> {
        let mut kept = lock(&self.0);
        if !kept.toolboxes.contains_key(session) {
            return None;
        }
        kept.idle.retain(|idle| idle != session);
        kept.idle.push_back(session.clone());
        if kept.idle.len() <= MOST_IDLE {
            return None;
        }
        let oldest = kept.idle.pop_front()?;
        kept.toolboxes.remove(&oldest);
        Some(oldest)
    }

    /// Drops the toolbox of a session.
    pub(crate) fn forget(&self, session: &SessionId) {
        let mut kept = lock(&self.0);
        kept.toolboxes.remove(session);
        kept.idle.retain(|idle| idle != session);
    }
}

#[cfg(test)]
mod tests {
    use asyncagents_core::id::SessionId;
    use asyncagents_tools::{Settings, Toolbox};

    use super::{MOST_IDLE, Toolboxes};

    fn name(number: usize) -> SessionId {
        SessionId::from(format!("ses_{number}"))
    }

    /// Whether the toolbox of a session had to be made.
    fn is_made(toolboxes: &Toolboxes, toolbox: &Toolbox, session: &SessionId) -> bool {
        let mut is_made = false;
        let opened = toolboxes.open(session, || {
            is_made = true;
            Ok(toolbox.clone())
        });
        opened.expect("opened");
        is_made
    }

    #[test]
    fn the_last_sessions_and_those_that_are_driven_keep_what_they_know() {
        let folder = tempfile::tempdir().expect("a folder");
        let toolbox = Toolbox::new(Settings::new(folder.path(), "true")).expect("a toolbox");
        let toolboxes = Toolboxes::default();
        let driven = name(usize::MAX);
        assert!(is_made(&toolboxes, &toolbox, &driven));
        let many = MOST_IDLE * 3;
        for number in 0..many {
            assert!(is_made(&toolboxes, &toolbox, &name(number)));
            let gone = toolboxes.rest(&name(number));
            assert_eq!(gone, number.checked_sub(MOST_IDLE).map(name));
        }
        assert!(!is_made(&toolboxes, &toolbox, &driven), "it is driven");
        assert!(!is_made(&toolboxes, &toolbox, &name(many - 1)));
        assert!(!is_made(&toolboxes, &toolbox, &name(many - MOST_IDLE)));
        assert!(is_made(&toolboxes, &toolbox, &name(many - MOST_IDLE - 1)));
        // Driven again, it does not make room for others.
        for number in many..many * 2 {
            is_made(&toolboxes, &toolbox, &name(number));
            toolboxes.rest(&name(number));
        }
        assert!(!is_made(&toolboxes, &toolbox, &name(many - 1)));
        toolboxes.forget(&name(many - 1));
        assert!(is_made(&toolboxes, &toolbox, &name(many - 1)), "deleted");
    }
}
