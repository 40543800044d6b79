//! What a person has allowed for good.

use std::{collections::HashSet, sync::Mutex};

use asyncagents_core::{lock::lock, port::Session};

/// What a person has allowed for good, as long as this process lives.
#[derive(Default)]
pub(crate) struct Grants(Mutex<HashSet<Grant>>);

impl Grants {
    pub(crate) fn has(&self, grant: &Grant) -> bool {
        lock(&self.0).contains(grant)
    }

    pub(crate) fn add(&self, grant: Grant) {
        lock(&self.0).insert(grant);
    }
}

/// What `always` covers: a whole tool, or this use of it alone. Programs are allowed one by
/// one, and so is what a rule wants to be asked for every time.
#[derive(PartialEq, Eq, Hash)]
pub(crate) enum Grant {
    Tool(String),
    /// The same words mean something else in another folder.
    Use {
        folder: String,
        tool: String,
        target: String,
    },
}

impl Grant {
    pub(crate) fn of_use(session: &Session, tool: &str, target: &str) -> Self {
        Grant::Use {
            folder: session.workspace.clone(),
            tool: tool.to_owned(),
            target: target.to_owned(),
        }
    }
}
