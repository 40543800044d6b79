//! Where the log goes: to standard error or a file, never into an answer.

use std::{fs::OpenOptions, io, os::unix::fs::OpenOptionsExt, sync::Mutex};

use anyhow::Context;
use tracing_subscriber::{EnvFilter, fmt};

use crate::{config::Config, own_file};

/// Begins to log. Commands that answer on a terminal log only what goes wrong there.
pub(crate) fn begin(config: &Config, quiet: bool) -> anyhow::Result<()> {
    let level = if quiet && config.log_file.is_none() {
        "error"
    } else {
        &config.log
    };
    // It warns of each message of an agent that it does not understand, and an agent may send many.
    let filter = format!("agent_client_protocol=error,{level}");
    let log = fmt()
        .with_env_filter(EnvFilter::new(filter))
        .with_target(false);
    match &config.log_file {
        Some(file) => {
            let mut options = OpenOptions::new();
            options.create(true).append(true);
            // Beside the database others may have put a link; what the user names may be one.
            let opened = if file.parent() == config.db.parent() {
                own_file::open(file, &mut options)
            } else {
                options.mode(0o600).open(file)
            };
            let opened = opened.with_context(|| file.display().to_string())?;
            log.with_ansi(false).with_writer(Mutex::new(opened)).init();
        }
        None => log.with_writer(io::stderr).init(),
    }
    Ok(())
}
