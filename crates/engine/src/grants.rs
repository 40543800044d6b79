//! What a person has allowed for good.

use std::{
    collections::{HashMap, HashSet},
    sync::Mutex,
};

use asyncagents_core::{id::TaskId, lock::lock, port::Session};

/// What a person has allowed for good, as long as this process lives.
#[derive(Default)]
pub(crate) struct Grants(Mutex<HashMap<Scope, HashSet<Grant>>>);

/// Where a grant counts. One process may work on the tasks of many callers: who answers a task
/// from elsewhere does not see the others.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Scope {
    Process,
    /// A task that a person's session has launched, and all tasks below it.
    Tree(TaskId),
}

impl Grants {
    /// Whether something is granted in this process, or in a tree of tasks.
    pub(crate) fn has(&self, grant: &Grant, tree: Option<&TaskId>) -> bool {
        let scopes = lock(&self.0);
        let tree = tree.map(|task| Scope::Tree(task.clone()));
        let mut covering = tree.into_iter().chain([Scope::Process]);
        covering.any(|scope| scopes.get(&scope).is_some_and(|own| own.contains(grant)))
    }

    pub(crate) fn add(&self, grant: Grant, scope: Scope) {
        lock(&self.0).entry(scope).or_default().insert(grant);
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

    /// What it covers, for people.
    pub(crate) fn covers(&self, whereabouts: &str) -> String {
        match self {
            Grant::Tool(tool) => format!("every {tool} in {whereabouts}"),
            Grant::Use { .. } => "exactly this".to_owned(),
        }
    }
}
