//! `asyncagents clear`: stop what a session has running and forget its tasks.

use super::Shell;
use crate::{
    args::ClearArgs,
    exit::{Exit, Failure},
    print,
};

pub(super) async fn run(shell: &Shell, args: &ClearArgs) -> Result<Exit, Failure> {
    let manager = shell.manager()?;
    let session = match &args.session {
        Some(name) => manager.session_named(name).await?,
        None => shell.session(),
    };
    let cleared = manager.clear(&session).await?;
    shell.ensure_worker(&manager).await;
    match args.json {
        true => print::json_line(&serde_json::json!({
            "cleared": cleared.tasks,
            "stopped": cleared.stopped,
        }))?,
        false => print::answer(&cleared.text())?,
    }
    Ok(Exit::Done)
}
