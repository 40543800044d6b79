//! `asyncagents clear`: stop what a session has running and forget its tasks.

use asyncagents_views::ClearedView;

use super::CommandContext;
use crate::{
    args::{Assignment, given},
    exit::{Exit, Failure},
    print,
};

/// Stop what a session has running and forget its tasks.
#[derive(Debug, clap::Args)]
pub(super) struct ClearArgs {
    /// Session to clear [default: the setting `session`].
    #[arg(long, value_name = "NAME")]
    session: Option<String>,

    /// Print `{cleared, stopped}` as one line of JSON.
    #[arg(long)]
    json: bool,
}

impl ClearArgs {
    /// The settings that its options set.
    pub(super) fn settings(&self) -> Vec<Assignment> {
        given("session", &self.session).into_iter().collect()
    }
}

pub(super) async fn run(context: &CommandContext, args: &ClearArgs) -> Result<Exit, Failure> {
    let manager = context.manager()?;
    let session = match &args.session {
        Some(name) => manager.session_named(name).await?,
        None => context.session(),
    };
    let cleared = manager.clear(&session).await?;
    context.ensure_worker(&manager).await;
    let view = ClearedView {
        cleared: cleared.tasks,
        stopped: cleared.stopped,
    };
    print::json_or(args.json, &view, || cleared.text())?;
    Ok(Exit::Done)
}
