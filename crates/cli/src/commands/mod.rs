//! The verbs, one file each.

mod acp;
mod answer;
mod caller;
mod cancel;
mod clear;
mod completions;
mod config;
mod db;
mod demo;
mod doctor;
mod fork;
mod list;
mod man;
mod mcp;
mod message;
mod models;
mod notices;
mod opencode_bridge;
mod output;
mod parse;
mod prune;
mod run;
mod runtime;
mod sessions;
mod setup;
mod signals;
mod skill;
mod task;
mod trace;
mod worker;

use std::{
    fs,
    io::{self, IsTerminal},
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::anyhow;
use asyncagents_core::{host_ref::HostSetup, id::SessionId};
use asyncagents_engine::Approver;
use asyncagents_runtime::{Manager, Worker};

use self::runtime::{in_runtime, two_threads};
use crate::{
    agent_shell,
    args::Assignment,
    compose::{self, App, AppOptions},
    config::{Config, Loaded, load, load_without_project, no_home},
    exit::{Exit, Failure},
    folders,
    hosts::{ExtraHostKind, KnownHosts},
    launch_secrets::Overrides,
    log,
    make_visible::make_visible,
    print,
    screen::Screen,
    trust::{self, Older},
    worker_process,
};

#[derive(Debug, clap::Subcommand)]
enum Command {
    Run(run::RunArgs),
    Demo(demo::DemoArgs),
    Task(task::TaskArgs),
    Resume(task::ResumeArgs),
    List(list::ListArgs),
    Sessions(sessions::SessionsArgs),
    Models(models::ModelsArgs),
    Output(output::OutputArgs),
    Message(message::MessageArgs),
    Answer(answer::AnswerArgs),
    Cancel(cancel::CancelArgs),
    Clear(clear::ClearArgs),
    Prune(prune::PruneArgs),
    Worker(worker::WorkerArgs),
    /// Connect the plugin in OpenCode with its tasks; the plugin starts this itself.
    #[command(hide = true)]
    OpencodeBridge,
    Mcp(mcp::McpArgs),
    Acp(acp::AcpArgs),
    #[command(hide = true)]
    Notices(notices::NoticesArgs),
    #[command(hide = true)]
    Hook(notices::HookArgs),
    Config(config::ConfigArgs),
    Db(db::DbArgs),
    Fork(fork::ForkArgs),
    Skill(skill::SkillArgs),
    Trace(trace::TraceArgs),
    Setup(setup::SetupArgs),
    Doctor(doctor::DoctorArgs),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
}

impl Command {
    /// The settings that the verb's own options set.
    fn settings(&self) -> Vec<Assignment> {
        match self {
            Command::Run(args) => args.settings(),
            Command::Task(args) => args.settings(),
            Command::Clear(args) => args.settings(),
            Command::Skill(args) => args.settings(),
            _ => Vec::new(),
        }
    }

    /// Whether another agent runs it, as it was set up to for its user's sessions.
    fn is_for_sessions(&self) -> bool {
        self.is_hook() || matches!(self, Command::Mcp(_) | Command::OpencodeBridge)
    }

    /// Whether a hook of another agent runs it.
    fn is_hook(&self) -> bool {
        match self {
            Command::Notices(_) => true,
            Command::Hook(args) => !args.asks(),
            _ => false,
        }
    }
}

/// Runs the command line of this process.
pub(crate) fn run(extra: &'static [ExtraHostKind]) -> Result<Exit, Failure> {
    let args = parse::parse();
    let is_hook = args.command.is_hook();
    let done = run_parsed(args, extra);
    if is_hook {
        return done.map_err(Failure::of_hook);
    }
    done
}

fn run_parsed(args: parse::Args, extra: &'static [ExtraHostKind]) -> Result<Exit, Failure> {
    let parse::Args {
        command,
        settings: flags,
    } = args;
    // In a sandbox in which there is no configuration.
    if let Command::Mcp(mcp::McpArgs { connect: true, .. }) = &command {
        return mcp::relay();
    }
    if let Command::Hook(args) = &command
        && args.asks()
    {
        return notices::ask();
    }
    if command.is_for_sessions() && agent_shell::is_in_child() {
        return in_child(&command);
    }
    let loaded = match &command {
        // These serve all folders; what a project says holds in its own.
        Command::Worker(_) | Command::Acp(_) => load_without_project(&flags),
        // A session is told of its tasks, whatever its project's file says.
        command if command.is_hook() => load_without_project(&flags),
        // These print the same whatever is set, or set wrongly.
        Command::Completions(_) | Command::Man(_) => Loaded::only(&[]),
        Command::Config(args) if args.schema => Loaded::only(&[]),
        _ => load(&flags),
    };
    let loaded = loaded.map_err(Failure::Input)?;
    for remark in &loaded.remarks {
        print::remark(&format!("asyncagents: {}\n", make_visible(remark)));
    }
    let context = |quiet| {
        log::begin(&loaded.config, quiet).map_err(Failure::Input)?;
        CommandContext::new(&loaded, flags.clone(), extra)
    };
    // Other programs show the standard error of what they start to people or models, so its log goes
    // to a file.
    let server_context = |log| {
        let context = CommandContext::new(&loaded, flags.clone(), extra)?;
        logging_to_file(context, log)
    };
    match &command {
        Command::Run(args) => run::run(&context(true)?, args),
        Command::Demo(args) => demo::run(args),
        Command::Fork(args) => fork::run(&loaded.config, args),
        Command::Task(args) => in_runtime(task::launch(&context(true)?, args)),
        Command::Resume(args) => in_runtime(task::resume(&context(true)?, args)),
        Command::List(args) => in_runtime(list::run(&context(true)?, args)),
        Command::Sessions(args) => in_runtime(sessions::run(&context(true)?, args)),
        Command::Models(args) => models::run(&loaded.config, args),
        Command::Output(args) => in_runtime(output::run(&context(true)?, args)),
        Command::Message(args) => in_runtime(message::run(&context(true)?, args)),
        Command::Answer(args) => in_runtime(answer::run(&context(true)?, args)),
        Command::Cancel(args) => in_runtime(cancel::run(&context(true)?, args)),
        Command::Clear(args) => in_runtime(clear::run(&context(true)?, args)),
        Command::Prune(args) => in_runtime(prune::run(&context(true)?, args)),
        Command::Worker(args) => worker::run(&context(false)?, args),
        Command::OpencodeBridge => opencode_bridge::run(&bridge_context(&loaded, &flags)?),
        Command::Mcp(args) => mcp::run(&server_context(".mcp.log")?, args),
        Command::Acp(args) => acp::run(&server_context(".acp.log")?, args),
        Command::Notices(args) => notices::run(&server_context(".mcp.log")?, args),
        Command::Hook(args) => notices::hook(args),
        Command::Config(args) => config::run(&loaded, args),
        Command::Db(args) => in_runtime(db::run(&context(true)?, args)),
        Command::Trace(args) => in_runtime(trace::run(&context(true)?, args)),
        Command::Skill(args) => skill::run(&loaded.config, || context(true), args),
        Command::Setup(args) => setup::run(&loaded.config, args),
        Command::Doctor(args) => in_runtime(doctor::run(&context(true)?, args)),
        Command::Completions(args) => completions::run(args),
        Command::Man(args) => man::run(args),
    }
}

/// What is installed in an agent for its user's sessions, in a child that we have started: nothing. In
/// the sandbox there is no configuration either.
fn in_child(command: &Command) -> Result<Exit, Failure> {
    match command {
        Command::Mcp(_) => mcp::without_tools(),
        Command::OpencodeBridge => Err(Failure::Input(anyhow!(
            "this OpenCode is a child of asyncagents, which has its tools already"
        ))),
        _ => Ok(Exit::Done),
    }
}

/// A bridge talks to the plugin alone, so its log goes to a file.
fn bridge_context(loaded: &Loaded, flags: &[Assignment]) -> Result<CommandContext, Failure> {
    let context = CommandContext::new(loaded, flags.to_vec(), &[])?;
    logging_to_file(context, ".opencode.log")
}

fn logging_to_file(mut context: CommandContext, end: &str) -> Result<CommandContext, Failure> {
    let file = folders::beside(&context.config.db, end);
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)
            .map_err(|error| Failure::Input(anyhow!("{}: {error}", folder.display())))?;
    }
    context.config.log_file.get_or_insert(file);
    log::begin(&context.config, false).map_err(Failure::Input)?;
    Ok(context)
}

/// What the verbs about tasks have in common.
#[derive(Clone)]
struct CommandContext {
    config: Config,
    flags: Vec<Assignment>,
    /// Settings of the built-in agent that the environment and the flags set.
    overrides: Overrides,
    /// What becomes of a database from before there were seals.
    older: Older,
    /// Kinds of host that this program brings.
    extra: &'static [ExtraHostKind],
}

impl CommandContext {
    fn new(
        loaded: &Loaded,
        flags: Vec<Assignment>,
        extra: &'static [ExtraHostKind],
    ) -> Result<Self, Failure> {
        let mut config = loaded.config.clone();
        if config.db.as_os_str().is_empty() {
            return Err(Failure::Input(anyhow!(
                "{}, so there is no data folder; choose a file with --db",
                no_home()
            )));
        }
        config.db = real_path(&config.db).map_err(|error| Failure::Input(error.into()))?;
        Ok(Self {
            config,
            flags,
            overrides: loaded.overrides.clone(),
            older: if loaded.is_kept("db") {
                Older::Believed
            } else {
                Older::Refused
            },
            extra,
        })
    }

    /// Opens the database, to work on what is in it.
    fn open(&self, mut options: AppOptions) -> Result<App, Failure> {
        options.older = self.older;
        options.extra = self.extra;
        compose::open(&self.config, options)
    }

    /// For requests that change something.
    fn manager(&self) -> Result<Manager, Failure> {
        Ok(self.with_worker(self.open(AppOptions::default())?))
    }

    /// Starts a worker in place of an older one that was ended.
    fn with_worker(&self, app: App) -> Manager {
        if app.ended_older {
            worker_process::replace(&self.config, &self.flags);
        }
        app.manager
    }

    /// For requests that only read. Where there is no database, none is made.
    fn reader(&self) -> Result<Option<Manager>, Failure> {
        if fs::symlink_metadata(&self.config.db).is_err() {
            trust::check_file(&self.config.db).map_err(Failure::Input)?;
            return Ok(None);
        }
        let options = AppOptions {
            read_only: true,
            ..AppOptions::default()
        };
        Ok(Some(self.with_worker(self.open(options)?)))
    }

    /// The session that tasks from the command line belong to.
    fn session(&self) -> SessionId {
        self.config.session.as_str().into()
    }

    /// The host in which tasks run.
    fn host(&self, hosts: &KnownHosts, parent: &SessionId) -> Result<HostSetup, Failure> {
        let host = hosts.named(&self.config.host, &self.launch_settings(Some(parent)));
        host.map_err(Failure::Input)
    }

    /// The settings that go with a launch. What is asked for waits for an answer if somebody is
    /// there who could give one, unless the user has decided that.
    fn launch_settings(&self, parent: Option<&SessionId>) -> Overrides {
        let mut settings = self.overrides.clone();
        if self.config.agent_config.unanswered.is_none() {
            let is_session = |parent: &SessionId| parent.as_str().starts_with(SessionId::KIND);
            let waits = parent.is_some_and(is_session) || is_person_there();
            let (key, wait) = ("permissions.unanswered", "wait");
            if waits {
                settings.insert(key.to_owned(), wait.to_owned());
            }
        }
        settings
    }

    /// Starts a worker if there is work and none is alive.
    async fn ensure_worker(&self, manager: &Manager) {
        worker_process::ensure(&self.config, &self.flags, manager).await;
    }

    /// Starts a worker whenever there is work and none is alive. Never returns.
    async fn keep_worker(&self, manager: &Manager) {
        worker_process::keep(&self.config, &self.flags, manager).await;
    }

    /// Starts a worker if none is alive, where this process has launched tasks and looks after none.
    async fn attend_tasks(&self, manager: &Manager) {
        worker_process::attend(&self.config, &self.flags, manager).await;
    }

    /// Shuts down. What is left of background tasks goes on in a worker.
    async fn close(&self, app: App, worker: Worker) {
        // First the agents, so that another worker does not take over what is about to finish.
        app.hosts.stop().await;
        worker.stop().await;
        self.ensure_worker(&app.manager).await;
    }
}

/// Whether a person has typed this command: it has a terminal, and no agent around it.
fn is_person_there() -> bool {
    let terminal = io::stdin().is_terminal() || io::stderr().is_terminal();
    terminal && agent_shell::around().is_none()
}

/// Asks the person at the terminal, if there is one. An agent that has made a terminal for itself
/// would answer its own questions.
fn approver(screen: &Screen, json: bool) -> Option<Arc<dyn Approver>> {
    let can_ask = io::stdin().is_terminal() && io::stderr().is_terminal() && !json;
    let can_ask = can_ask && agent_shell::around().is_none();
    can_ask.then(|| Arc::new(screen.clone()) as Arc<dyn Approver>)
}

/// The path of a file without links: its lock and its sessions are beside it.
fn real_path(path: &Path) -> io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    if let Ok(real) = path.canonicalize() {
        return Ok(real);
    }
    let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
    match (folder, path.file_name()) {
        (Some(folder), Some(name)) => Ok(folder.join(name)),
        _ => Ok(path),
    }
}
