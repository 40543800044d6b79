//! `asyncagents list`: the tasks there are.

use std::num::NonZeroUsize;

use asyncagents_core::{
    answer::Reader,
    moment::Moment,
    task::Status,
    task_list::{ListRequest, TaskList},
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
///
/// The 50 newest are shown, and all that are not finished; the last line says how many more there
/// are.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  asyncagents list --status running
  asyncagents list --search parser --limit 10
  asyncagents list --json --all | jq -r '.[].short_id'")]
pub(super) struct ListArgs {
    /// Show only the tasks of this session.
    #[arg(long = "session", value_name = "NAME")]
    of: Option<String>,

    /// Show only tasks with this status.
    #[arg(long, value_parser = named(Status::ALL))]
    status: Option<Status>,

    /// Show only tasks with this text in their description, agent or ID, in whatever case.
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,

    /// Show the N newest tasks, finished or not.
    #[arg(long, value_name = "N", value_parser = some)]
    limit: Option<NonZeroUsize>,

    /// Show all tasks.
    #[arg(long, conflicts_with = "limit")]
    all: bool,

    /// Print one line of JSON: a list of tasks. If there are more, the last has `left_out`.
    #[arg(long)]
    json: bool,
}

fn some(number: &str) -> Result<NonZeroUsize, String> {
    let number = number.parse();
    number.map_err(|_| "a number from 1 on; --all shows all tasks".to_owned())
}

pub(super) async fn run(context: &CommandContext, args: &ListArgs) -> Result<Exit, Failure> {
    let (list, now) = match context.reader()? {
        Some(manager) => (list(context, &manager, args).await?, manager.now()),
        None => (TaskList::default(), Moment::default()),
    };
    if args.json {
        print::json_line(&TaskView::list(&list, now))?;
    } else {
        let table = list.text(now, Reader::Person, width::of_answers());
        print::answer_unless_raw(&table, context.config.raw)?;
    }
    Ok(Exit::Done)
}

async fn list(
    context: &CommandContext,
    manager: &Manager,
    args: &ListArgs,
) -> Result<TaskList, Failure> {
    context.ensure_worker(manager).await;
    let of = match &args.of {
        Some(name) => Some(manager.session_named(name).await?),
        None => None,
    };
    let (newest, live) = match args.limit {
        Some(limit) => (limit.get(), 0),
        None if args.all => (usize::MAX, usize::MAX),
        None => (ListRequest::NEWEST, usize::MAX),
    };
    let request = ListRequest {
        of,
        status: args.status,
        search: args.search.clone(),
        newest,
        live,
    };
    Ok(manager.list(request).await?)
}
