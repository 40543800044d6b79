//! The command line.

use std::{path::PathBuf, time::Duration};

use asyncagents_core::{
    budget::Cost,
    fork::{Limits, Preset},
    read::Format,
    task::Status,
};
use clap::{
    Parser, Subcommand,
    builder::{PossibleValuesParser, TypedValueParser},
};

use crate::config;

/// Background sub-agents that inherit the conversation.
#[derive(Debug, Parser)]
#[command(
    version,
    about,
    after_help = "\
Examples:
  asyncagents demo                         see it work, offline
  asyncagents run \"Why is the login slow\"  the built-in agent, with background sub-agents
  asyncagents task \"Find the slow query\"   launch a task; prints its ID at once
  asyncagents list                         all tasks
  asyncagents output ID --follow           how far it has come, then its result
  asyncagents sessions                     conversations to go on with
  asyncagents models                       which models can be used here
  asyncagents fork session.json            show what a forked child would inherit
  asyncagents skill list                   the skills an agent has here
  asyncagents trace ID                     what happened in a run, step by step
  asyncagents setup opencode               background agents in OpenCode
  asyncagents help task                    all options and more examples

Exit codes: 0 done; 1 the machine failed; 2 wrong arguments or input, or refused;
`output` also: 3 not finished yet; `run`, `skill run`, `output` and `task --follow`: 4 it failed
or was stopped."
)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) common: Common,

    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every verb understands, before it or after it.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Common {
    /// The file that holds all tasks [default: in your data folder].
    #[arg(long, value_name = "FILE")]
    pub(crate) db: Option<String>,

    /// Change a setting for this command; may be repeated. `asyncagents config` lists them.
    #[arg(short = 'c', long = "set-config", value_name = "KEY=VALUE", value_parser = configured)]
    pub(crate) settings: Vec<(String, String)>,

    /// When there are colours: auto, always or never [default: the setting `color`].
    #[arg(long, value_name = "WHEN")]
    pub(crate) color: Option<String>,

    /// Keep control characters in answers that go to a file or a pipe.
    #[arg(long)]
    pub(crate) raw: bool,
}

impl Args {
    /// Everything on the command line that is a setting.
    pub(crate) fn settings(&self) -> Vec<(String, String)> {
        let mut settings = Vec::new();
        let common = match &self.command {
            Command::Task(args) => &args.common,
            Command::Resume(args) => &args.common,
            Command::List(args) => &args.common,
            Command::Sessions(args) => &args.common,
            Command::Models(args) => &args.common,
            Command::Output(args) => &args.common,
            Command::Cancel(args) => &args.common,
            Command::Clear(args) => &args.common,
            Command::Worker(args) => &args.common,
            Command::OpencodeBridge(args) => &args.common,
            Command::Config(args) => &args.common,
            Command::Fork(args) => &args.common,
            Command::Run(args) => &args.common,
            Command::Demo(args) => &args.common,
            Command::Trace(args) => &args.common,
            Command::Db(DbArgs {
                verb: DbVerb::Adopt(args),
            }) => &args.common,
            Command::Skill(args) => match &args.verb {
                SkillVerb::Run(args) => &args.common,
                SkillVerb::List(args) => &args.common,
                SkillVerb::Show(args) => &args.common,
                SkillVerb::Check(args) => &args.common,
            },
            Command::Setup(SetupArgs {
                host: SetupHost::Opencode(args),
            }) => &args.common,
        };
        for common in [&self.common, common] {
            settings.extend(common.settings.iter().cloned());
            let db = common.db.clone();
            settings.extend(db.map(|db| ("db".to_owned(), db)));
            let color = common.color.clone();
            settings.extend(color.map(|color| ("color".to_owned(), color)));
            let raw = common.raw.then(|| ("raw".to_owned(), "true".to_owned()));
            settings.extend(raw);
        }
        let mut add = |key: &str, value: &Option<String>| {
            settings.extend(value.clone().map(|value| (key.to_owned(), value)));
        };
        match &self.command {
            Command::Task(args) => {
                add("host", &args.host);
                let opencode = args.opencode.as_ref().map(|url| format!("opencode:{url}"));
                add("host", &opencode);
                add("session", &args.session);
                add("permissions.mode", &args.permission);
            }
            Command::Clear(args) => add("session", &args.session),
            Command::Run(args) => {
                add("permissions.mode", &args.permission);
                add("model", &args.model);
            }
            Command::Skill(SkillArgs {
                verb: SkillVerb::Run(args),
            }) => {
                add("permissions.mode", &args.permission);
            }
            Command::Fork(_)
            | Command::Resume(_)
            | Command::List(_)
            | Command::Sessions(_)
            | Command::Models(_)
            | Command::Output(_)
            | Command::Cancel(_)
            | Command::Worker(_)
            | Command::OpencodeBridge(_)
            | Command::Config(_)
            | Command::Db(_)
            | Command::Demo(_)
            | Command::Trace(_)
            | Command::Skill(_)
            | Command::Setup(_) => {}
        }
        settings
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(RunArgs),
    Demo(DemoArgs),
    Task(TaskArgs),
    Resume(ResumeArgs),
    List(ListArgs),
    Sessions(SessionsArgs),
    Models(ModelsArgs),
    Output(OutputArgs),
    Cancel(CancelArgs),
    Clear(ClearArgs),
    Worker(WorkerArgs),
    #[command(hide = true)]
    OpencodeBridge(BridgeArgs),
    Config(ConfigArgs),
    Db(DbArgs),
    Fork(ForkArgs),
    Skill(SkillArgs),
    Trace(TraceArgs),
    Setup(SetupArgs),
}

/// Run the built-in agent in this folder, with background sub-agents.
///
/// The answer goes to standard output; tools, background tasks and totals to standard error.
/// The run waits for its background tasks. Ctrl-C asks everything to stop, a second one ends
/// at once. Exit code 0 with an answer, 4 if the run failed or was stopped, 130 if it was ended by
/// a second Ctrl-C.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  asyncagents run \"Why is the login slow? Look at the three services in parallel.\"
  asyncagents run --model ollama/qwen3 \"Explain this folder\"
  asyncagents run --continue \"And the tests?\"
  asyncagents run --continue                   go on with a run that was interrupted
  asyncagents run - < prompt.txt")]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) common: Common,

    /// What to do, or `-` for standard input.
    #[arg(value_name = "PROMPT")]
    pub(crate) words: Vec<String>,

    /// Who does it: general, explore, plan, or one of your own [default: the session's, or the
    /// setting `agent`].
    #[arg(long)]
    pub(crate) agent: Option<String>,

    /// The model, as provider/model or an alias [default: the setting `model`].
    #[arg(long)]
    pub(crate) model: Option<String>,

    /// Go on with the newest session of this folder.
    #[arg(long = "continue", short = 'C', conflicts_with = "session")]
    pub(crate) go_on: bool,

    /// Go on with this session: its ID, or the beginning of it. `asyncagents sessions` lists them.
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,

    /// What the agent does without asking: ask, auto-edit or yolo [default: the setting
    /// `permissions.mode`].
    #[arg(long, value_name = "MODE")]
    pub(crate) permission: Option<String>,

    /// End when the agent has answered; background tasks go on in a worker.
    #[arg(long)]
    pub(crate) no_wait: bool,

    /// Print a line of JSON for everything that happens.
    #[arg(long)]
    pub(crate) json: bool,
}

/// See it work: an agent with background sub-agents, offline, in a temporary folder.
///
/// No key and no network: a scripted model answers on a loopback port, over the real
/// protocol. Everything else is real: the tools, the sandbox, the store, the forks. Your
/// settings do not matter.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Example:\n  asyncagents demo --keep demo")]
pub(crate) struct DemoArgs {
    #[command(flatten)]
    pub(crate) common: Common,

    /// Keep the folder, with the database and every request that the model got, here.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) keep: Option<PathBuf>,
}

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
pub(crate) struct TaskArgs {
    #[command(flatten)]
    pub(crate) common: Common,

    /// What to do, or `-` for standard input.
    pub(crate) prompt: String,

    /// A few words for people [default: the beginning of the prompt].
    #[arg(long, short, value_name = "TEXT")]
    pub(crate) description: Option<String>,

    /// Who works on it [default: the setting `agent`].
    #[arg(long)]
    pub(crate) agent: Option<String>,

    /// The model, if not the agent's own.
    #[arg(long)]
    pub(crate) model: Option<String>,

    /// Let the child inherit the session's conversation.
    #[arg(long)]
    pub(crate) fork: bool,

    /// Go on with a finished task instead; like `asyncagents resume`.
    #[arg(long, value_name = "ID")]
    pub(crate) resume: Option<String>,

    /// The session it belongs to [default: the setting `session`].
    #[arg(long, value_name = "NAME")]
    pub(crate) session: Option<String>,

    /// What the built-in agent does without asking: ask, auto-edit or yolo [default: the setting
    /// `permissions.mode`].
    #[arg(long, value_name = "MODE")]
    pub(crate) permission: Option<String>,

    /// Where it runs: `engine`, `engine:FOLDER`, `opencode:URL`, `scripted` or `scripted:FILE`
    /// [default: the setting `host`].
    #[arg(long)]
    pub(crate) host: Option<String>,

    /// Run it in the `opencode serve` at this address; its password comes from
    /// OPENCODE_SERVER_PASSWORD. `--session` names the session that is told, and inherited.
    #[arg(long, value_name = "URL", conflicts_with = "host")]
    pub(crate) opencode: Option<String>,

    /// End it after this many tokens.
    #[arg(long, value_name = "N")]
    pub(crate) max_tokens: Option<u64>,

    /// End it after this many dollars.
    #[arg(long, value_name = "USD", value_parser = dollars)]
    pub(crate) max_cost: Option<Cost>,

    /// End it after this time, as 90s, 10m, 1h 30m.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) max_time: Option<Duration>,

    /// End it after this many answers of the model.
    #[arg(long, value_name = "N")]
    pub(crate) max_turns: Option<u64>,

    /// End it after this many tool calls.
    #[arg(long, value_name = "N")]
    pub(crate) max_tool_calls: Option<u64>,

    /// Show its progress until it has ended, then its result, like `output --follow`.
    #[arg(long)]
    pub(crate) follow: bool,

    /// Print the task as one line of JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Go on with a finished task, in its session.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Example:\n  asyncagents resume 3f9c21ab \"And in the tests?\"")]
pub(crate) struct ResumeArgs {
    #[command(flatten)]
    pub(crate) common: Common,

    /// The task's ID, or the beginning of it.
    #[arg(value_name = "ID")]
    pub(crate) task: String,

    /// What to do now, or `-` for standard input.
    pub(crate) prompt: String,

    /// Print the task as one line of JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show the tasks there are, newest first.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  asyncagents list --status running
  asyncagents list --json | jq -r '.[].short_id'")]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(crate) common: Common,

    /// Only the tasks of this session.
    #[arg(long = "session", value_name = "NAME")]
    pub(crate) of: Option<String>,

    /// Only those with this status.
    #[arg(long, value_parser = named(Status::ALL))]
    pub(crate) status: Option<Status>,

    /// Print one line of JSON: a list of tasks.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show the sessions of the built-in agent in this folder, newest first.
///
/// A session is a conversation that `asyncagents run` began; `run --session ID` goes on with it.
/// The sessions of background tasks are not among them: `asyncagents list` shows the tasks.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  asyncagents sessions
  asyncagents sessions --all --json | jq -r '.[].id'
  asyncagents run --session ses_3f9c \"And the tests?\"")]
pub(crate) struct SessionsArgs {
    #[command(flatten)]
    pub(crate) common: Common,

    /// Those of all folders.
    #[arg(long)]
    pub(crate) all: bool,

    /// No more than the newest so many.
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) limit: usize,

    /// Print one line of JSON: a list of sessions.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show which models can be used here: providers and whether there is a key, the default, short
/// names, and whether a price is known.
///
/// Nobody is asked, and no key is shown: of a key only the name of its variable.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Example:\n  asyncagents models --json | jq -r .default.model")]
pub(crate) struct ModelsArgs {
    #[command(flatten)]
    pub(crate) common: Common,

    /// Print one line of JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show where a task stands, and its result if it has ended.
///
/// Exit code 0 if it completed, 3 if it has not ended yet, 4 if it failed or was cancelled.
#[derive(Debug, Default, clap::Args)]
#[command(after_long_help = "Examples:
  asyncagents output 3f9c21ab
  asyncagents output 3f9c21ab --block --timeout 600
  asyncagents output 3f9c21ab --follow
  asyncagents output 3f9c21ab --json | jq -r .answer")]
pub(crate) struct OutputArgs {
    #[command(flatten)]
    pub(crate) common: Common,

    /// The task's ID, or the beginning of it.
    #[arg(value_name = "ID")]
    pub(crate) task: String,

    /// Wait until it has ended.
    #[arg(long)]
    pub(crate) block: bool,

    /// With --block: wait no longer than this many seconds, at most 600 [default: 30].
    #[arg(long, value_name = "SECONDS", requires = "block")]
    pub(crate) timeout: Option<u64>,

    /// Show the child's conversation too.
    #[arg(long)]
    pub(crate) full_session: bool,

    /// With --full-session: what the tools answered, too.
    #[arg(long, requires = "full_session")]
    pub(crate) tool_results: bool,

    /// With --full-session: only what came after this message.
    #[arg(long, value_name = "MESSAGE", requires = "full_session")]
    pub(crate) since: Option<String>,

    /// With --full-session: only the newest so many messages.
    #[arg(long, value_name = "N", requires = "full_session")]
    pub(crate) limit: Option<usize>,

    /// Show its progress on standard error until it has ended; with --json, a line of JSON
    /// on standard output for every change.
    #[arg(long, conflicts_with = "block")]
    pub(crate) follow: bool,

    /// Print the task as one line of JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Stop tasks and everything below them.
#[derive(Debug, clap::Args)]
pub(crate) struct CancelArgs {
    #[command(flatten)]
    pub(crate) common: Common,

    /// The tasks' IDs, or the beginnings of them.
    #[arg(value_name = "ID", required = true)]
    pub(crate) tasks: Vec<String>,

    /// Print each task as one line of JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Stop what a session has running and forget its tasks.
#[derive(Debug, clap::Args)]
pub(crate) struct ClearArgs {
    #[command(flatten)]
    pub(crate) common: Common,

    /// The session [default: the setting `session`].
    #[arg(long, value_name = "NAME")]
    pub(crate) session: Option<String>,

    /// Print `{cleared, stopped}` as one line of JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Look after tasks, in the foreground.
///
/// Commands start a worker in the background when there is work and none is alive, so this is
/// for those who want to watch it or supervise it themselves. It ends after `worker.idle`
/// without work, and on Ctrl-C or SIGTERM, leaving every task resumable.
#[derive(Debug, clap::Args)]
pub(crate) struct WorkerArgs {
    #[command(flatten)]
    pub(crate) common: Common,
}

/// Connect the plugin in OpenCode with its tasks; the plugin starts this itself.
#[derive(Debug, clap::Args)]
pub(crate) struct BridgeArgs {
    #[command(flatten)]
    pub(crate) common: Common,
}

/// Look after the database.
#[derive(Debug, clap::Args)]
pub(crate) struct DbArgs {
    #[command(subcommand)]
    pub(crate) verb: DbVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DbVerb {
    Adopt(AdoptArgs),
}

/// Make a database yours that was copied, put back from a backup, or brought from elsewhere.
///
/// What is in a database decides what runs on your account, so nothing in one is run that you
/// have not made where it is. After this it is yours. Tasks in it that were unfinished end: the
/// original may be at work on them. What it holds can be read; to go on with a task, launch a new
/// one. Conversations in a copy of a database of yours can be continued. In one that has no seal of
/// your key they can only be read, because somebody else may have written what their models are
/// told; if they are yours (the key was lost, or an older version made the file), say
/// --keep-conversations.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Example:\n  asyncagents db adopt --db backup.db")]
pub(crate) struct AdoptArgs {
    #[command(flatten)]
    pub(crate) common: Common,

    /// Let its conversations be continued even if it has no seal of yours.
    #[arg(long)]
    pub(crate) keep_conversations: bool,

    /// Print one line of JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show every setting, its value, and where the value comes from.
///
/// A setting comes from, the later over the earlier: its default;
/// `asyncagents/asyncagents.toml` in your configuration folder; `asyncagents.toml` in this
/// folder or the nearest one above; the environment (`limits.depth` is
/// `ASYNCAGENTS_LIMITS_DEPTH`); the command line (`-c limits.depth=1`). A worker keeps the
/// settings it was started with.
#[derive(Debug, clap::Args)]
pub(crate) struct ConfigArgs {
    #[command(flatten)]
    pub(crate) common: Common,

    /// Print one line of JSON: a list of settings.
    #[arg(long)]
    pub(crate) json: bool,
}

fn parse_duration(text: &str) -> Result<Duration, String> {
    let mut time = Duration::ZERO;
    config::duration(&mut time, text).map(|()| time)
}

fn dollars(text: &str) -> Result<Cost, String> {
    config::dollars(text)
}

/// Show what a forked child would inherit of a saved session.
///
/// Prints the context to standard output, and what was kept, cut and removed to
/// standard error. Nothing is started and no model is asked.
#[derive(Debug, clap::Args)]
#[command(after_long_help = fork_help())]
pub(crate) struct ForkArgs {
    #[command(flatten)]
    pub(crate) common: Common,

    /// The saved session, or `-` for standard input.
    #[arg(value_name = "FILE|-")]
    pub(crate) input: PathBuf,

    /// The format of the session.
    #[arg(long, value_name = "HOST", default_value = "opencode", value_parser = named(Format::ALL))]
    pub(crate) from: Format,

    /// The set of limits to begin with: `graduated` keeps the newest results whole and
    /// cuts older ones, `flat` cuts all at one length, `exact` cuts nothing and refuses
    /// what does not fit.
    /// [default: the setting `fork.preset`, with its limits].
    #[arg(long, value_parser = named(Preset::ALL))]
    pub(crate) preset: Option<Preset>,

    /// Change one limit of the preset; may be repeated.
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting)]
    pub(crate) set: Vec<(String, String)>,

    /// Print `{context, preamble, stats}` as one line of JSON instead of the context.
    #[arg(long)]
    pub(crate) json: bool,

    /// Print the preamble, which tells the child about its context, before the context.
    #[arg(long, conflicts_with = "json")]
    pub(crate) preamble: bool,

    /// Refuse an input larger than this many megabytes (1 MB is 1,000,000 bytes).
    #[arg(long, value_name = "MB", default_value_t = 512, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub(crate) max_input: u64,
}

/// Show what happened in a run: its steps, what they took and cost, and the sub-agents below it.
///
/// A run has a chain ID; a task's newest run is also found by the task's ID. Without one, the
/// newest runs are listed.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  asyncagents trace
  asyncagents trace 3f9c21ab
  asyncagents trace 3f9c21ab --follow
  asyncagents trace 3f9c21ab --json | jq .total.cost_usd")]
pub(crate) struct TraceArgs {
    #[command(flatten)]
    pub(crate) common: Common,

    /// The run's chain ID or its task's ID, or the beginning of it.
    #[arg(value_name = "ID")]
    pub(crate) run: Option<String>,

    /// Print steps as they come, until the run is over; with --json, each as a line of JSON.
    #[arg(long, requires = "run")]
    pub(crate) follow: bool,

    /// Print one line of JSON: the whole trace, with all texts.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Find, check and run skills: instructions in a file SKILL.md that an agent follows when asked.
#[derive(Debug, clap::Args)]
#[command(
    disable_help_subcommand = true,
    after_help = "\
Examples:
  asyncagents skill list
  asyncagents skill run code-review \"the newest commit\"
  asyncagents skill show code-review
  asyncagents skill check .claude/skills"
)]
pub(crate) struct SkillArgs {
    #[command(subcommand)]
    pub(crate) verb: SkillVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SkillVerb {
    Run(SkillRunArgs),
    List(SkillListArgs),
    Show(SkillShowArgs),
    Check(SkillCheckArgs),
}

/// Run a skill with the built-in agent in this folder.
///
/// The answer goes to standard output; its steps and the chain ID of its trace, which has the
/// totals, to standard error. A skill with `context:
/// fork` runs as an isolated sub-agent with a reduced budget. Ctrl-C cancels it, a second one
/// ends at once. Exit code 0 with an answer, 2 if there is no such skill or model or a command in
/// the skill is refused, 4 if it failed or was stopped.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  asyncagents skill run deep-analysis \"the parser\"
  asyncagents skill run fix-issue 12 main
  asyncagents skill run deep-analysis \"the parser\" --json")]
pub(crate) struct SkillRunArgs {
    #[command(flatten)]
    pub(crate) common: Common,

    /// The skill.
    pub(crate) name: String,

    /// What is said behind its name: the request, or the arguments it takes; `-` for standard
    /// input. Of several words each is one argument, blanks in it or not; a single one is taken
    /// apart at its blanks.
    pub(crate) request: Vec<String>,

    /// The model, as provider/model or an alias [default: the skill's, or the setting `model`].
    #[arg(long)]
    pub(crate) model: Option<String>,

    /// What the agent does without asking: ask, auto-edit or yolo [default: the setting
    /// `permissions.mode`].
    #[arg(long, value_name = "MODE")]
    pub(crate) permission: Option<String>,

    /// Print a line of JSON for every event: status, message, error, done.
    #[arg(long)]
    pub(crate) json: bool,

    /// With --json: also what the sub-agent itself does, step by step.
    #[arg(long, requires = "json")]
    pub(crate) sub_agent_events: bool,
}

/// Show the skills that an agent in this folder has, and what keeps others from being used.
///
/// Skills are found in the enterprise's folder (the setting `skills.enterprise`), in yours, in
/// the project's from this folder up to the root of its repository, and in those of plugins (the
/// setting `skills.plugins`): `.asyncagents/skills`, `.agents/skills`, `.claude/skills`,
/// `.opencode/skills` and `.opencode/skill`. The first layer that has a name counts.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  asyncagents skill list --tag review
  asyncagents skill list --json | jq -r '.skills[].name'")]
pub(crate) struct SkillListArgs {
    #[command(flatten)]
    pub(crate) common: Common,

    /// Only those with this tag.
    #[arg(long)]
    pub(crate) tag: Option<String>,

    /// Print one line of JSON: `{skills, broken}`.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show one skill: what its head says, and its body.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Example:\n  asyncagents skill show code-review")]
pub(crate) struct SkillShowArgs {
    #[command(flatten)]
    pub(crate) common: Common,

    /// The skill.
    pub(crate) name: String,

    /// Print one line of JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Check skills, and say file, line and reason for whatever is wrong.
///
/// Bad is what cannot be used here or what the Agent Skills standard refuses, so that other tools
/// will. Remarks are about what is odd, and about agents, models and tools that are not here. All
/// folders are looked into, but for `.git` and `node_modules`. Exit code 0 if none is bad, 1 if
/// any is.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  asyncagents skill check .claude/skills
  asyncagents skill check my-skill/SKILL.md
  asyncagents skill check . --json | jq -r '.skills[] | select(.bad).file'")]
pub(crate) struct SkillCheckArgs {
    #[command(flatten)]
    pub(crate) common: Common,

    /// A SKILL.md, the folder of a skill, or a folder of skills.
    #[arg(value_name = "PATH", required = true)]
    pub(crate) paths: Vec<PathBuf>,

    /// Print one line of JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Give another agent the tools for background agents.
#[derive(Debug, clap::Args)]
#[command(
    // A short error that names the hosts says more than the whole help.
    arg_required_else_help = false,
    disable_help_subcommand = true,
    subcommand_value_name = "HOST",
    subcommand_help_heading = "Hosts",
    after_help = "Example:\n  asyncagents setup opencode"
)]
pub(crate) struct SetupArgs {
    #[command(subcommand)]
    pub(crate) host: SetupHost,
}

/// Who gets the tools.
#[derive(Debug, Subcommand)]
pub(crate) enum SetupHost {
    Opencode(SetupOpencodeArgs),
}

/// Install the plugin that gives OpenCode the tools for background agents.
///
/// The plugin is one file, asyncagents.js, in the folder `plugin` (or `plugins`, if that is
/// there) of OpenCode's configuration, and OpenCode loads what is there by itself: no other
/// file is changed. It names this program by its path, so install it again when the program
/// has moved. Installing again also updates it. A file of that name which asyncagents did not
/// write is left alone.
///
/// Exit code 0 if it is as asked, 1 if that could not be done or --check found something
/// missing, 2 if the file is somebody else's.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  asyncagents setup opencode                   for all your projects
  asyncagents setup opencode --project         for this folder only
  asyncagents setup opencode --check           does OpenCode see the tools?
  asyncagents setup opencode --remove          take it away again")]
pub(crate) struct SetupOpencodeArgs {
    #[command(flatten)]
    pub(crate) common: Common,

    /// For you, in all projects: in OPENCODE_CONFIG_DIR if that is set, else in `opencode` in
    /// your configuration folder. This is the default.
    #[arg(long, conflicts_with = "project")]
    pub(crate) user: bool,

    /// For this folder and those below: in `.opencode` here.
    #[arg(long)]
    pub(crate) project: bool,

    /// Remove the plugin instead.
    #[arg(long, conflicts_with = "check")]
    pub(crate) remove: bool,

    /// Change nothing, but look: is OpenCode of a known version, is the plugin there and its
    /// program too, and, from an OpenCode that is started for it, are the tools seen? Without
    /// --user and --project, look at every place that OpenCode loads plugins from. OpenCode is
    /// started in this folder, where it runs the folder's plugins as always; with --user in an
    /// empty one.
    #[arg(long)]
    pub(crate) check: bool,

    /// With --check: the program OpenCode [default: ASYNCAGENTS_OPENCODE_BIN, or `opencode` on
    /// the PATH].
    #[arg(long, value_name = "PATH", requires = "check")]
    pub(crate) opencode_bin: Option<PathBuf>,
}

/// One of a list of names, each standing for a value.
fn named<T: Copy + Send + Sync + PartialEq + 'static>(
    all: &'static [(&'static str, T)],
) -> impl TypedValueParser<Value = T> {
    let names = PossibleValuesParser::new(all.iter().map(|(name, _)| *name));
    names.try_map(|typed| {
        let known = all.iter().find(|(name, _)| *name == typed);
        known.map(|(_, value)| *value).ok_or("not in the list")
    })
}

fn configured(text: &str) -> Result<(String, String), &'static str> {
    setting(text).map_err(|_| "expected KEY=VALUE, such as limits.depth=1")
}

fn setting(text: &str) -> Result<(String, String), &'static str> {
    let (key, value) = text
        .split_once('=')
        .ok_or("expected KEY=VALUE, such as max_chars=50000")?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}

fn fork_help() -> String {
    let mut help = String::from("Limits (key, default of `graduated`, allowed values):\n");
    for (key, value, allowed) in Limits::default().describe() {
        help.push_str(&format!("  {key:<20} {value}  [{allowed}]\n"));
    }
    help.push_str(
        "\nExamples:
  asyncagents fork session.json
  opencode export SESSION | asyncagents fork - --preamble
  asyncagents fork session.json --preset flat --set max_tokens=20000
  asyncagents fork session.json --json | jq .stats",
    );
    help
}
