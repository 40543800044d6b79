//! `asyncagents skill run`: a skill, run by the built-in agent in this folder.

use std::{env, pin::pin, process};

use anyhow::Context;
use asyncagents_core::{
    agent::agent_meant,
    id::{AgentName, ModelName},
    port::Host,
    request::{Caller, LaunchTask, OutputRequest},
    skill::{Manifest, SkillContext, as_typed},
    skill_event::{ErrorCode, SkillEvent},
    task::Status,
};
use asyncagents_engine::{Engine, Live, LiveEvents};
use asyncagents_runtime::{Invocation, Invoker, Manager, Problem, SkillRun, Skills, Worker};
use asyncagents_views::SkillEventView;
use futures_util::FutureExt;

use crate::{
    args::{Assignment, given},
    commands::{
        CommandContext, approver,
        runtime::in_two_threads,
        signals::{INTERRUPTED, Signals},
    },
    compose::AppOptions,
    exit::{Exit, Failure, refused},
    folders::engine_in,
    hosts::{HostOptions, ServedTasks},
    live_view::LiveView,
    print,
    read_input::prompt,
    screen::{Frames, Screen},
};

/// Run a skill with the built-in agent in this folder.
///
/// The answer goes to standard output; its steps and the chain ID of its trace, which has the
/// totals, to standard error. A skill with `context: fork` runs as an isolated sub-agent with a
/// reduced budget. Ctrl-C cancels it, a second one ends at once. Exit code 0 with an answer, 2 if
/// there is no such skill or model or a command in the skill is refused, 4 if it failed or was
/// stopped.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  asyncagents skill run deep-analysis \"the parser\"
  asyncagents skill run fix-issue 12 main
  asyncagents skill run deep-analysis \"the parser\" --json")]
pub(crate) struct SkillRunArgs {
    /// Skill to run.
    name: String,

    /// Request or arguments for the skill; `-` for standard input. Each of several words is one
    /// argument, even with blanks in it; a single one is split at its blanks.
    request: Vec<String>,

    /// Model to use, as provider/model or an alias [default: the skill's, or the setting `model`].
    #[arg(long)]
    model: Option<String>,

    /// What the agent may do without asking: ask, auto-edit or yolo [default: the setting
    /// `permissions.mode`].
    #[arg(long, value_name = "MODE")]
    permission: Option<String>,

    /// Print a line of JSON for every event: status, message, error, done.
    #[arg(long)]
    json: bool,

    /// With --json: print the steps of the sub-agent too.
    #[arg(long, requires = "json")]
    sub_agent_events: bool,
}

impl SkillRunArgs {
    /// The settings that its options set.
    pub(super) fn settings(&self) -> Vec<Assignment> {
        given("permissions.mode", &self.permission)
            .into_iter()
            .collect()
    }
}

pub(super) fn run(context: &CommandContext, args: &SkillRunArgs) -> Result<Exit, Failure> {
    let request = match args.request.as_slice() {
        [] => String::new(),
        // One word is a request, or stands for standard input; of several each is itself.
        words => prompt(&as_typed(words))?,
    };
    in_two_threads(go(context, args, request))
}

async fn go(
    context: &CommandContext,
    args: &SkillRunArgs,
    request: String,
) -> Result<Exit, Failure> {
    let screen = Screen::new(context.config.color, context.config.raw);
    let mut stop = Signals::new()?;
    let here = env::current_dir()
        .context("this folder")
        .map_err(Failure::Machine)?;
    let options = AppOptions {
        hosts: HostOptions {
            approver: approver(&screen, args.json),
            tasks: ServedTasks::Of(engine_in(&here).map_err(Failure::Input)?),
            ..HostOptions::default()
        },
        ..AppOptions::default()
    };
    let app = context.open(options)?;
    let host = app
        .hosts
        .named("engine", &context.launch_settings(None))
        .map_err(Failure::Input)?;
    let (engine, skills) = app.hosts.engine_and_skills(&host).map_err(refused)?;
    let model = model(&engine, &skills, args, &screen).await?;
    let worker = Worker::start(&app.manager).await?;
    let session = context.session();
    let caller = Caller::Shell {
        session: session.clone(),
        host,
    };
    let invocation = Invocation {
        name: args.name.clone(),
        arguments: request,
        by: Invoker::User,
        session,
        model,
    };
    let mut run = SkillRun::new(&app.manager, &skills, caller, invocation);
    // People see what happens while it happens; programs get the steps, if they ask for them.
    if args.sub_agent_events && args.json {
        run = run.with_sub_agent_events();
    }
    let watching = Watching {
        screen: screen.clone(),
        view: LiveView::new(&screen),
        live: (!args.json).then(|| engine.watch_task(run.task())),
        frames: screen.frames(),
    };
    let exit = follow(&app.manager, run, args, watching, &mut stop).await;
    screen.end();
    tokio::select! {
        () = context.close(app, worker) => exit,
        () = stop.next() => process::exit(INTERRUPTED),
    }
}

/// The model to use. It is checked now, not in a task that fails later; one that only the skill
/// prefers need not be there.
async fn model(
    engine: &Engine,
    skills: &Skills,
    args: &SkillRunArgs,
    screen: &Screen,
) -> Result<Option<ModelName>, Failure> {
    let listed = skills.find(&args.name, Invoker::User).await.ok();
    let manifest = listed.as_ref().map(|listed| &listed.skill.manifest);
    let joins = |manifest: &&Manifest| manifest.context == SkillContext::Inherit;
    let named = manifest
        .filter(|manifest| !joins(manifest))
        .and_then(|manifest| manifest.agent.as_deref())
        .unwrap_or(LaunchTask::USUAL_AGENT);
    let known = engine.agents().await.map_err(refused)?;
    let agent = agent_meant(named, known.iter().map(AgentName::as_str));
    let Some(agent) = agent.map(AgentName::from) else {
        // The launch says which there are.
        return Ok(None);
    };
    if args.model.is_some() || (manifest.is_some() && !args.json) {
        let checked = engine.check(&agent, args.model.as_deref());
        checked.map_err(refused)?;
    }
    if args.model.is_none() && !args.json {
        let unused = unused_model(engine, skills, &agent, args, manifest);
        if let Some((model, why)) = unused {
            screen.remark(&format!("the skill's model `{model}` is not used: {why}"));
        }
    }
    let preferred = manifest
        .filter(joins)
        .and_then(|manifest| manifest.model.as_deref())
        .filter(|model| engine.check(&agent, Some(model)).is_ok());
    Ok(args.model.as_deref().or(preferred).map(ModelName::from))
}

/// The model that the skill names, if it is not used, and why.
fn unused_model(
    engine: &Engine,
    skills: &Skills,
    agent: &AgentName,
    args: &SkillRunArgs,
    manifest: Option<&Manifest>,
) -> Option<(String, String)> {
    let catalog = skills.catalog();
    let written = catalog.get_for_person(&args.name).ok()?;
    let model = written.skill.manifest.model.clone()?;
    if model == ModelName::INHERIT {
        return None;
    }
    if manifest?.model.is_none() {
        let why = "a project may not name one of another provider";
        return Some((model, why.to_owned()));
    }
    let error = engine.check(agent, Some(&model)).err()?;
    Some((model, error.to_string()))
}

/// Shows what happens until the skill has ended. The first Ctrl-C cancels the task, the second
/// ends at once.
async fn follow(
    manager: &Manager,
    mut run: SkillRun,
    args: &SkillRunArgs,
    mut watching: Watching,
    stop: &mut Signals,
) -> Result<Exit, Failure> {
    let mut exit = Exit::Done;
    let mut stopping = false;
    loop {
        let event = match next(&mut run, &mut watching, stop).await {
            Next::Event(event) => event,
            Next::Stop if stopping => {
                watching.screen.end();
                process::exit(INTERRUPTED);
            }
            Next::Stop => {
                stopping = true;
                watching
                    .screen
                    .remark("stopping; Ctrl-C again ends at once");
                if let Err(problem) = run.stop().await {
                    tracing::warn!(task = %run.task(), %problem, "cancelling failed");
                }
                continue;
            }
        };
        let Some(event) = event else {
            return match watching.view.trouble() {
                Some(error) => Err(Failure::Output(error)),
                None => Ok(exit),
            };
        };
        match &event {
            SkillEvent::Error { code, .. } => exit = exit_of(*code),
            SkillEvent::Done {
                completed: false, ..
            } if exit == Exit::Done => exit = Exit::TaskFailed,
            _ => {}
        }
        if args.json {
            print::json_line(&SkillEventView::from(&event))?;
        } else {
            show(manager, &event, &mut watching).await?;
        }
    }
}

/// What a person sees of the sub-agent while it works.
struct Watching {
    screen: Screen,
    view: LiveView,
    /// Nothing for programs, and when there is nothing more to come.
    live: Option<LiveEvents>,
    frames: Frames,
}

impl Watching {
    fn show(&mut self, live: Option<Live>) {
        self.frames.changed();
        match live {
            Some(live) => self.view.show(live),
            None => self.live = None,
        }
    }

    /// Shows all that has happened so far.
    fn catch_up(&mut self) {
        while let Some(live) = next_live(&mut self.live).now_or_never() {
            self.show(live);
        }
    }
}

/// What happens next, if anything does.
async fn next_live(live: &mut Option<LiveEvents>) -> Option<Live> {
    match live {
        Some(live) => live.next().await,
        None => std::future::pending().await,
    }
}

enum Next {
    /// An event; `None` after the last.
    Event(Option<SkillEvent>),
    /// Ctrl-C or SIGTERM.
    Stop,
}

/// The next event, or a signal to stop. Until then what happens is shown. One future waits for the
/// event all the time: a new one might miss what has come.
async fn next(run: &mut SkillRun, watching: &mut Watching, stop: &mut Signals) -> Next {
    let mut event = pin!(run.next());
    loop {
        tokio::select! {
            event = &mut event => {
                watching.catch_up();
                return Next::Event(event);
            }
            live = next_live(&mut watching.live) => watching.show(live),
            () = watching.frames.next() => watching.screen.tick(),
            () = stop.next() => return Next::Stop,
        }
    }
}

fn exit_of(code: ErrorCode) -> Exit {
    match code {
        ErrorCode::SubagentError => Exit::TaskFailed,
        ErrorCode::MaxDepthExceeded
        | ErrorCode::SkillNotFound
        | ErrorCode::SkillBroken
        | ErrorCode::NotInvocable
        | ErrorCode::InvocationFailed => Exit::BadInput,
    }
}

/// For people: the answer on standard output, everything else beside it.
async fn show(
    manager: &Manager,
    event: &SkillEvent,
    watching: &mut Watching,
) -> Result<(), Failure> {
    let screen = watching.screen.clone();
    match event {
        SkillEvent::Status { task, message } => {
            screen.remark(&format!("{message} ({task})"));
            watching.view.begin();
        }
        // The live view has shown the steps.
        SkillEvent::SubAgent { .. } => {}
        SkillEvent::Message { task, parts } => {
            screen.end();
            let request = OutputRequest::new(task, false, None).map_err(Problem::from)?;
            let report = manager.output(&Caller::Person, request).await?;
            let completed = report.shown.task.status() == Status::Completed;
            let answer = report.answer.filter(|answer| !answer.trim().is_empty());
            if !completed || answer.is_none() {
                screen.remark(&parts[0]);
            }
            if let Some(answer) = answer.filter(|_| !watching.view.has_answered()) {
                watching.view.answer(&answer);
            }
            screen.remark(&format!("{}; `asyncagents trace` shows it", parts[1]));
        }
        SkillEvent::Error { code, message, .. } => {
            screen.end();
            screen.remark(&format!("asyncagents: {}: {message}", code.name()));
        }
        SkillEvent::Done { .. } => {}
    }
    Ok(())
}
