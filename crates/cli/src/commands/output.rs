//! `asyncagents output`: where a task stands, and its result.

use std::time::Duration;

use asyncagents_core::{
    answer::{self, Report},
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
    let manager = shell.manager()?;
    shell.ensure_worker(&manager).await;
    show(&manager, args).await
}

pub(super) async fn show(manager: &Manager, args: &OutputArgs) -> Result<Exit, Failure> {
    if args.follow {
        follow(manager, args).await?;
    }
    let block = args.block && !args.follow;
    let request = OutputRequest::new(&args.task, block, args.timeout);
    let mut request = request.map_err(|refusal| Failure::Input(refusal.into()))?;
    request.conversation = args.full_session.then(|| ConversationRequest {
        since: args.since.clone(),
        limit: args.limit,
        tool_results: args.tool_results,
    });
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

/// Shows every change until the task has ended.
async fn follow(manager: &Manager, args: &OutputArgs) -> Result<(), Failure> {
    let mut seen = None;
    loop {
        let wait = Duration::from_secs(1);
        let report = manager
            .follow(&Caller::Person, &args.task, seen, wait)
            .await?;
        let task = &report.shown.task;
        if !task.is_live() {
            print::progress_ends();
            return Ok(());
        }
        let changed = seen != Some(task.seq);
        seen = Some(task.seq);
        match args.json {
            true if changed => print::json_line(&view::report(&report, manager.now()))?,
            true => {}
            // A terminal's clock goes on; a file gets only what is new.
            false => show_progress(&report, manager, changed),
        }
    }
}

fn show_progress(report: &Report, manager: &Manager, changed: bool) {
    let now = manager.now();
    let task = &report.shown.task;
    if changed || print::is_live() {
        let progress = answer::progress(task, now);
        let ran = task.ran(now).as_secs();
        print::progress(&format!(
            "{} {}, {ran} s. {progress}",
            report.shown.id,
            task.status()
        ));
    }
}
