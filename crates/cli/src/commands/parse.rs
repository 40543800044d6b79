//! The command line: the top of the parser, and what every verb understands. What only one verb
//! understands is beside that verb.

use std::{env, process};

use clap::{Arg, ArgMatches, Args as _, CommandFactory, FromArgMatches, Parser};

use super::Command;
use crate::{
    args::{Assignment, given, key_value},
    exit::Exit,
};

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
  asyncagents list                         the newest tasks
  asyncagents output ID --follow           how far it has come, then its result
  asyncagents sessions                     conversations to go on with
  asyncagents models                       which models can be used here
  asyncagents fork session.json            show what a forked child would inherit
  asyncagents skill list                   the skills an agent has here
  asyncagents trace ID                     what happened in a run, step by step
  asyncagents setup opencode               background agents in OpenCode
  asyncagents help task                    all options and more examples

Exit codes: 0 done; 1 I/O or internal error, or `skill check` or `setup opencode --check` found
something wrong; 2 wrong arguments or input, or refused; `output` also: 3 not finished yet; `run`,
`skill run`, `output` and `task --follow`: 4 the run failed or was stopped."
)]
pub(super) struct Args {
    #[command(subcommand)]
    pub(super) command: Command,

    /// Everything on the command line that is a setting, the later over the earlier.
    #[arg(skip)]
    pub(super) settings: Vec<Assignment>,
}

/// What every verb understands, before it and after it.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Global options")]
struct Common {
    /// Database file that holds all tasks [default: in your data folder].
    #[arg(long, value_name = "FILE")]
    db: Option<String>,

    /// Change a setting for this command; may be repeated. `asyncagents config` lists them.
    #[arg(short = 'c', long = "set-config", value_name = "KEY=VALUE", value_parser = configured)]
    settings: Vec<Assignment>,

    /// When to use colours: auto, always or never [default: the setting `color`].
    #[arg(long, value_name = "WHEN")]
    color: Option<String>,

    /// Keep control characters in answers that go to a file or a pipe.
    #[arg(long)]
    raw: bool,
}

/// Reads the command line of this process, or ends it and says what is wrong.
pub(super) fn parse() -> Args {
    let mut parser = parser();
    let matches = parser.try_get_matches_from_mut(env::args_os());
    let args = matches.and_then(|matches| read(&matches));
    args.unwrap_or_else(|error| refuse(&error.format(&mut parser)))
}

/// Says what is wrong, and ends the process. A hook may be of a plugin that is newer than this program,
/// and must not decide anything by its exit code.
fn refuse(error: &clap::Error) -> ! {
    let is_of_hook = env::args_os().any(|word| word == "notices" || word == "hook");
    if !is_of_hook || error.exit_code() == 0 {
        error.exit();
    }
    // Nobody is there who could be told that it cannot be printed.
    let _ = error.print();
    process::exit(i32::from(Exit::Failed as u8))
}

/// The whole parser.
///
/// The common arguments are added to every verb instead of being global in clap's sense: of a
/// global argument that is repeated before and after the verb, clap keeps one side only.
pub(super) fn parser() -> clap::Command {
    let common = Common::augment_args(clap::Command::new("common"));
    let common: Vec<Arg> = common.get_arguments().cloned().collect();
    with_arguments(Args::command(), &common)
}

fn with_arguments(command: clap::Command, more: &[Arg]) -> clap::Command {
    let command = command.mut_subcommands(|verb| with_arguments(verb, more));
    command.args(more)
}

fn read(matches: &ArgMatches) -> Result<Args, clap::Error> {
    let mut args = Args::from_arg_matches(matches)?;
    let mut level = Some(matches);
    while let Some(matches) = level {
        let common = Common::from_arg_matches(matches)?;
        args.settings.extend(common.settings());
        level = matches.subcommand().map(|(_, below)| below);
    }
    args.settings.extend(args.command.settings());
    Ok(args)
}

impl Common {
    fn settings(self) -> impl Iterator<Item = Assignment> {
        let db = given("db", &self.db);
        let color = given("color", &self.color);
        let raw = self.raw.then(|| ("raw".to_owned(), "true".to_owned()));
        self.settings.into_iter().chain(db).chain(color).chain(raw)
    }
}

fn configured(text: &str) -> Result<Assignment, &'static str> {
    key_value(text).ok_or("expected KEY=VALUE, such as limits.depth=1")
}
