//! The agents of each folder, as OpenCode last listed them. A model waits only for the first list.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use asyncagents_core::lock::lock;
use tokio::{task::JoinSet, time};

use crate::hosts::Bridges;

/// How long a request to a model waits for the list of agents.
const AGENTS_TIMEOUT: Duration = Duration::from_millis(4_500);
/// A list of agents that is older is refreshed in the background.
const AGENTS_MAX_AGE: Duration = Duration::from_secs(5);

/// The agents of each folder.
pub(super) struct Agents {
    bridges: Arc<Bridges>,
    lists: Arc<Lists>,
    /// Refreshes lists in the background.
    refreshing: Mutex<JoinSet<()>>,
}

#[derive(Default)]
struct Lists(Mutex<HashMap<String, Listed>>);

#[derive(Clone)]
struct Listed {
    at: time::Instant,
    /// A line for each, as models are shown them.
    agents: Vec<String>,
}

impl Lists {
    fn get(&self, directory: &str) -> Option<Listed> {
        lock(&self.0).get(directory).cloned()
    }

    async fn refresh(&self, directory: &str, bridges: &Bridges) {
        match bridges.agents_in(directory).await {
            Ok(agents) => {
                let at = time::Instant::now();
                let listed = Listed { at, agents };
                lock(&self.0).insert(directory.to_owned(), listed);
            }
            Err(error) => tracing::warn!(%error, "cannot list the agents of OpenCode"),
        }
    }
}

impl Agents {
    pub(super) fn new(bridges: Arc<Bridges>) -> Self {
        Self {
            bridges,
            lists: Arc::default(),
            refreshing: Mutex::default(),
        }
    }

    /// Refreshes the list of a folder in the background.
    pub(super) fn refresh(&self, directory: &str) {
        let (lists, bridges) = (self.lists.clone(), self.bridges.clone());
        let directory = directory.to_owned();
        let mut refreshing = lock(&self.refreshing);
        while refreshing.try_join_next().is_some() {}
        refreshing.spawn(async move { lists.refresh(&directory, &bridges).await });
    }

    /// The agents of a folder; nothing if OpenCode is too slow.
    pub(super) async fn of(&self, directory: &str) -> Vec<String> {
        if let Some(listed) = self.lists.get(directory) {
            if listed.at.elapsed() > AGENTS_MAX_AGE {
                self.refresh(directory);
            }
            return listed.agents;
        }
        let listing = self.lists.refresh(directory, &self.bridges);
        if time::timeout(AGENTS_TIMEOUT, listing).await.is_err() {
            tracing::warn!("timed out listing the agents of OpenCode");
        }
        let listed = self.lists.get(directory);
        listed.map_or_else(Vec::new, |listed| listed.agents)
    }
}
