//! The command line.

use std::path::PathBuf;

use asyncagents_core::{
    fork::{Limits, Preset},
    read::Format,
};
use clap::{
    Parser, Subcommand,
    builder::{PossibleValuesParser, TypedValueParser},
};

/// Background sub-agents that inherit the conversation.
#[derive(Debug, Parser)]
#[command(
    version,
    about,
    after_help = "\
Examples:
  asyncagents fork session.json           show what a forked child would inherit
  asyncagents help fork                   all options, every limit, more examples

Exit codes: 0 done, 1 the answer could not be written, 2 wrong arguments or input."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Fork(ForkArgs),
}

/// Show what a forked child would inherit of a saved session.
///
/// Prints the context to standard output, and what was kept, cut and removed to
/// standard error. Nothing is started and no model is asked.
#[derive(Debug, clap::Args)]
#[command(after_long_help = fork_help())]
pub(crate) struct ForkArgs {
    /// The saved session, or `-` for standard input.
    #[arg(value_name = "FILE|-")]
    pub(crate) input: PathBuf,

    /// The format of the session.
    #[arg(long, value_name = "HOST", default_value = "opencode", value_parser = named(Format::ALL))]
    pub(crate) from: Format,

    /// The set of limits to begin with: `graduated` keeps the newest results whole and
    /// cuts older ones, `flat` cuts all at one length, `exact` cuts nothing and refuses
    /// what does not fit.
    #[arg(long, default_value = "graduated", value_parser = named(Preset::ALL))]
    pub(crate) preset: Preset,

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
