//! The agents of one OpenCode, in each folder.

use std::{collections::HashMap, sync::Mutex, time::Duration};

use asyncagents_core::{lock::lock, port::HostError};
use tokio::time;

use super::{api::Api, wire::Agent};

/// Right after the first request about a folder OpenCode has no agents there, until the folder's
/// plugins are loaded.
const LOAD_TIMEOUT: Duration = Duration::from_secs(5);
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// So many folders are remembered.
const FOLDERS: usize = 256;

/// The agents of one OpenCode, as it last listed them.
pub(super) struct Agents {
    api: Api,
    listed: Mutex<HashMap<Option<String>, Vec<Agent>>>,
}

impl Agents {
    pub(super) fn new(api: Api) -> Self {
        let listed = Mutex::default();
        Self { api, listed }
    }

    /// Asks for the agents that a task may be given to.
    pub(super) async fn list(&self, folder: Option<&str>) -> Result<Vec<Agent>, HostError> {
        let mut agents = self.loaded(folder).await?;
        agents.retain(|agent| !agent.hidden);
        let mut listed = lock(&self.listed);
        if listed.len() >= FOLDERS {
            listed.clear();
        }
        listed.insert(folder.map(str::to_owned), agents.clone());
        Ok(agents)
    }

    /// An agent. OpenCode is asked only about those it has not listed before.
    pub(super) async fn find(
        &self,
        folder: Option<&str>,
        name: &str,
    ) -> Result<Option<Agent>, HostError> {
        let find = |agents: &[Agent]| agents.iter().find(|agent| agent.id == name).cloned();
        let key = folder.map(str::to_owned);
        let listed = lock(&self.listed).get(&key).and_then(|agents| find(agents));
        match listed {
            Some(agent) => Ok(Some(agent)),
            None => Ok(find(&self.list(folder).await?)),
        }
    }

    async fn loaded(&self, folder: Option<&str>) -> Result<Vec<Agent>, HostError> {
        let deadline = time::Instant::now() + LOAD_TIMEOUT;
        let mut pause = FIRST_PAUSE;
        loop {
            let agents = self.api.agents(folder).await?;
            if !agents.is_empty() || time::Instant::now() + pause > deadline {
                return Ok(agents);
            }
            time::sleep(pause).await;
            pause *= 2;
        }
    }
}
