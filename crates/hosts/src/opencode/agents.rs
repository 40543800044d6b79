//! The agents of one OpenCode.

use std::sync::Mutex;

use asyncagents_core::{lock::lock, port::HostError};

use super::{api::Api, wire::Agent};

/// The agents of one OpenCode, as it last listed them.
pub(super) struct Agents {
    api: Api,
    listed: Mutex<Vec<Agent>>,
}

impl Agents {
    pub(super) fn new(api: Api) -> Self {
        let listed = Mutex::default();
        Self { api, listed }
    }

    /// Asks for the agents that a task may be given to.
    pub(super) async fn list(&self) -> Result<Vec<Agent>, HostError> {
        let mut agents = self.api.agents().await?;
        agents.retain(|agent| !agent.hidden);
        lock(&self.listed).clone_from(&agents);
        Ok(agents)
    }

    /// An agent. OpenCode is asked only about those it has not listed before.
    pub(super) async fn find(&self, name: &str) -> Result<Option<Agent>, HostError> {
        let find = |agents: &[Agent]| agents.iter().find(|agent| agent.name == name).cloned();
        let listed = find(&lock(&self.listed));
        match listed {
            Some(agent) => Ok(Some(agent)),
            None => Ok(find(&self.list().await?)),
        }
    }
}
