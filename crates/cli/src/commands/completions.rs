//! `asyncagents completions`: a script that lets a shell complete the command line.

use clap_complete::Shell;

use super::parse::parser;
use crate::{
    exit::{Exit, Failure},
    print,
};

/// Print a script that completes commands and options in your shell.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  asyncagents completions bash > ~/.local/share/bash-completion/completions/asyncagents
  asyncagents completions zsh > ~/.zfunc/_asyncagents
  asyncagents completions fish > ~/.config/fish/completions/asyncagents.fish")]
pub(super) struct CompletionsArgs {
    /// Shell to complete in.
    shell: Shell,
}

pub(super) fn run(args: &CompletionsArgs) -> Result<Exit, Failure> {
    let mut parser = parser();
    let name = parser.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut parser, name, &mut script);
    print::answer(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}
