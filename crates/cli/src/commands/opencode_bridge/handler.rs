//! Answers what the plugin asks.

use std::{
    collections::HashMap,
    path::Path,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use asyncagents_core::{
    agent::{ToolOutcome, ToolSpec, Tools},
    host_ref::HostRef,
    id::SessionId,
    lock::lock,
    tool_set,
};
use asyncagents_hosts::plugin::{
    Answer, Bounds, BridgeConnection, BridgeHandler, PluginLink, ToolCall,
};
use asyncagents_runtime::{Manager, ToolDoor};
use tokio::task::spawn_blocking;

use super::agents::Agents;
use crate::{
    hosts::{Bridges, KnownHosts},
    launch_secrets::Overrides,
};

pub(super) struct PluginHandler {
    manager: Manager,
    hosts: Arc<KnownHosts>,
    /// Settings of the built-in agent and of skills that the environment and the flags override.
    overrides: Overrides,
    bridges: Arc<Bridges>,
    prefix: String,
    doors: Mutex<HashMap<String, Arc<ToolDoor>>>,
    agents: Agents,
}

impl PluginHandler {
    pub(super) fn new(
        manager: Manager,
        hosts: Arc<KnownHosts>,
        overrides: Overrides,
        bridges: Arc<Bridges>,
    ) -> Self {
        Self {
            prefix: manager.settings().wording.prefix.clone(),
            manager,
            hosts,
            overrides,
            agents: Agents::new(bridges.clone()),
            bridges,
            doors: Mutex::default(),
        }
    }

    /// Opens the door of a folder, with the skills that are there now.
    fn open_door(&self, directory: &str, host: HostRef) -> Arc<ToolDoor> {
        let mut door = ToolDoor::new(&self.manager, host.into());
        match self.hosts.skills_in(Path::new(directory), &self.overrides) {
            Ok(skills) => door = door.with_skills(skills),
            Err(error) => tracing::warn!(error = format!("{error:#}"), "cannot load skills"),
        }
        let door = Arc::new(door);
        lock(&self.doors).insert(directory.to_owned(), door.clone());
        door
    }

    /// The door of a folder. An OpenCode 2 names its folders when it calls from them.
    fn door(&self, directory: &str) -> Option<Arc<ToolDoor>> {
        let known = lock(&self.doors).get(directory).cloned();
        known.or_else(|| {
            let (host, _) = self.bridges.opencode2.in_folder(directory)?;
            Some(self.open_door(directory, host))
        })
    }
}

#[async_trait]
impl BridgeHandler for PluginHandler {
    async fn hello(&self, instance: Arc<BridgeConnection>) -> Vec<ToolSpec> {
        let directory = instance.directory().to_owned();
        let host = self.bridges.connect(instance, &self.prefix);
        tracing::info!(%host, "OpenCode connected");
        self.open_door(&directory, host);
        self.agents.refresh(&directory);
        self.manager.look_again();
        tool_set::specs_with_skill(&self.prefix, None)
    }

    async fn hello_opencode2(&self, opencode: Arc<PluginLink>) -> Result<Vec<ToolSpec>, String> {
        let known = self.bridges.connect_opencode2(opencode, &self.prefix).await;
        known.map_err(|error| error.to_string())?;
        // Settings and skills may have changed since.
        lock(&self.doors).clear();
        self.manager.look_again();
        Ok(tool_set::specs_with_skill(&self.prefix, None))
    }

    async fn tools(&self, directory: &str) -> Vec<ToolSpec> {
        // Models are shown the tools before they call one.
        if self.bridges.look_for_background_server() {
            lock(&self.doors).clear();
            self.manager.look_again();
        }
        let door = self.door(directory);
        let disclosed = spawn_blocking(move || door?.disclosed()).await;
        let disclosed = disclosed.ok().flatten();
        let mut tools = tool_set::specs_with_skill(&self.prefix, disclosed.as_deref());
        let agents = self.agents.of(directory).await;
        if let Some(task) = tools.first_mut().filter(|_| !agents.is_empty()) {
            let list = format!("\n\nAgents:\n{}", agents.join("\n"));
            task.description.push_str(&list);
        }
        tools
    }

    async fn call(&self, call: ToolCall) -> Result<Answer, String> {
        let Some(door) = self.door(&call.directory) else {
            return Err(format!("asyncagents does not know {}", call.directory));
        };
        // A project may lower limits, so one whose file cannot be read launches nothing.
        self.hosts
            .project_in(Path::new(&call.directory))
            .map_err(|error| format!("{error:#}"))?;
        self.bridges.wake(&call.directory, &call.session);
        let prepared = tool_set::prepare(&self.prefix, &call.tool, &call.input)
            .map_err(|error| error.to_string())?;
        let title = Some(prepared.request.title().to_owned()).filter(|title| !title.is_empty());
        let answered = door.call_from(&call.session, call.message, prepared.request);
        match answered.await.outcome {
            ToolOutcome::Done(output) => Ok(Answer { output, title }),
            ToolOutcome::Failed(why) => Err(why),
            ToolOutcome::Unknown => Err("what came of it is not known".to_owned()),
        }
    }

    async fn bounds(&self, session: &SessionId) -> Result<Bounds, String> {
        let found = self.manager.bounds(session).await;
        let found = found.map_err(|problem| problem.to_string())?;
        // In a session of ours without a task one question is asked, and nothing is done.
        let (may_delegate, tools) = found.map_or_else(
            || (false, vec![nothing()]),
            |bounds| (bounds.may_delegate, bounds.tools),
        );
        Ok(Bounds {
            prefix: self.prefix.clone(),
            may_delegate,
            tools,
        })
    }

    async fn goodbye(&self, directory: &str) {
        tracing::info!(directory, "OpenCode closed a folder");
    }

    async fn goodbye_opencode2(&self) {
        tracing::info!("OpenCode 2 closed its last folder");
    }
}

/// No tool at all.
fn nothing() -> Tools {
    Tools {
        only: Some(Vec::new()),
        ..Tools::default()
    }
}
