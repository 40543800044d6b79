//! `asyncagents run`: the built-in agent, with background sub-agents.

mod follow;
mod json_view;
mod session;
mod text_view;
mod totals;

use std::{path::PathBuf, process};

use anyhow::anyhow;
use asyncagents_core::{agent::agent_meant, id::AgentName, port::Host};
use asyncagents_runtime::{Problem, Worker};

use self::{
    follow::{Run, View},
    json_view::JsonView,
    session::Sessions,
    text_view::TextView,
};
use super::{
    CommandContext, approver,
    runtime::in_two_threads,
    signals::{INTERRUPTED, Signals},
};
use crate::{
    args::{Assignment, given},
    compose::AppOptions,
    exit::{Exit, Failure, refused},
    folders::engine_in,
    hosts::{HostOptions, ServedTasks, load_certificates},
    read_input::prompt,
    screen::Screen,
    trust::Sealed,
};

/// Run the built-in agent in this folder, with background sub-agents.
///
/// The answer goes to standard output; tools, background tasks and totals to standard error.
/// The run waits for its background tasks. Ctrl-C asks everything to stop, a second one ends
/// at once. Exit code 0 with an answer, 4 if the run failed or was stopped, 130 if it was ended by
/// a second Ctrl-C.
#[derive(Debug, Default, Clone, clap::Args)]
#[command(after_long_help = "\
Examples:
  asyncagents run \"Why is the login slow? Look at the three services in parallel.\"
  asyncagents run --model ollama/qwen3 \"Explain this folder\"
  asyncagents run --continue \"And the tests?\"
  asyncagents run --continue                   go on with a run that was interrupted
  asyncagents run - < prompt.txt")]
pub(super) struct RunArgs {
    /// What to do, or `-` for standard input.
    #[arg(value_name = "PROMPT")]
    words: Vec<String>,

    /// Agent to run: general, explore, plan, or one of your own [default: the session's, or the
    /// setting `agent`].
    #[arg(long)]
    agent: Option<String>,

    /// Model to use, as provider/model or an alias [default: the setting `model`].
    #[arg(long)]
    model: Option<String>,

    /// Continue the newest session of this folder.
    #[arg(long = "continue", short = 'C', conflicts_with = "session")]
    go_on: bool,

    /// Continue this session: its ID, or a unique beginning of it. `asyncagents sessions` lists
    /// them.
    #[arg(long, value_name = "ID")]
    session: Option<String>,

    /// What the agent may do without asking: ask, auto-edit or yolo [default: the setting
    /// `permissions.mode`].
    #[arg(long, value_name = "MODE")]
    permission: Option<String>,

    /// End when the agent has answered; background tasks go on in a worker.
    #[arg(long)]
    no_wait: bool,

    /// Print a line of JSON for everything that happens.
    #[arg(long)]
    json: bool,
}

impl RunArgs {
    /// The settings that its options set.
    pub(super) fn settings(&self) -> Vec<Assignment> {
        let permission = given("permissions.mode", &self.permission);
        let model = given("model", &self.model);
        permission.into_iter().chain(model).collect()
    }
}

pub(super) fn run(context: &CommandContext, args: &RunArgs) -> Result<Exit, Failure> {
    let typed = (!args.words.is_empty()).then(|| args.words.join(" "));
    let prompt = match &typed {
        Some(typed) => Some(prompt(typed)?),
        None if args.go_on || args.session.is_some() => None,
        None => {
            let hint = "say what to do: asyncagents run \"…\"; or --continue";
            return Err(Failure::Input(anyhow!(hint)));
        }
    };
    if prompt
        .as_ref()
        .is_some_and(|prompt| prompt.trim().is_empty())
    {
        return Err(Failure::Input(anyhow!(
            "the prompt is empty; say what to do"
        )));
    }
    load_certificates(&context.config.agent_config);
    let wanted = Wanted {
        args: args.clone(),
        prompt,
        ..Wanted::default()
    };
    in_two_threads(go(context, wanted))
}

/// A run that was asked for.
#[derive(Default)]
pub(super) struct Wanted {
    pub(super) args: RunArgs,
    pub(super) prompt: Option<String>,
    /// The folder to work in, if not the current one.
    pub(super) folder: Option<PathBuf>,
    /// Whose key the database is sealed with.
    pub(super) sealed: Sealed,
}

/// Runs it until it has ended.
pub(super) async fn go(context: &CommandContext, mut wanted: Wanted) -> Result<Exit, Failure> {
    let screen = Screen::new(context.config.color, context.config.raw);
    let mut stop = Signals::new()?;
    let folder = wanted.folder.clone().unwrap_or_else(|| PathBuf::from("."));
    let options = AppOptions {
        hosts: HostOptions {
            approver: approver(&screen, wanted.args.json),
            no_wait: wanted.args.no_wait,
            tasks: ServedTasks::Of(engine_in(&folder).map_err(Failure::Input)?),
            bare: wanted.folder.is_some(),
            bridges: None,
        },
        sealed: wanted.sealed,
        ..AppOptions::default()
    };
    let app = context.open(options)?;
    let name = format!("engine:{}", folder.display());
    let host = app
        .hosts
        .named(&name, &context.launch_settings(None))
        .map_err(Failure::Input)?;
    let engine = app.hosts.engine(&host).map_err(Problem::from)?;
    let begins = wanted.args.session.is_none() && !wanted.args.go_on;
    if begins {
        let agent = &mut wanted.args.agent;
        agent.get_or_insert(context.config.agent.clone());
    }
    if let Some(asked) = &mut wanted.args.agent {
        let known = engine.agents().await.map_err(refused)?;
        if let Some(meant) = agent_meant(asked, known.iter().map(AgentName::as_str)) {
            *asked = meant.to_owned();
        }
    }
    if begins {
        let agent = wanted.args.agent.as_deref().unwrap_or_default();
        let checked = engine.check(&agent.into(), wanted.args.model.as_deref());
        checked.map_err(refused)?;
    }
    // While its lease lasts, no other process works in the session.
    let worker = Worker::start(&app.manager).await?;
    let sessions = Sessions {
        context,
        screen: &screen,
        manager: &app.manager,
        engine: &engine,
    };
    let ran = follow(&sessions, &wanted, &mut stop).await;
    screen.end();
    tokio::select! {
        () = context.close(app, worker) => ran,
        () = stop.next() => process::exit(INTERRUPTED),
    }
}

/// Begins or continues a session, and shows what happens until the run has ended.
async fn follow(
    sessions: &Sessions<'_>,
    wanted: &Wanted,
    stop: &mut Signals,
) -> Result<Exit, Failure> {
    let begun = tokio::select! {
        begun = sessions.begin(wanted) => begun?,
        () = stop.next() => process::exit(INTERRUPTED),
    };
    let (screen, engine) = (sessions.screen, sessions.engine);
    let view: Box<dyn View> = if wanted.args.json {
        Box::new(JsonView::default())
    } else {
        Box::new(TextView::new(screen, engine))
    };
    let mut run = Run::new(sessions, begun, view);
    run.open().await;
    let (outcome, answer) = run.follow(wanted.args.no_wait, stop).await?;
    screen.end();
    run.totals(outcome, answer).await
}
