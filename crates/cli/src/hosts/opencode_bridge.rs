//! The OpenCode that this process is the bridge of: an OpenCode 1, with an entry for each of its
//! folders, or an OpenCode 2.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use asyncagents_core::{
    host_ref::{HostRef, HostSetup},
    id::SessionId,
    lock::lock,
    port::{Host, HostError},
};
use asyncagents_hosts::{
    opencode::{self, OpenCode},
    plugin::{BridgeConnection, PluginLink},
};
use asyncagents_runtime::SystemClock;

use super::{
    HostKind,
    opencode2_bridge::Bridge2,
    opencode2_transport::{late_background_server, reach},
};
use crate::folders::opencode_data;

/// The folders of one OpenCode. Without any, this process is no bridge.
#[derive(Default)]
pub(crate) struct Bridges {
    instances: Mutex<HashMap<String, Bridged>>,
    pub(crate) opencode2: Bridge2,
}

struct Bridged {
    host: HostRef,
    process: String,
    opencode: Arc<OpenCode>,
}

impl Bridges {
    /// Adds an OpenCode in a folder; returns its name.
    pub(crate) fn connect(&self, instance: Arc<BridgeConnection>, prefix: &str) -> HostRef {
        let directory = instance.directory().to_owned();
        let process = opencode::process::identity(instance.pid());
        let host = HostRef::OpenCodeBridge {
            folder: directory.as_str().into(),
            process: process.as_str().into(),
            data: opencode_data().into(),
        };
        let mut instances = lock(&self.instances);
        instances.entry(directory).or_insert_with(|| {
            let settings = opencode::Settings {
                prefix: prefix.to_owned(),
                began: instance.began(),
            };
            Bridged {
                host: host.clone(),
                process,
                opencode: Arc::new(OpenCode::new(instance, Arc::new(SystemClock), settings)),
            }
        });
        host
    }

    /// An OpenCode 2 is there, with all its folders.
    ///
    /// # Errors
    /// When it cannot be reached.
    pub(crate) async fn connect_opencode2(
        &self,
        link: Arc<PluginLink>,
        prefix: &str,
    ) -> Result<(), HostError> {
        if !self.opencode2.is_connected() {
            let connected = reach(link).await?;
            self.opencode2.connect(connected, prefix);
        }
        Ok(())
    }

    /// Goes over to HTTP, if the OpenCode 2 that is reached through its plugin turns out to be a
    /// background server. True if it does so now.
    pub(crate) fn look_for_background_server(&self) -> bool {
        self.opencode2.replace_relay(late_background_server)
    }

    /// The agents that a task may be given to in a folder, a line for each.
    ///
    /// # Errors
    /// When OpenCode does not say.
    pub(crate) async fn agents_in(&self, directory: &str) -> Result<Vec<String>, HostError> {
        let line = |name: &str, about: &str| match about {
            "" => format!("- {name}"),
            about => format!("- {name}: {about}"),
        };
        if let Some(host) = self.in_folder(directory) {
            let agents = host.agent_notes().await?;
            let lines = agents.iter().map(|agent| line(&agent.name, &agent.about));
            return Ok(lines.collect());
        }
        let Some((_, host)) = self.opencode2.in_folder(directory) else {
            return Ok(Vec::new());
        };
        let agents = host.agent_notes(Some(directory)).await?;
        let lines = agents.iter().map(|agent| line(&agent.name, &agent.about));
        Ok(lines.collect())
    }

    /// Notes that a session is used.
    pub(crate) fn wake(&self, directory: &str, session: &SessionId) {
        if let Some(host) = self.in_folder(directory) {
            host.wake(session);
        } else if let Some((_, host)) = self.opencode2.in_folder(directory) {
            host.wake(session);
        }
    }

    /// The OpenCode 1 in a folder.
    fn in_folder(&self, directory: &str) -> Option<Arc<OpenCode>> {
        let instances = lock(&self.instances);
        let bridged = instances.get(directory);
        bridged.map(|bridged| bridged.opencode.clone())
    }

    /// The OpenCode 1 of this name.
    pub(crate) fn named(&self, host: &HostRef) -> Option<Arc<OpenCode>> {
        let instances = lock(&self.instances);
        let bridged = instances.values().find(|bridged| bridged.host == *host);
        bridged.map(|bridged| bridged.opencode.clone())
    }

    /// The process that all of them are, if what worked in it ends with it.
    pub(crate) fn process_to_end_with(&self) -> Option<String> {
        let instances = lock(&self.instances);
        let bridged = instances.values().next();
        let process = bridged.map(|bridged| bridged.process.clone());
        process.or_else(|| self.opencode2.process_to_end_with())
    }
}

impl HostKind for Bridges {
    /// Its own tasks, and those of an OpenCode that had the same sessions and has ended.
    fn serves(&self, host: &HostRef) -> bool {
        if let HostRef::OpenCode2Bridge { .. } = host {
            return self.opencode2.serves(host);
        }
        let HostRef::OpenCodeBridge {
            folder,
            process,
            data,
        } = host
        else {
            return false;
        };
        match lock(&self.instances).get(&**folder) {
            Some(bridged) if bridged.host == *host => true,
            Some(_) => **data == *opencode_data() && !opencode::process::is_alive(process),
            None => false,
        }
    }

    /// The OpenCode of its folder, if it is another that has ended.
    fn successor(&self, host: &HostRef) -> Option<HostRef> {
        let HostRef::OpenCodeBridge { folder, .. } = host else {
            return None;
        };
        if !self.serves(host) {
            return None;
        }
        let instances = lock(&self.instances);
        let here = instances.get(&**folder)?.host.clone();
        (here != *host).then_some(here)
    }

    fn open(&self, setup: &HostSetup) -> Result<Arc<dyn Host>, HostError> {
        let HostRef::OpenCodeBridge {
            folder, process, ..
        } = &setup.host
        else {
            return Err(super::wrong_kind(&setup.host));
        };
        let instances = lock(&self.instances);
        let why = match instances.get(&**folder) {
            Some(bridged) if bridged.host == setup.host => return Ok(bridged.opencode.clone()),
            Some(bridged) => return Ok(Arc::new(bridged.opencode.successor())),
            None if !instances.is_empty() => "its OpenCode is not here",
            None if opencode::process::is_alive(process) => {
                "only its OpenCode knows the conversation; ask there"
            }
            None => "its OpenCode is not running any more",
        };
        Err(HostError::Unreachable(why.to_owned()))
    }
}
