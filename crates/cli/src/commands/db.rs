//! `asyncagents db adopt`: makes a database this user's that was copied, put back or brought.

use asyncagents_runtime::Conversations;
use asyncagents_views::AdoptedView;

use super::Shell;
use crate::{
    compose::{self, AppOptions},
    exit::{Exit, Failure},
    print,
    trust::{self, Foreign, Older, Ownership, Sealed},
};

/// Look after the database.
#[derive(Debug, clap::Args)]
pub(super) struct DbArgs {
    #[command(subcommand)]
    verb: DbVerb,
}

#[derive(Debug, clap::Subcommand)]
pub(super) enum DbVerb {
    Adopt(AdoptArgs),
}

/// Make a database yours that was copied, put back from a backup, or brought from elsewhere.
///
/// What is in a database decides what runs on your account, so nothing in one is run that you
/// have not made where it is. After this it is yours. Tasks in it that were unfinished end: the
/// original may be at work on them. What it holds can be read; to go on with a task, launch a new
/// one. Conversations in a copy of a database of yours can be continued. In one that has no seal of
/// your key they can only be read, because somebody else may have written what their models are
/// told; if they are yours (the key was lost, or an older version made the file), say
/// --keep-conversations.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Example:\n  asyncagents db adopt --db backup.db")]
pub(super) struct AdoptArgs {
    /// Let its conversations be continued even if it has no seal of yours.
    #[arg(long)]
    keep_conversations: bool,

    /// Print one line of JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(shell: &Shell, args: &DbArgs) -> Result<Exit, Failure> {
    match &args.verb {
        DbVerb::Adopt(args) => adopt(shell, args).await,
    }
}

/// What a task is told that was unfinished.
const COPIED: &str = "its database was copied or brought here while it was unfinished; \
    launch it anew";

async fn adopt(shell: &Shell, args: &AdoptArgs) -> Result<Exit, Failure> {
    let path = &shell.config.db;
    if !path.is_file() {
        let missing = anyhow::anyhow!("there is no database {}", path.display());
        return Err(Failure::Input(missing));
    }
    let database = trust::open(path, Older::Opened, Sealed::ByUser)?;
    let conversations = match database.ownership {
        Ownership::Ours(_) => {
            print::answer(&format!("{} is yours already", path.display()))?;
            return Ok(Exit::Done);
        }
        Ownership::Foreign(_) if args.keep_conversations => Conversations::Kept,
        Ownership::Foreign(Foreign::Copy { .. }) => Conversations::Kept,
        Ownership::Foreign(Foreign::Unsealed | Foreign::ReadOnly) => Conversations::Closed,
    };
    // First what is in it, so that nothing of that ever runs.
    let options = AppOptions {
        read_only: true,
        quiet: true,
        older: Older::Opened,
        ..AppOptions::default()
    };
    let manager = compose::open(&shell.config, options)?.manager;
    let ended = manager.settle_copy(COPIED, conversations).await?;
    trust::adopt(&database.store)?;
    match args.json {
        true => print::json_line(&AdoptedView {
            adopted: path.to_string_lossy(),
            ended,
        })?,
        false => {
            let conversations = match conversations {
                Conversations::Kept => "Its conversations can be continued.",
                Conversations::Closed => "Its conversations can only be read.",
            };
            print::answer(&format!(
                "{} is yours now. Unfinished tasks that were ended: {ended}. {conversations}",
                path.display()
            ))?;
        }
    }
    Ok(Exit::Done)
}
