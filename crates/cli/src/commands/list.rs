//! `asyncagents list`: the tasks there are.

use asyncagents_core::{answer, id::SessionId};

use super::Shell;
use crate::{
    args::ListArgs,
    exit::{Exit, Failure},
    print, view, width,
};

pub(super) async fn run(shell: &Shell, args: &ListArgs) -> Result<Exit, Failure> {
    let manager = shell.onlooker()?;
    shell.ensure_worker(&manager).await;
    let of = args.of.as_deref().map(SessionId::from);
    let tasks = manager.list(of.as_ref(), args.status).await?;
    let now = manager.now();
    match args.json {
        true => {
            let tasks: Vec<_> = tasks.iter().map(|shown| view::task(shown, now)).collect();
            print::json_line(&tasks)?;
        }
        false => print::answer_unless_raw(
            &answer::list_within(&tasks, now, width::of_answers()),
            shell.config.raw,
        )?,
    }
    Ok(Exit::Done)
}
