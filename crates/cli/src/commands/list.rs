//! `asyncagents list`: the tasks there are.

use asyncagents_core::{
    answer::{self, Shown},
    moment::Moment,
};
use asyncagents_runtime::Manager;

use super::Shell;
use crate::{
    args::ListArgs,
    exit::{Exit, Failure},
    print, view, width,
};

pub(super) async fn run(shell: &Shell, args: &ListArgs) -> Result<Exit, Failure> {
    let (tasks, now) = match shell.onlooker()? {
        Some(manager) => (tasks(shell, &manager, args).await?, manager.now()),
        None => (Vec::new(), Moment::default()),
    };
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

async fn tasks(shell: &Shell, manager: &Manager, args: &ListArgs) -> Result<Vec<Shown>, Failure> {
    shell.ensure_worker(manager).await;
    let of = match &args.of {
        Some(name) => Some(manager.session_named(name).await?),
        None => None,
    };
    Ok(manager.list(of.as_ref(), args.status).await?)
}
