//! The command `asyncagents`, for a program that is that command, and perhaps brings a kind of
//! host of its own.

mod adapters;
mod agent_shell;
mod approval;
mod args;
mod color;
mod commands;
mod compose;
mod config;
mod exit;
mod folders;
mod host_name;
mod hosts;
mod launch_secrets;
mod live_processes;
mod live_view;
mod log;
mod markdown;
mod on_path;
mod other_agents;
mod own_file;
mod print;
mod read_input;
mod read_short;
mod saved_session;
mod screen;
mod seal;
mod skill_commands;
mod trace_tree;
mod trust;
mod version_line;
mod width;
mod worker_process;

use asyncagents_core::make_visible;
pub use hosts::{ExtraHostKind, HostKind};
pub use launch_secrets::Overrides;

/// Does what was typed. Other kinds of host can be named and used beside the usual ones.
pub fn main(extra: &'static [ExtraHostKind]) -> std::process::ExitCode {
    let mut typed = std::env::args_os().skip(1);
    // Every command of an agent comes through here, so it takes the shortest way.
    if typed.next().is_some_and(|verb| verb == "sandbox-exec") {
        std::process::exit(asyncagents_tools::sandbox_exec(typed.collect()));
    }
    exit::code(commands::run(extra))
}
