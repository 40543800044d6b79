//! `asyncagents mcp`: the tools for other agents, over MCP.

mod relay;
mod who;

use std::sync::Arc;

use asyncagents_server::mcp::{Answers, serve_stdio, serve_without_tools};
use tokio::signal::unix::{SignalKind, signal};

use self::who::Who;
use super::CommandContext;
use crate::{
    args::named,
    compose::AppOptions,
    exit::{Exit, Failure},
    other_agents::OtherAgent,
};

/// Serve the tools for background agents to an MCP client, on standard input and output.
///
/// Claude Code and Codex are set up by `asyncagents setup`, which starts this for each of their
/// sessions. Other clients start it by an entry in their configuration. Each connection has tasks of
/// its own, unless a session is named. Tasks run in the folder that this is started in.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  asyncagents mcp                       for a client that starts it
  asyncagents mcp --session editor      the same tasks each time it is started
  asyncagents mcp --structured          for a program that calls the tools")]
pub(super) struct McpArgs {
    /// Session that the tasks belong to, for clients that do not say which one calls.
    #[arg(long, value_name = "NAME")]
    session: Option<String>,

    /// Agent that starts this. It says itself whose call each call is.
    #[arg(long, value_name = "AGENT", value_parser = named(OtherAgent::ALL))]
    host: Option<OtherAgent>,

    /// Answer with structured content beside the text, for programs. Agents are often shown only that.
    #[arg(long)]
    structured: bool,

    /// Pass everything on to the worker that the environment names.
    #[arg(long, hide = true, exclusive = true)]
    pub(super) connect: bool,
}

pub(super) use relay::run as relay;

pub(super) fn run(context: &CommandContext, args: &McpArgs) -> Result<Exit, Failure> {
    let runtime = super::two_threads()?;
    let done = runtime.block_on(serve(context, args));
    // A blocked read of standard input must not keep the process.
    runtime.shutdown_background();
    done
}

/// Serves a client that may have no tools. One that fails to start would be complained about.
pub(super) fn without_tools() -> Result<Exit, Failure> {
    let runtime = super::two_threads()?;
    let served = runtime.block_on(serve_without_tools());
    runtime.shutdown_background();
    served.map_err(|error| Failure::Machine(error.into()))?;
    Ok(Exit::Done)
}

async fn serve(context: &CommandContext, args: &McpArgs) -> Result<Exit, Failure> {
    let app = context.open(AppOptions::default())?;
    let who = Who::new(context, &app, args.session.as_deref(), args.host)?;
    let answers = if args.structured {
        Answers::Structured
    } else {
        Answers::Text
    };
    let mut terminate = signal(SignalKind::terminate()).map_err(|error| {
        let error: std::io::Error = error;
        Failure::Machine(error.into())
    })?;
    let served = serve_stdio(app.manager.clone(), Arc::new(who), answers);
    tokio::select! {
        served = served => served.map_err(|error| Failure::Machine(error.into()))?,
        () = context.keep_worker(&app.manager) => {}
        _ = terminate.recv() => {}
    }
    Ok(Exit::Done)
}
