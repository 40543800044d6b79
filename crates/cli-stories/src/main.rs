//! The command `asyncagents` with one more kind of host, `--host scripted[:FILE]`: tasks from the
//! shell, with real processes and a real database, that ask no model.

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use anyhow::Context;
use asyncagents::{ExtraHostKind, HostKind, Overrides};
use asyncagents_core::{
    digest::digest,
    host_ref::{HostRef, HostSetup},
    port::{Host, HostError},
};
use asyncagents_runtime::SystemClock;
use asyncagents_testkit::scripted_host::{Script, ScriptedHost, Step, World};

const SCRIPTED: ExtraHostKind = ExtraHostKind {
    word: "scripted",
    make: |db| Box::new(ScriptedHosts { db: db.to_owned() }),
};

fn main() -> ExitCode {
    asyncagents::main(&[SCRIPTED])
}

/// Hosts that play a script, with their sessions in a folder beside the database.
struct ScriptedHosts {
    db: PathBuf,
}

impl HostKind for ScriptedHosts {
    /// A digest of the script's text is part of the name: one that was edited is another host.
    fn named(&self, rest: Option<&str>, _: &Overrides) -> anyhow::Result<HostSetup> {
        let Some(file) = rest else {
            return Ok(HostRef::from("scripted").into());
        };
        let named = || format!("--host scripted:{file}");
        let path = fs::canonicalize(file).with_context(named)?;
        let text = fs::read_to_string(&path).with_context(named)?;
        Script::parse(&text, &path).with_context(named)?;
        let edition = digest(&[&text]) & 0xffff_ffff;
        let name = format!("scripted:{}#{edition:08x}", path.display());
        Ok(HostRef::from(&*name).into())
    }

    fn open(&self, setup: &HostSetup) -> Result<Arc<dyn Host>, HostError> {
        let name = setup.host.to_string();
        let script = match name.split_once(':') {
            // Names from before there were editions have none.
            Some((_, rest)) => {
                let file = rest.rsplit_once('#').map_or(rest, |(file, _)| file);
                Script::load(Path::new(file)).map_err(|error| refused(&error))?
            }
            None => nothing_done(),
        };
        let mut folder = self.db.as_os_str().to_owned();
        folder.push(".sessions");
        let folder = PathBuf::from(folder);
        if folder.is_symlink() {
            let why = format!("{} is a link; it was left alone", folder.display());
            return Err(HostError::Refused(why));
        }
        let world = World::in_folder(&folder).map_err(|error| refused(&error))?;
        let clock = Arc::new(SystemClock);
        Ok(Arc::new(ScriptedHost::new(script, world, clock)))
    }
}

/// What the children do without a script.
fn nothing_done() -> Script {
    let half_a_second = Duration::from_millis(500);
    Script::of([
        Step::Wait(half_a_second),
        Step::Tool {
            name: "think".to_owned(),
            input: "nothing".to_owned(),
        },
        Step::Wait(half_a_second),
        Step::Answer("Nothing was done: this is the scripted host".to_owned()),
    ])
}

fn refused(error: &dyn std::error::Error) -> HostError {
    HostError::Refused(error.to_string())
}
