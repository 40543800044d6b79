//! The one place that knows every room: which store, which hosts, which clock.

use std::{
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context, anyhow};
use asyncagents_core::{
    id::HostKey,
    port::{Clock, Host, HostError},
};
use asyncagents_hosts::scripted::{Script, ScriptedHost, World};
use asyncagents_runtime::{Hosts, Manager, SystemClock};
use asyncagents_store::Sqlite;

use crate::{config::Config, exit::Failure};

/// What the default host's children say: nobody should take it for work.
const NOTHING_DONE: &str = include_str!("nothing_done.toml");

/// A handle on the tasks in the configured file. Must be called inside a tokio runtime.
pub(crate) fn manager(config: &Config) -> Result<Manager, Failure> {
    let is_empty = fs::metadata(&config.db).is_ok_and(|file| file.len() == 0);
    if is_empty && beside(&config.db, "worker.lock").exists() {
        return Err(Failure::Machine(anyhow!(
            "{} is empty, though it has been in use; it was left as it is. Bring back a copy, or \
             choose another file with --db",
            config.db.display()
        )));
    }
    let store = Sqlite::open(&config.db).map_err(Failure::store)?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let hosts = Arc::new(KnownHosts {
        sessions: beside(&config.db, "sessions"),
        clock: clock.clone(),
    });
    Ok(Manager::new(
        Arc::new(store),
        hosts,
        clock,
        config.runtime(),
    ))
}

/// A file or folder that belongs to the database.
pub(crate) fn beside(db: &Path, what: &str) -> PathBuf {
    let mut name = db.file_name().unwrap_or_default().to_owned();
    name.push(".");
    name.push(what);
    db.with_file_name(name)
}

/// The configured host under the name that any process knows it by.
pub(crate) fn host_key(host: &str) -> anyhow::Result<HostKey> {
    match host.split_once(':') {
        None if host == "scripted" => Ok(host.into()),
        Some(("scripted", file)) => {
            let path = fs::canonicalize(file).with_context(|| format!("--host {host}"))?;
            let text = fs::read_to_string(&path).with_context(|| format!("--host {host}"))?;
            Script::parse(&text, &path).with_context(|| format!("--host {host}"))?;
            // A script that was edited is another host.
            let mut edition = DefaultHasher::new();
            text.hash(&mut edition);
            let edition = edition.finish() & 0xffff_ffff;
            Ok(format!("scripted:{}#{edition:08x}", path.display()).into())
        }
        _ => anyhow::bail!("--host {host}: there are scripted and scripted:FILE"),
    }
}

struct KnownHosts {
    sessions: PathBuf,
    clock: Arc<dyn Clock>,
}

impl Hosts for KnownHosts {
    fn serves(&self, key: &HostKey) -> bool {
        key.as_str() == "scripted" || key.as_str().starts_with("scripted:")
    }

    fn open(&self, key: &HostKey) -> Result<Arc<dyn Host>, HostError> {
        let refused = |error: String| HostError::Refused(error);
        let script = match key.as_str().split_once(':') {
            None => Script::parse(NOTHING_DONE, Path::new("scripted")),
            Some((_, file)) => {
                let file = file.rsplit_once('#').map_or(file, |(file, _)| file);
                Script::load(Path::new(file))
            }
        };
        let script = script.map_err(|error| refused(error.to_string()))?;
        let world = World::in_folder(&self.sessions).map_err(|error| refused(error.to_string()))?;
        Ok(Arc::new(ScriptedHost::new(
            script,
            world,
            self.clock.clone(),
        )))
    }
}
