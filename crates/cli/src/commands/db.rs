//! `asyncagents db adopt`: makes a database this user's that was copied, put back or brought.

use asyncagents_runtime::Conversations;

use super::Shell;
use crate::{
    args::AdoptArgs,
    exit::{Exit, Failure},
    print,
    trust::{self, Foreign, Older, Sealed, Standing},
    wire::{self, Furniture},
};

/// What a task is told that was unfinished.
const COPIED: &str = "its database was copied or brought here while it was unfinished; \
    launch it anew";

pub(super) async fn adopt(shell: &Shell, args: &AdoptArgs) -> Result<Exit, Failure> {
    let path = &shell.config.db;
    if !path.is_file() {
        let missing = anyhow::anyhow!("there is no database {}", path.display());
        return Err(Failure::Input(missing));
    }
    let database = trust::open(path, Older::Opened, Sealed::ByUser)?;
    let conversations = match database.standing {
        Standing::Ours(_) => {
            print::answer(&format!("{} is yours already", path.display()))?;
            return Ok(Exit::Done);
        }
        Standing::Foreign(_) if args.keep_conversations => Conversations::Kept,
        Standing::Foreign(Foreign::Copy { .. }) => Conversations::Kept,
        Standing::Foreign(Foreign::Unsealed | Foreign::ReadOnly) => Conversations::Closed,
    };
    // First what is in it, so that nothing of that ever runs.
    let furniture = Furniture {
        looks: true,
        quiet: true,
        older: Older::Opened,
        ..Furniture::default()
    };
    let manager = wire::house(&shell.config, furniture)?.manager;
    let ended = manager.settle_copy(COPIED, conversations).await?;
    trust::adopt(&database.store)?;
    match args.json {
        true => print::json_line(&serde_json::json!({"adopted": path, "ended": ended}))?,
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
