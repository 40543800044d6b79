//! `asyncagents task` and `asyncagents resume`: launch a task, go on with one.

use std::{env, time::Duration};

use anyhow::{Context, anyhow};
use asyncagents_core::{
    budget::{Budget, Cost},
    request::{Caller, TaskArgs as Args},
};
use asyncagents_runtime::{Accepted, Manager, Problem};

use super::{
    Shell,
    output::{self, OutputArgs},
};
use crate::{
    args::{Assignment, given},
    config,
    exit::{Exit, Failure, no_session, refused},
    make_visible::make_visible,
    print,
    read_input::prompt,
    view,
    wire::{Furniture, House, KnownHosts},
};

/// Launch a background task and print its ID.
///
/// The task outlives the command: a worker process looks after it.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  asyncagents task \"Find the slow query\"
  asyncagents task --follow \"Find the slow query\"
  asyncagents task --fork \"Fix what we found\" --max-time 10m --max-cost 0.50
  asyncagents task - < prompt.txt
  id=$(asyncagents task \"Count the tests\") && asyncagents output $id --block")]
pub(super) struct TaskArgs {
    /// What to do, or `-` for standard input.
    prompt: String,

    /// A few words for people [default: the beginning of the prompt].
    #[arg(long, short, value_name = "TEXT")]
    description: Option<String>,

    /// Who works on it [default: the setting `agent`].
    #[arg(long)]
    agent: Option<String>,

    /// The model, if not the agent's own.
    #[arg(long)]
    model: Option<String>,

    /// Let the child inherit the session's conversation.
    #[arg(long)]
    fork: bool,

    /// Go on with a finished task instead; like `asyncagents resume`.
    #[arg(long, value_name = "ID")]
    resume: Option<String>,

    /// The session it belongs to [default: the setting `session`].
    #[arg(long, value_name = "NAME")]
    session: Option<String>,

    /// What the built-in agent does without asking: ask, auto-edit or yolo [default: the setting
    /// `permissions.mode`].
    #[arg(long, value_name = "MODE")]
    permission: Option<String>,

    /// Where it runs: `engine`, `engine:FOLDER`, `opencode:URL`, `scripted` or `scripted:FILE`
    /// [default: the setting `host`].
    #[arg(long)]
    host: Option<String>,

    /// Run it in the `opencode serve` at this address; its password comes from
    /// OPENCODE_SERVER_PASSWORD. `--session` names the session that is told, and inherited.
    #[arg(long, value_name = "URL", conflicts_with = "host")]
    opencode: Option<String>,

    /// End it after this many tokens.
    #[arg(long, value_name = "N")]
    max_tokens: Option<u64>,

    /// End it after this many dollars.
    #[arg(long, value_name = "USD", value_parser = config::dollars)]
    max_cost: Option<Cost>,

    /// End it after this time, as 90s, 10m, 1h 30m.
    #[arg(long, value_name = "TIME", value_parser = config::duration)]
    max_time: Option<Duration>,

    /// End it after this many answers of the model.
    #[arg(long, value_name = "N")]
    max_turns: Option<u64>,

    /// End it after this many tool calls.
    #[arg(long, value_name = "N")]
    max_tool_calls: Option<u64>,

    /// Show its progress until it has ended, then its result, like `output --follow`.
    #[arg(long)]
    follow: bool,

    /// Print the task as one line of JSON.
    #[arg(long)]
    json: bool,
}

impl TaskArgs {
    /// What its options say about settings.
    pub(super) fn settings(&self) -> Vec<Assignment> {
        let opencode = self.opencode.as_ref().map(|url| format!("opencode:{url}"));
        let settings = [
            given("host", &self.host),
            given("host", &opencode),
            given("session", &self.session),
            given("permissions.mode", &self.permission),
        ];
        settings.into_iter().flatten().collect()
    }
}

/// Go on with a finished task, in its session.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Example:\n  asyncagents resume 3f9c21ab \"And in the tests?\"")]
pub(super) struct ResumeArgs {
    /// The task's ID, or the beginning of it.
    #[arg(value_name = "ID")]
    task: String,

    /// What to do now, or `-` for standard input.
    prompt: String,

    /// Print the task as one line of JSON.
    #[arg(long)]
    json: bool,
}

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
