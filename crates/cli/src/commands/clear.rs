//! `asyncagents clear`: stop what a session has running and forget its tasks.

use asyncagents_views::ClearedView;

use super::Shell;
use crate::{
    args::{Assignment, given},
    exit::{Exit, Failure},
    print,
};

/// Stop what a session has running and forget its tasks.
#[derive(Debug, clap::Args)]
pub(super) struct ClearArgs {
    /// The session [default: the setting `session`].
    #[arg(long, value_name = "NAME")]
    session: Option<String>,

    /// Print `{cleared, stopped}` as one line of JSON.
    #[arg(long)]
    json: bool,
}

impl ClearArgs {
    /// What its options say about settings.
    pub(super) fn settings(&self) -> Vec<Assignment> {
        given("session", &self.session).into_iter().collect()
    }
}

pub(super) async fn run(shell: &Shell, args: &ClearArgs) -> Result<Exit, Failure> {
    let manager = shell.manager()?;
    let session = match &args.session {
        Some(name) => manager.session_named(name).await?,
        None => shell.session(),
    };
    let cleared = manager.clear(&session).await?;
    shell.ensure_worker(&manager).await;
    match args.json {
        true => print::json_line(&ClearedView {
            cleared: cleared.tasks,
            stopped: cleared.stopped,
        })?,
        false => print::answer(&cleared.text())?,
    }
    Ok(Exit::Done)
}
