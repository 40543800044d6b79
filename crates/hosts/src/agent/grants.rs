//! What a person has allowed for good. It is kept here and never handed to an agent, which would write
//! it into settings that count elsewhere too, and would not ask the user's rules any more.

use std::{collections::HashMap, sync::Mutex};

use asyncagents_core::{agent::Kind, id::SessionId, lock::lock};

use super::AskedCall;

/// What a person has allowed for good in each session, as long as this process lives.
#[derive(Default)]
pub(super) struct Grants(Mutex<HashMap<SessionId, Vec<Grant>>>);

/// What `always` covers: what is done with files of the folder, or this use of a tool alone. Programs
/// are allowed one by one, and so is what has to be asked each time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Grant {
    Kind(Kind),
    Use(AskedCall),
}

impl Grants {
    pub(super) fn has(&self, session: &SessionId, grant: &Grant) -> bool {
        let sessions = lock(&self.0);
        let granted = sessions.get(session);
        granted.is_some_and(|granted| granted.contains(grant))
    }

    pub(super) fn add(&self, session: &SessionId, grant: Grant) {
        let mut sessions = lock(&self.0);
        sessions.entry(session.clone()).or_default().push(grant);
    }

    /// The session is gone.
    pub(super) fn forget(&self, session: &SessionId) {
        lock(&self.0).remove(session);
    }
}

impl Grant {
    /// What `always` would cover of a call.
    pub(super) fn of(call: &AskedCall, each: bool) -> Self {
        match call.kind {
            Some(kind @ (Kind::Read | Kind::Edit)) if !each => Grant::Kind(kind),
            _ => Grant::Use(call.clone()),
        }
    }

    /// What it covers, for people.
    pub(super) fn covers(&self) -> &'static str {
        match self {
            Grant::Kind(Kind::Edit) => "every change to files of its folder, in this task",
            Grant::Kind(_) => "whatever it reads in its folder, in this task",
            Grant::Use(_) => "exactly this, in this task",
        }
    }
}
