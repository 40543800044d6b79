//! `asyncagents message`: tell a task something while it works.

use asyncagents_core::{answer::Reader, request::MessageRequest};
use asyncagents_runtime::Problem;
use asyncagents_views::TaskView;

use super::{CommandContext, caller};
use crate::{
    exit::{Exit, Failure},
    print,
    read_input::prompt,
};

/// Tell a running task something before its next step.
///
/// A task that is queued gets it with its prompt. One that has finished is gone on with by
/// `asyncagents resume` instead.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  asyncagents message 3f9c21ab \"Leave the tests alone\"
  asyncagents message 3f9c21ab - < findings.txt")]
pub(super) struct MessageArgs {
    /// ID of the task, or a unique beginning of it.
    #[arg(value_name = "ID")]
    task: String,

    /// What it is told; `-` reads it from standard input.
    #[arg(value_name = "TEXT")]
    text: String,

    /// Print the task as one line of JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(context: &CommandContext, args: &MessageArgs) -> Result<Exit, Failure> {
    let request = MessageRequest::new(&args.task, prompt(&args.text)?).map_err(Problem::from)?;
    let caller = caller::of_message()?;
    let manager = context.manager()?;
    let told = manager.message(&caller, request).await;
    context.ensure_worker(&manager).await;
    let told = told?;
    if args.json {
        print::json_line(&TaskView::new(&told.shown, manager.now()))?;
    } else {
        print::answer(&told.text(Reader::Person))?;
    }
    Ok(Exit::Done)
}
