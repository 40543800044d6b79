//! `asyncagents output`: where a task stands, and its result.

use std::time::{Duration, Instant};

use asyncagents_core::{
    answer::{self, Reader, Report},
    refusal::Refusal,
    request::{Caller, ConversationRequest, OutputRequest},
    task::Status,
};
use asyncagents_runtime::{Manager, Problem};
use asyncagents_views::TaskView;

use super::CommandContext;
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
    /// ID of the task, or a unique beginning of it.
    #[arg(value_name = "ID")]
    pub(super) task: String,

    /// Wait until the task has ended.
    #[arg(long)]
    pub(super) block: bool,

    /// With --block: wait at most this many seconds, up to 600 [default: 30].
    #[arg(long, value_name = "SECONDS", requires = "block")]
    pub(super) timeout: Option<u64>,

    /// Show the child's conversation too.
    #[arg(long)]
    pub(super) full_session: bool,

    /// With --full-session: show the results of tools too.
    #[arg(long, requires = "full_session")]
    pub(super) tool_results: bool,

    /// With --full-session: show only what came after this message.
    #[arg(long, value_name = "MESSAGE", requires = "full_session")]
    pub(super) since: Option<String>,

    /// With --full-session: show at most N of the newest messages.
    #[arg(long, value_name = "N", requires = "full_session")]
    pub(super) limit: Option<usize>,

    /// Show progress on standard error until the task has ended; with --json, print a line of
    /// JSON on standard output for every change.
    #[arg(long, conflicts_with = "block")]
    pub(super) follow: bool,

    /// Print the task as one line of JSON.
    #[arg(long)]
    pub(super) json: bool,
}

/// How often a command that waits checks that there is a worker.
const WORKER_CHECK: Duration = Duration::from_secs(1);

pub(super) async fn run(context: &CommandContext, args: &OutputArgs) -> Result<Exit, Failure> {
    match context.reader()? {
        Some(manager) => show(context, &manager, args).await,
        None => {
            OutputRequest::new(&args.task, args.block, args.timeout).map_err(Problem::from)?;
            let asked = args.task.clone();
            Err(Problem::from(Refusal::UnknownTask { asked }).into())
        }
    }
}

pub(super) async fn show(
    context: &CommandContext,
    manager: &Manager,
    args: &OutputArgs,
) -> Result<Exit, Failure> {
    context.ensure_worker(manager).await;
    let asked = OutputRequest::new(&args.task, args.block, args.timeout).map_err(Problem::from)?;
    let timeout = if args.follow {
        Some(Duration::MAX)
    } else {
        asked.wait
    };
    if let Some(timeout) = timeout {
        wait(context, manager, args, timeout).await?;
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
    let now = manager.now();
    if args.json {
        print::json_line(&TaskView::of_report(&report, now))?;
    } else {
        print::answer_unless_raw(
            &answer::output(&report, now, Reader::Person),
            context.config.raw,
        )?;
    }
    Ok(match report.shown.task.status() {
        Status::Completed => Exit::Done,
        Status::Error | Status::Cancelled => Exit::TaskFailed,
        Status::Queued | Status::Running | Status::Resumed => Exit::NotYet,
    })
}

/// Waits until the task has ended, or the timeout is over. A worker may die meanwhile, so that is
/// checked too. With --follow, every change is shown.
async fn wait(
    context: &CommandContext,
    manager: &Manager,
    args: &OutputArgs,
    timeout: Duration,
) -> Result<(), Failure> {
    let begun = Instant::now();
    let mut seen = None;
    let (mut drawn, mut worker_checked) = (None, begun);
    let draws = args.follow && !args.json && print::is_live();
    let mut is_undrawn = false;
    while begun.elapsed() < timeout {
        let left = timeout.saturating_sub(begun.elapsed());
        let pause = if is_undrawn { FRAME } else { WORKER_CHECK };
        let report = manager
            .follow(&Caller::Person, &args.task, seen, left.min(pause))
            .await?;
        let task = &report.shown.task;
        if !task.is_live() {
            break;
        }
        let changed = seen != Some(task.seq);
        seen = Some(task.seq);
        if args.follow && !args.json {
            let is_drawn = show_progress(&report, manager, changed, &mut drawn);
            is_undrawn = draws && !is_drawn;
        } else if args.follow && changed {
            print::json_line(&TaskView::of_report(&report, manager.now()))?;
        }
        if !changed && worker_checked.elapsed() >= WORKER_CHECK {
            worker_checked = Instant::now();
            context.ensure_worker(manager).await;
        }
    }
    if args.follow {
        print::progress_ends();
    }
    Ok(())
}

/// On a terminal the line is redrawn, so that its clock goes on, but once a frame at most; a file
/// gets all that is new. Returns whether it was drawn.
fn show_progress(
    report: &Report,
    manager: &Manager,
    changed: bool,
    drawn: &mut Option<Instant>,
) -> bool {
    let now = manager.now();
    let task = &report.shown.task;
    let due = if print::is_live() {
        drawn.is_none_or(|drawn| drawn.elapsed() >= FRAME)
    } else {
        changed
    };
    if due {
        *drawn = Some(Instant::now());
        let progress = answer::progress(task, now);
        let ran = task.ran(now).as_secs();
        print::progress(&format!(
            "{} {}, {ran} s. {progress}{}",
            report.shown.id,
            task.status(),
            answer::questions(&report.shown, Reader::Person).replace('\n', "; ")
        ));
    }
    due
}
