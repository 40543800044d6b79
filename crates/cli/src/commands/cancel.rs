//! `asyncagents cancel`: stop tasks and everything below them.

use asyncagents_core::request::Caller;
use asyncagents_views::TaskView;

use super::CommandContext;
use crate::{
    exit::{Exit, Failure},
    print,
};

/// Stop tasks and everything below them.
#[derive(Debug, clap::Args)]
pub(super) struct CancelArgs {
    /// IDs of the tasks, or unique beginnings of them.
    #[arg(value_name = "ID", required = true)]
    tasks: Vec<String>,

    /// Print each task as one line of JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(context: &CommandContext, args: &CancelArgs) -> Result<Exit, Failure> {
    let manager = context.manager()?;
    let mut refused = None;
    for task in &args.tasks {
        match manager.cancel(&Caller::Person, task).await {
            Ok(cancelled) if args.json => {
                print::json_line(&TaskView::new(&cancelled.shown, manager.now()))?;
            }
            Ok(cancelled) => print::answer(&cancelled.text())?,
            // The others are not to suffer for it; the last one is the exit code's.
            Err(problem) => {
                if let Some(earlier) = refused.replace(Failure::from(problem)) {
                    print::failure(&earlier.to_string());
                }
            }
        }
    }
    context.ensure_worker(&manager).await;
    refused.map_or(Ok(Exit::Done), Err)
}
