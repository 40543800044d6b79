//! `asyncagents db adopt`: makes a database this user's that was copied, put back or brought.

use asyncagents_runtime::Conversations;
use asyncagents_store::Options;
use asyncagents_views::AdoptedView;

use super::CommandContext;
use crate::{
    compose::{self, AppOptions},
    exit::{Exit, Failure},
    print,
    trust::{self, Foreign, Older, Ownership, Sealed},
};

/// Manage the database.
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
/// have not made where it is. After this it is yours. Unfinished tasks in it end, because the
/// original may be working on them; launch new ones instead. Conversations in a copy of a database
/// of yours can be continued. In a database without a seal of your key they can only be read,
/// because another user may have written what their models are told; if they are yours (the key
/// was lost, or an older version made the file), use --keep-conversations.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Example:\n  asyncagents db adopt --db backup.db")]
pub(super) struct AdoptArgs {
    /// Let its conversations be continued even if the database has no seal of yours.
    #[arg(long)]
    keep_conversations: bool,

    /// Print one line of JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(context: &CommandContext, args: &DbArgs) -> Result<Exit, Failure> {
    match &args.verb {
        DbVerb::Adopt(args) => adopt(context, args).await,
    }
}

/// The error of a task that was unfinished.
const COPIED: &str = "its database was copied or brought here while it was unfinished; \
    launch it anew";

async fn adopt(context: &CommandContext, args: &AdoptArgs) -> Result<Exit, Failure> {
    let path = &context.config.db;
    if !path.is_file() {
        let missing = anyhow::anyhow!("there is no database {}", path.display());
        return Err(Failure::Input(missing));
    }
    let database = trust::open(path, Options::default(), Older::Opened, Sealed::ByUser)?;
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
    let manager = compose::open(&context.config, options)?.manager;
    let ended = manager.settle_copy(COPIED, conversations).await?;
    trust::adopt(&database.store)?;
    let conversations = match conversations {
        Conversations::Kept => "Its conversations can be continued.",
        Conversations::Closed => "Its conversations can only be read.",
    };
    let adopted = path.to_string_lossy();
    print::json_or(args.json, &AdoptedView { adopted, ended }, || {
        let path = path.display();
        format!("{path} is yours now. Unfinished tasks that were ended: {ended}. {conversations}")
    })?;
    Ok(Exit::Done)
}
