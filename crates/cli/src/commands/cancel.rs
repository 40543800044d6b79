//! `asyncagents cancel`: stop tasks and everything below them.

use asyncagents_core::request::Caller;

use super::Shell;
use crate::{
    args::CancelArgs,
    exit::{Exit, Failure},
    print, view,
};

pub(super) async fn run(shell: &Shell, args: &CancelArgs) -> Result<Exit, Failure> {
    let manager = shell.manager()?;
    for task in &args.tasks {
        let cancelled = manager.cancel(&Caller::Person, task).await?;
        match args.json {
            true => print::json_line(&view::task(&cancelled.shown, manager.now()))?,
            false => print::answer(&cancelled.text())?,
        }
    }
    shell.ensure_worker(&manager).await;
    Ok(Exit::Done)
}
