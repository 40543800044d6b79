//! The command `asyncagents`.

mod args;
mod commands;
mod exit;
mod print;

use clap::Parser;

fn main() -> std::process::ExitCode {
    let args = args::Args::parse();
    let outcome = match args.command {
        args::Command::Fork(args) => commands::fork::run(&args),
    };
    exit::code(outcome)
}
