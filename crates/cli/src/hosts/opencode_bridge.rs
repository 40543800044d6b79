//! The OpenCode that this process is the bridge of, one entry for each of its folders.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use asyncagents_core::{
    host_ref::{HostRef, HostSetup},
    lock::lock,
    port::{Host, HostError},
};
use asyncagents_hosts::{
    opencode::{self, OpenCode},
    plugin::BridgeConnection,
};
use asyncagents_runtime::SystemClock;

use super::HostKind;
use crate::folders::opencode_data;

/// The folders of one OpenCode. Without any, this process is no bridge.
#[derive(Default)]
pub(crate) struct Bridges {
    instances: Mutex<HashMap<String, Bridged>>,
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

    /// The OpenCode in a folder.
    pub(crate) fn in_folder(&self, directory: &str) -> Option<Arc<OpenCode>> {
        let instances = lock(&self.instances);
        let bridged = instances.get(directory);
        bridged.map(|bridged| bridged.opencode.clone())
    }

    /// The OpenCode of this name.
    pub(crate) fn named(&self, host: &HostRef) -> Option<Arc<OpenCode>> {
        let instances = lock(&self.instances);
        let bridged = instances.values().find(|bridged| bridged.host == *host);
        bridged.map(|bridged| bridged.opencode.clone())
    }

    /// The process that all of them are.
    pub(crate) fn process(&self) -> Option<String> {
        let instances = lock(&self.instances);
        let bridged = instances.values().next();
        bridged.map(|bridged| bridged.process.clone())
    }
}

impl HostKind for Bridges {
    /// Its own tasks, and those of an OpenCode that had the same sessions and has ended.
    fn serves(&self, host: &HostRef) -> bool {
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
