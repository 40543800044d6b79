//! `asyncagents output`: where a task stands, and its result.

use std::time::{Duration, Instant};

use asyncagents_core::{
    answer::{self, Report},
    refusal::Refusal,
    request::{Caller, ConversationRequest, OutputRequest},
    task::Status,
};
use asyncagents_runtime::Manager;

use super::Shell;
use crate::{
    args::OutputArgs,
    exit::{Exit, Failure},
    print, view,
};

pub(super) async fn run(shell: &Shell, args: &OutputArgs) -> Result<Exit, Failure> {
    let manager = shell.onlooker()?;
    show(shell, &manager, args).await
}

pub(super) async fn show(
    shell: &Shell,
    manager: &Manager,
    args: &OutputArgs,
) -> Result<Exit, Failure> {
    shell.ensure_worker(manager).await;
    // Checked before anyone waits.
    let refused = |refusal: Refusal| Failure::Input(refusal.into());
    let asked = OutputRequest::new(&args.task, args.block, args.timeout).map_err(refused)?;
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
        true => print::json_line(&view::report(&report, manager.now()))?,
        false => print::answer(&answer::output(&report, manager.now()))?,
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
    while begun.elapsed() < patience {
        let left = patience.saturating_sub(begun.elapsed());
        let glance = left.min(Duration::from_secs(1));
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
            (true, true) if changed => print::json_line(&view::report(&report, manager.now()))?,
            (true, false) => show_progress(&report, manager, changed),
            (true, true) | (false, _) => {}
        }
        if !changed {
            shell.ensure_worker(manager).await;
        }
    }
    if args.follow {
        print::progress_ends();
    }
    Ok(())
}

/// A terminal's clock goes on; a file gets only what is new.
fn show_progress(report: &Report, manager: &Manager, changed: bool) {
    let now = manager.now();
    let task = &report.shown.task;
    if changed || print::is_live() {
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
