//! The host that plays a script.

use std::{fs, path::Path, sync::Arc};

use anyhow::Context;
use asyncagents_core::{
    digest::digest,
    host_ref::{HostRef, HostSetup, ScriptRef},
    port::{Host, HostError},
};
use asyncagents_testkit::scripted_host::{Script, ScriptedHost, World};

use super::{HostContext, HostKind, Overrides, wrong_kind};
use crate::folders::beside;

/// What its children say without a script: nobody should take it for work.
const NOTHING_DONE: &str = include_str!("../nothing_done.toml");

pub(super) struct ScriptedHosts(pub(super) Arc<HostContext>);

impl HostKind for ScriptedHosts {
    fn named(&self, rest: Option<&str>, _: &Overrides) -> anyhow::Result<HostSetup> {
        let Some(file) = rest else {
            return Ok(HostRef::SCRIPTED.into());
        };
        let named = || format!("--host scripted:{file}");
        let path = fs::canonicalize(file).with_context(named)?;
        let text = fs::read_to_string(&path).with_context(named)?;
        Script::parse(&text, &path).with_context(named)?;
        let edition = format!("{:08x}", digest(&[&text]) & 0xffff_ffff);
        let host = HostRef::Scripted {
            script: Some(ScriptRef {
                file: path.display().to_string().into(),
                edition: edition.into(),
            }),
        };
        Ok(host.into())
    }

    fn open(&self, setup: &HostSetup) -> Result<Arc<dyn Host>, HostError> {
        let HostRef::Scripted { script } = &setup.host else {
            return Err(wrong_kind(&setup.host));
        };
        let refused = |why: String| HostError::Refused(why);
        let script = match script {
            Some(script) => Script::load(Path::new(&*script.file)),
            None => Script::parse(NOTHING_DONE, Path::new("scripted")),
        };
        let script = script.map_err(|error| refused(error.to_string()))?;
        let folder = beside(&self.0.config.db, "sessions");
        if fs::symlink_metadata(&folder).is_ok_and(|found| found.is_symlink()) {
            let why = format!("{} is a link; it was left alone", folder.display());
            return Err(refused(why));
        }
        let world = World::in_folder(&folder).map_err(|error| refused(error.to_string()))?;
        let clock = self.0.clock.clone();
        Ok(Arc::new(ScriptedHost::new(script, world, clock)))
    }
}
