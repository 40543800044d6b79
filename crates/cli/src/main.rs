//! The command `asyncagents`.

mod args;
mod commands;
mod config;
mod exit;
mod log;
mod print;
mod view;
mod wire;
mod worker_process;

use clap::Parser;

fn main() -> std::process::ExitCode {
    exit::code(commands::run(args::Args::parse()))
}
