//! `asyncagents output`: where a task stands, and its result.

use std::time::{Duration, Instant};

use asyncagents_core::{
    answer::{self, Report},
    refusal::Refusal,
    request::{Caller, ConversationRequest, OutputRequest},
    task::Status,
};
use asyncagents_runtime::{Manager, Problem};
use asyncagents_views::TaskView;

use super::Shell;
use crate::{
    exit::{Exit, Failure},
    print,
    screen::FRAME,
};

/// Show where a task stands, and its result if it has ended.
///
/// Exit code 0 if it completed, 3 if it has not ended yet, 4 if it failed or was cancelled.
#[derive(Debug, Default, clap::Args)]
#[command(after_long_help = "Examples:
  asyncagents output 3f9c21ab
  asyncagents output 3f9c21ab --block --timeout 600
  asyncagents output 3f9c21ab --follow
  asyncagents output 3f9c21ab --json | jq -r .answer")]
pub(super) struct OutputArgs {
    /// The task's ID, or the beginning of it.
    #[arg(value_name = "ID")]
    pub(super) task: String,

    /// Wait until it has ended.
    #[arg(long)]
    pub(super) block: bool,

    /// With --block: wait no longer than this many seconds, at most 600 [default: 30].
    #[arg(long, value_name = "SECONDS", requires = "block")]
    pub(super) timeout: Option<u64>,

    /// Show the child's conversation too.
    #[arg(long)]
    pub(super) full_session: bool,

    /// With --full-session: what the tools answered, too.
    #[arg(long, requires = "full_session")]
    pub(super) tool_results: bool,

    /// With --full-session: only what came after this message.
    #[arg(long, value_name = "MESSAGE", requires = "full_session")]
    pub(super) since: Option<String>,

    /// With --full-session: only the newest so many messages.
    #[arg(long, value_name = "N", requires = "full_session")]
    pub(super) limit: Option<usize>,

    /// Show its progress on standard error until it has ended; with --json, a line of JSON
    /// on standard output for every change.
    #[arg(long, conflicts_with = "block")]
    pub(super) follow: bool,

    /// Print the task as one line of JSON.
    #[arg(long)]
    pub(super) json: bool,
}

/// How often whoever waits sees to it that there is a worker.
const LOOK_AFTER: Duration = Duration::from_secs(1);

pub(super) async fn run(shell: &Shell, args: &OutputArgs) -> Result<Exit, Failure> {
    match shell.onlooker()? {
        Some(manager) => show(shell, &manager, args).await,
        None => {
            OutputRequest::new(&args.task, args.block, args.timeout).map_err(Problem::from)?;
            let asked = args.task.clone();
            Err(Problem::from(Refusal::UnknownTask { asked }).into())
        }
    }
}

pub(super) async fn show(
    shell: &Shell,
    manager: &Manager,
    args: &OutputArgs,
) -> Result<Exit, Failure> {
    shell.ensure_worker(manager).await;
    // Checked before anyone waits.
    let asked = OutputRequest::new(&args.task, args.block, args.timeout).map_err(Problem::from)?;
    let patience = match args.follow {
        true => Some(Duration::MAX),
        false => asked.wait,
    };
    if let Some(patience) = patience {
        wait(shell, manager, args, patience).await?;
    }
    let request = OutputRequest {
        wait: None,
        conversation: args.full_session.then(|| ConversationRequest {
            since: args.since.clone(),
            limit: args.limit,
            tool_results: args.tool_results,
        }),
        ..asked
    };
    let report = manager.output(&Caller::Person, request).await?;
    match args.json {
        true => print::json_line(&TaskView::of_report(&report, manager.now()))?,
        false => {
            print::answer_unless_raw(&answer::output(&report, manager.now()), shell.config.raw)?
        }
    }
    Ok(match report.shown.task.status() {
        Status::Completed => Exit::Done,
        Status::Error | Status::Cancelled => Exit::TaskFailed,
        Status::Queued | Status::Running | Status::Resumed => Exit::NotYet,
    })
}

/// Waits until the task has ended, and sees to it that someone works on it; a worker may die
/// meanwhile. If it is to be followed, every change is shown.
async fn wait(
    shell: &Shell,
    manager: &Manager,
    args: &OutputArgs,
    patience: Duration,
) -> Result<(), Failure> {
    let begun = Instant::now();
    let mut seen = None;
    let (mut drawn, mut looked_after) = (None, begun);
    let glance = match args.follow && !args.json && print::is_live() {
        true => FRAME,
        false => LOOK_AFTER,
    };
    while begun.elapsed() < patience {
        let left = patience.saturating_sub(begun.elapsed());
        let glance = left.min(glance);
        let report = manager
            .follow(&Caller::Person, &args.task, seen, glance)
            .await?;
        let task = &report.shown.task;
        if !task.is_live() {
            break;
        }
        let changed = seen != Some(task.seq);
        seen = Some(task.seq);
        match (args.follow, args.json) {
            (true, true) if changed => {
                print::json_line(&TaskView::of_report(&report, manager.now()))?
            }
            (true, false) => show_progress(&report, manager, changed, &mut drawn),
            (true, true) | (false, _) => {}
        }
        if !changed && looked_after.elapsed() >= LOOK_AFTER {
            looked_after = Instant::now();
            shell.ensure_worker(manager).await;
        }
    }
    if args.follow {
        print::progress_ends();
    }
    Ok(())
}

/// A terminal's clock goes on, and its line is drawn so often that it can be read; a file gets
/// all that is new.
fn show_progress(report: &Report, manager: &Manager, changed: bool, drawn: &mut Option<Instant>) {
    let now = manager.now();
    let task = &report.shown.task;
    let due = match print::is_live() {
        true => drawn.is_none_or(|drawn| drawn.elapsed() >= FRAME),
        false => changed,
    };
    if due {
        *drawn = Some(Instant::now());
        let progress = answer::progress(task, now);
        let ran = task.ran(now).as_secs();
        print::progress(&format!(
            "{} {}, {ran} s. {progress}{}",
            report.shown.id,
            task.status(),
            answer::questions(task).replace('\n', "; ")
        ));
    }
}
