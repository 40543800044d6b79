//! `asyncagents prune`: deletes what ended long ago, and gives its room back.

use std::{
    fs,
    io::{self, IsTerminal, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::anyhow;
use asyncagents_core::wording::{counted, grouped};
use asyncagents_runtime::{Manager, Problem, PruneRequest, Pruned};
use asyncagents_views::PrunedView;

use super::CommandContext;
use crate::{
    config::{Config, duration},
    exit::{Exit, Failure},
    live_processes, print,
};

/// Delete finished tasks that ended long ago, with all that is kept of them, and give their room
/// back.
///
/// A task goes together with those it launched, and only when all of them ended before that time.
/// Tasks that are not finished, and those whose parent has still to be told, stay. Conversations of
/// `asyncagents run` stay as well, unless you say --sessions: people go on with them.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  asyncagents prune --dry-run
  asyncagents prune --older 90d --yes
  asyncagents prune --older 1h --sessions")]
pub(super) struct PruneArgs {
    /// How long ago they must have ended.
    #[arg(long, value_name = "TIME", default_value = "30d", value_parser = duration)]
    older: Duration,

    /// Delete also conversations of persons in which nothing has happened for so long.
    #[arg(long)]
    sessions: bool,

    /// Delete nothing, and say what would be deleted.
    #[arg(long)]
    dry_run: bool,

    /// Do not ask.
    #[arg(long, conflicts_with = "dry_run")]
    yes: bool,

    /// Print `{tasks, sessions, deleted, …}` as one line of JSON.
    #[arg(long)]
    json: bool,
}

impl PruneArgs {
    fn request(&self) -> PruneRequest {
        PruneRequest {
            tasks: Some(self.older),
            sessions: self.sessions.then_some(self.older),
            only_count: true,
        }
    }
}

pub(super) async fn run(context: &CommandContext, args: &PruneArgs) -> Result<Exit, Failure> {
    if fs::symlink_metadata(&context.config.db).is_err() {
        let db = context.config.db.display();
        return Err(Failure::Input(anyhow!("there is no database {db}")));
    }
    let manager = context.manager()?;
    let request = args.request();
    let found = manager.prune(request).await?;
    if args.dry_run {
        return tell(args, found, None);
    }
    if found.is_nothing() {
        // One that was interrupted may have left room.
        let room = give_back_room(&context.config, &manager).await;
        return tell(
            args,
            found,
            Some(room).filter(|room| room.after < room.before),
        );
    }
    if !args.yes && !is_agreed(found)? {
        return tell(args, found, None);
    }
    let deleted = manager
        .prune(PruneRequest {
            only_count: false,
            ..request
        })
        .await?;
    let room = give_back_room(&context.config, &manager).await;
    tell(args, deleted, Some(room))
}

/// How large the database is after it has been deleted from.
struct Room {
    before: u64,
    after: u64,
    /// What could not be given back, or why nothing could.
    kept: Result<u64, Problem>,
}

/// Gives back what was deleted. That this may fail (it takes as much room again for a while) changes
/// nothing about what was deleted.
async fn give_back_room(config: &Config, manager: &Manager) -> Room {
    let mut log = config.db.clone().into_os_string();
    log.push("-wal");
    let log = PathBuf::from(log);
    let length = |file: &Path| fs::metadata(file).map_or(0, |file| file.len());
    let size = || length(&config.db) + length(&log);
    let before = size();
    let is_alone = live_processes::is_alone(&config.db);
    let kept = manager.give_back_room(is_alone).await;
    let after = size();
    Room {
        before,
        after,
        kept,
    }
}

/// Applies what the settings say about old tasks and conversations, for a worker that has nothing to
/// do.
pub(super) async fn retain(config: &Config, manager: &Manager) -> Result<(), Problem> {
    let request = PruneRequest {
        tasks: config.retention_tasks,
        sessions: config.retention_sessions,
        only_count: false,
    };
    let Pruned { tasks, sessions } = manager.prune(request).await?;
    if tasks + sessions > 0 {
        let kept = give_back_room(config, manager).await.kept?;
        tracing::info!(
            tasks,
            sessions,
            kept,
            "deleted what the settings do not keep"
        );
    }
    Ok(())
}

/// Asks the person at the terminal.
fn is_agreed(found: Pruned) -> Result<bool, Failure> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(Failure::Input(anyhow!(
            "{} would be deleted; say --yes to do so, or --dry-run to see only that",
            what(found)
        )));
    }
    print::remark(&format!("Delete {} for good? [y/N] ", what(found)));
    io::stderr().flush().map_err(Failure::Output)?;
    let mut answer = String::new();
    let read = io::stdin().read_line(&mut answer);
    read.map_err(|error| Failure::Machine(error.into()))?;
    Ok(matches!(
        answer.trim().to_ascii_lowercase().as_str(),
        "y" | "yes"
    ))
}

fn what(Pruned { tasks, sessions }: Pruned) -> String {
    let tasks = counted(tasks, "task", "tasks");
    match sessions {
        0 => tasks,
        sessions => format!(
            "{tasks} and {}",
            counted(sessions, "conversation", "conversations")
        ),
    }
}

/// Says what was deleted, or would be.
fn tell(args: &PruneArgs, pruned: Pruned, room: Option<Room>) -> Result<Exit, Failure> {
    let view = PrunedView {
        tasks: pruned.tasks,
        sessions: pruned.sessions,
        deleted: room.is_some(),
        bytes_before: room.as_ref().map(|room| room.before),
        bytes_after: room.as_ref().map(|room| room.after),
    };
    print::json_or(args.json, &view, || words(pruned, room.as_ref()))?;
    Ok(Exit::Done)
}

fn words(pruned: Pruned, room: Option<&Room>) -> String {
    let what = what(pruned);
    let Some(room) = room else {
        if pruned.is_nothing() {
            return "Nothing is that old.".to_owned();
        }
        return format!("Nothing was deleted. Old enough: {what}.");
    };
    let (before, after) = (kilobytes(room.before), kilobytes(room.after));
    if pruned.is_nothing() {
        return format!("Nothing is that old. The database had {before}, and has {after} now.");
    }
    let kept = match &room.kept {
        Ok(0) => String::new(),
        Err(problem) => {
            format!(" What is free in it is used again; it was not given back: {problem}.")
        }
        Ok(kept) => format!(
            " {} are free in it, and used again: other processes have it open, and it is too large \
             to be written anew beside them.",
            kilobytes(*kept)
        ),
    };
    format!("Deleted {what}. The database had {before}, and has {after} now.{kept}")
}

fn kilobytes(bytes: u64) -> String {
    format!("{} kB", grouped(bytes.div_ceil(1_000)))
}
