//! `asyncagents list`: the tasks there are.

use asyncagents_core::{
    answer::{self, Shown},
    moment::Moment,
    task::Status,
};
use asyncagents_runtime::Manager;
use asyncagents_views::TaskView;

use super::Shell;
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
    /// Only the tasks of this session.
    #[arg(long = "session", value_name = "NAME")]
    of: Option<String>,

    /// Only those with this status.
    #[arg(long, value_parser = named(Status::ALL))]
    status: Option<Status>,

    /// Print one line of JSON: a list of tasks.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(shell: &Shell, args: &ListArgs) -> Result<Exit, Failure> {
    let (tasks, now) = match shell.onlooker()? {
        Some(manager) => (tasks(shell, &manager, args).await?, manager.now()),
        None => (Vec::new(), Moment::default()),
    };
    match args.json {
        true => {
            let tasks = tasks.iter().map(|shown| TaskView::new(shown, now));
            print::json_line(&tasks.collect::<Vec<_>>())?;
        }
        false => print::answer_unless_raw(
            &answer::list_within(&tasks, now, width::of_answers()),
            shell.config.raw,
        )?,
    }
    Ok(Exit::Done)
}

async fn tasks(shell: &Shell, manager: &Manager, args: &ListArgs) -> Result<Vec<Shown>, Failure> {
    shell.ensure_worker(manager).await;
    let of = match &args.of {
        Some(name) => Some(manager.session_named(name).await?),
        None => None,
    };
    Ok(manager.list(of.as_ref(), args.status).await?)
}
