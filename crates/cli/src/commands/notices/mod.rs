//! `asyncagents notices`: what hooks of other agents run, so that their sessions are told what they have
//! to know.

mod add;
mod ask;
mod hook_input;
mod host_process;
mod pre_tool_use;
mod wait;
mod waiting_place;

pub(super) use ask::ask;
pub(super) use pre_tool_use::{HookArgs, hook};

use super::{CommandContext, runtime::in_runtime};
use crate::{
    args::named,
    exit::{Exit, Failure},
    other_agents::OtherAgent,
};

/// Tell a session of another agent what it has to know; hooks run this.
#[derive(Debug, clap::Args)]
#[command(disable_help_subcommand = true)]
pub(super) struct NoticesArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Wait for the next end of a task, print it to standard error, and exit with code 2.
    ///
    /// Reads a hook's input from standard input. Exits with code 0 if there is nothing to wait for.
    Wait(HostArgs),
    /// Print what the session has not been told, as context for its model.
    ///
    /// Reads a hook's input from standard input.
    Add(HostArgs),
}

#[derive(Debug, clap::Args)]
struct HostArgs {
    /// Agent whose hook runs this: claude-code or codex.
    #[arg(long, value_name = "AGENT", value_parser = named(OtherAgent::ALL))]
    host: OtherAgent,
}

pub(super) fn run(context: &CommandContext, args: &NoticesArgs) -> Result<Exit, Failure> {
    match &args.what {
        What::Wait(args) => in_runtime(wait::run(context, args.host)),
        What::Add(args) => in_runtime(add::run(context, args.host)),
    }
}
