//! `asyncagents acp`: the built-in agent for editors, over the Agent Client Protocol.

mod ask_editor;
mod built_in;
mod happenings;

use std::sync::Arc;

use asyncagents_engine::Approver;
use asyncagents_runtime::Worker;
use asyncagents_server::acp::{OpenSessions, serve_stdio};

use self::{ask_editor::AskEditor, built_in::BuiltIn};
use super::{CommandContext, signals::Signals};
use crate::{
    agent_shell,
    compose::AppOptions,
    exit::{Exit, Failure},
    hosts::{HostOptions, ServedTasks, load_certificates},
};

/// Serve the built-in agent to an editor that speaks the Agent Client Protocol, on standard input and
/// output.
///
/// Zed, JetBrains IDEs, Neovim and Emacs start this themselves, by an entry in their configuration; see
/// docs/acp.md. It works in the folders that the editor names. Background tasks run in a worker and
/// go on when the editor has closed the connection.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  asyncagents acp                                for an editor that starts it
  asyncagents acp -c model=anthropic/claude-…    with another model than usually")]
pub(super) struct AcpArgs {}

pub(super) fn run(context: &CommandContext, _: &AcpArgs) -> Result<Exit, Failure> {
    load_certificates(&context.config.agent_config);
    let runtime = super::two_threads()?;
    let done = runtime.block_on(serve(context));
    // A blocked read of standard input must not keep the process.
    runtime.shutdown_background();
    done
}

async fn serve(context: &CommandContext) -> Result<Exit, Failure> {
    let mut stop = Signals::new()?;
    let sessions = OpenSessions::default();
    // An agent that has started this would answer its own questions.
    let may_ask = agent_shell::around().is_none();
    let approver = AskEditor(sessions.clone());
    let options = AppOptions {
        hosts: HostOptions {
            approver: may_ask.then(|| Arc::new(approver) as Arc<dyn Approver>),
            tasks: ServedTasks::None,
            ..HostOptions::default()
        },
        ..AppOptions::default()
    };
    let app = context.open(options)?;
    // While its lease lasts, no other process works in the sessions.
    let worker = Worker::start(&app.manager).await?;
    let built_in = BuiltIn::new(context, &app, may_ask);
    let served = serve_stdio(app.manager.clone(), Arc::new(built_in), sessions);
    let served = tokio::select! {
        served = served => served.map_err(|error| Failure::Machine(error.into())),
        () = stop.next() => Ok(()),
    };
    tokio::select! {
        () = context.close(app, worker) => {}
        () = stop.next() => {}
    }
    served.map(|()| Exit::Done)
}
