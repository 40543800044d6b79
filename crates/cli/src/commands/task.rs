//! `asyncagents task` and `asyncagents resume`: launch a task, go on with one.

use std::env;

use anyhow::{Context, anyhow};
use asyncagents_core::{
    budget::Budget,
    request::{Caller, TaskArgs as Args},
};
use asyncagents_runtime::{Accepted, Manager, Problem};

use super::{
    Shell, output,
    run::{no_session, refused},
};
use crate::{
    args::{OutputArgs, ResumeArgs, TaskArgs},
    exit::{Exit, Failure},
    make_visible::make_visible,
    print,
    read_input::prompt,
    view,
    wire::{Furniture, House, KnownHosts},
};

pub(super) async fn launch(shell: &Shell, args: &TaskArgs) -> Result<Exit, Failure> {
    let request = Args {
        description: args.description.clone().unwrap_or_default(),
        prompt: prompt(&args.prompt)?,
        agent: match &args.resume {
            Some(_) => args.agent.clone().unwrap_or_default(),
            None => args.agent.clone().unwrap_or(shell.config.agent.clone()),
        },
        fork: args.fork,
        resume: args.resume.clone(),
        model: args.model.clone(),
        budget: Budget {
            tokens: args.max_tokens,
            cost: args.max_cost,
            time: args.max_time,
            turns: args.max_turns,
            tool_calls: args.max_tool_calls,
        },
    };
    let House { manager, hosts } = shell.house(Furniture::default())?;
    let mut caller = shell.caller(&hosts)?;
    if let (Some(named), Caller::Shell { session, .. }) = (&args.session, &mut caller) {
        *session = manager.session_named(named).await?;
    }
    if request.resume.is_none() && shell.config.host.starts_with("engine") {
        check(&mut caller, &hosts, &request, args.session.is_some()).await?;
    }
    if request.resume.is_none() && shell.config.host.starts_with("opencode:") {
        find_folder(&mut caller, &hosts, &shell.config.host, request.fork).await?;
    }
    let accepted = ask(shell, &manager, &caller, request).await?;
    if args.follow {
        print::remark(&format!("{}\n", accepted.shown.id));
        let follow = OutputArgs {
            task: accepted.shown.task.id.to_string(),
            follow: true,
            json: args.json,
            ..OutputArgs::default()
        };
        return output::show(shell, &manager, &follow).await;
    }
    answer(shell, &manager, &accepted, args.json)
}

pub(super) async fn resume(shell: &Shell, args: &ResumeArgs) -> Result<Exit, Failure> {
    let request = Args {
        prompt: prompt(&args.prompt)?,
        resume: Some(args.task.clone()),
        ..Args::default()
    };
    let manager = shell.manager()?;
    let accepted = ask(shell, &manager, &Caller::Person, request).await?;
    answer(shell, &manager, &accepted, args.json)
}

/// What the built-in agent could not do is better known now than in a task that fails. A fork
/// inherits the newest run of the folder, unless a session is named.
async fn check(
    caller: &mut Caller,
    hosts: &KnownHosts,
    request: &Args,
    named: bool,
) -> Result<(), Failure> {
    let Caller::Shell { session, host } = caller else {
        return Ok(());
    };
    let engine = hosts.engine(host).map_err(Problem::from)?;
    let checked = engine.check(&request.agent.as_str().into(), request.model.as_deref());
    checked.map_err(refused)?;
    if request.fork && !named {
        let newest = engine.newest().await.map_err(Problem::from)?;
        *session = newest.ok_or_else(|| {
            Failure::Input(anyhow!(
                "there is no session in this folder to inherit; `asyncagents run` begins one, and \
                 --session names another"
            ))
        })?;
    }
    if request.fork {
        let parent = engine.session(session).await.map_err(no_session)?;
        let title = make_visible(&parent.title);
        print::remark(&format!("inherits {session} \"{title}\"\n"));
    }
    Ok(())
}

/// A child works in the folder of its parent; without one, in this folder if the server is on
/// this machine.
async fn find_folder(
    caller: &mut Caller,
    hosts: &KnownHosts,
    named: &str,
    fork: bool,
) -> Result<(), Failure> {
    let Caller::Shell { session, host } = caller else {
        return Ok(());
    };
    let is_session = session.as_str().starts_with("ses");
    if fork && !is_session {
        return Err(Failure::Input(anyhow!(
            "say with --session which session of OpenCode is to be inherited"
        )));
    }
    let url = named.strip_prefix("opencode:").unwrap_or_default();
    let folder = if is_session {
        let remote = hosts.remote(host).map_err(Problem::from)?;
        remote.folder_of(session).await.map_err(Problem::from)?
    } else if ["://127.0.0.1", "://localhost", "://[::1]"]
        .iter()
        .any(|here| url.contains(here))
    {
        let here = env::current_dir()
            .context("this folder")
            .map_err(Failure::Machine)?;
        here.to_str().map(str::to_owned)
    } else {
        None
    };
    *host = hosts
        .remote_key(url, folder.as_deref())
        .map_err(Failure::Input)?;
    Ok(())
}

async fn ask(
    shell: &Shell,
    manager: &Manager,
    caller: &Caller,
    request: Args,
) -> Result<Accepted, Failure> {
    // A person may go on with any task.
    let caller = match request.resume {
        Some(_) => &Caller::Person,
        None => caller,
    };
    let accepted = manager.task(caller, request).await?;
    shell.ensure_worker(manager).await;
    Ok(accepted)
}

/// The ID alone, so that a script can take it; the rest is a remark.
fn answer(
    shell: &Shell,
    manager: &Manager,
    accepted: &Accepted,
    json: bool,
) -> Result<Exit, Failure> {
    if json {
        print::json_line(&view::task(&accepted.shown, manager.now()))?;
    } else {
        let (id, status) = (&accepted.shown.id, accepted.shown.task.status());
        print::answer(id)?;
        let db = match shell.flags.iter().any(|(key, _)| key == "db") {
            true => format!(" --db {}", shell.config.db.display()),
            false => String::new(),
        };
        print::remark(&format!(
            "{status}; `asyncagents output {id} --follow{db}` shows how far it has come\n"
        ));
    }
    if !accepted.ignored.is_empty() {
        let names = accepted.ignored.join(", ");
        print::remark(&format!(
            "ignored, for a resumed task keeps its own: {names}\n"
        ));
    }
    Ok(Exit::Done)
}
