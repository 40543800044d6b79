//! `asyncagents list`: the tasks there are.

use asyncagents_core::{
    answer::{self, Reader, Shown},
    moment::Moment,
    task::Status,
};
use asyncagents_runtime::Manager;
use asyncagents_views::TaskView;

use super::CommandContext;
use crate::{
    args::named,
    exit::{Exit, Failure},
    print, width,
};

/// Show the tasks there are, newest first.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  asyncagents list --status running
  asyncagents list --json | jq -r '.[].short_id'")]
pub(super) struct ListArgs {
    /// Show only the tasks of this session.
    #[arg(long = "session", value_name = "NAME")]
    of: Option<String>,

    /// Show only tasks with this status.
    #[arg(long, value_parser = named(Status::ALL))]
    status: Option<Status>,

    /// Print one line of JSON: a list of tasks.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(context: &CommandContext, args: &ListArgs) -> Result<Exit, Failure> {
    let (tasks, now) = match context.reader()? {
        Some(manager) => (tasks(context, &manager, args).await?, manager.now()),
        None => (Vec::new(), Moment::default()),
    };
    if args.json {
        let tasks = tasks.iter().map(|shown| TaskView::new(shown, now));
        print::json_line(&tasks.collect::<Vec<_>>())?;
    } else {
        let table = answer::list_within(&tasks, now, Reader::Person, width::of_answers());
        print::answer_unless_raw(&table, context.config.raw)?;
    }
    Ok(Exit::Done)
}

async fn tasks(
    context: &CommandContext,
    manager: &Manager,
    args: &ListArgs,
) -> Result<Vec<Shown>, Failure> {
    context.ensure_worker(manager).await;
    let of = match &args.of {
        Some(name) => Some(manager.session_named(name).await?),
        None => None,
    };
    Ok(manager.list(of.as_ref(), args.status).await?)
}
