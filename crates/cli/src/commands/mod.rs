//! The verbs, one file each.

mod cancel;
mod clear;
mod config;
mod fork;
mod list;
mod output;
mod task;
mod worker;

use std::future::Future;

use asyncagents_core::{id::SessionId, request::Caller};
use asyncagents_runtime::Manager;

use crate::{
    args::{Args, Command},
    config::{Config, Loaded, load},
    exit::{Exit, Failure},
    log, wire, worker_process,
};

/// Does what was typed.
pub(crate) fn run(args: Args) -> Result<Exit, Failure> {
    if let Command::Fork(args) = &args.command {
        return fork::run(args);
    }
    let flags = args.settings();
    let loaded = load(&flags).map_err(Failure::Input)?;
    let shell = |quiet| Shell::new(loaded_config(&loaded, quiet)?, flags.clone());
    match &args.command {
        Command::Fork(args) => fork::run(args),
        Command::Task(args) => in_runtime(task::launch(&shell(true)?, args)),
        Command::Resume(args) => in_runtime(task::resume(&shell(true)?, args)),
        Command::List(args) => in_runtime(list::run(&shell(true)?, args)),
        Command::Output(args) => in_runtime(output::run(&shell(true)?, args)),
        Command::Cancel(args) => in_runtime(cancel::run(&shell(true)?, args)),
        Command::Clear(args) => in_runtime(clear::run(&shell(true)?, args)),
        Command::Worker => worker::run(&shell(false)?.config),
        Command::Config(args) => config::run(&loaded, args),
    }
}

fn loaded_config(loaded: &Loaded, quiet: bool) -> Result<Config, Failure> {
    log::begin(&loaded.config, quiet).map_err(Failure::Input)?;
    Ok(loaded.config.clone())
}

/// What the verbs about tasks have in common.
struct Shell {
    config: Config,
    flags: Vec<(String, String)>,
}

impl Shell {
    fn new(mut config: Config, flags: Vec<(String, String)>) -> Result<Self, Failure> {
        let absolute = std::path::absolute(&config.db);
        config.db = absolute.map_err(|error| Failure::Input(error.into()))?;
        Ok(Self { config, flags })
    }

    fn manager(&self) -> Result<Manager, Failure> {
        wire::manager(&self.config)
    }

    /// The session that the shell speaks for.
    fn session(&self) -> SessionId {
        self.config.session.as_str().into()
    }

    /// Who launches.
    fn caller(&self) -> Result<Caller, Failure> {
        Ok(Caller::Session {
            session: self.session(),
            host: wire::host_key(&self.config.host).map_err(Failure::Input)?,
        })
    }

    /// Sees to it that someone works on what there is to do.
    async fn ensure_worker(&self, manager: &Manager) {
        worker_process::ensure(&self.config, &self.flags, manager).await;
    }
}

/// One thread is enough to ask and answer.
fn in_runtime(verb: impl Future<Output = Result<Exit, Failure>>) -> Result<Exit, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| Failure::Machine(error.into()))?;
    runtime.block_on(verb)
}
