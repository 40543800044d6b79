//! `asyncagents fork`: what a forked child would inherit of a saved session.

use std::{path::PathBuf, time::Instant};

use anyhow::{Context, anyhow};
use asyncagents_core::{
    fork::{Fork, ForkError, Limits, Preset, fork},
    read::Format,
    tokens,
};
use asyncagents_views::ForkView;

use crate::{
    args::{Assignment, key_value, named},
    config::Config,
    exit::{Exit, Failure},
    print::{self, Took},
    saved_session,
};

/// Show what a forked child would inherit of a saved session.
///
/// Prints the context to standard output, and what was kept, cut and removed to
/// standard error. Nothing is started and no model is asked.
#[derive(Debug, clap::Args)]
#[command(after_long_help = limits_help())]
pub(super) struct ForkArgs {
    /// Saved session, or `-` for standard input. With `--from claude-code` or `codex` also the ID of a
    /// session, which is looked for where that agent keeps its sessions; a sub-agent of Claude Code
    /// is SESSION/AGENT.
    #[arg(value_name = "FILE|ID|-")]
    input: PathBuf,

    /// Format of the session: what OpenCode 1 exports or answers to `GET /session/ID/message`, what
    /// OpenCode 2 answers to `GET /api/session/ID/message` or `/export`, a transcript of Claude
    /// Code, or a rollout of Codex.
    #[arg(long, value_name = "HOST", default_value = "opencode", value_parser = named(Format::ALL))]
    from: Format,

    /// Set of limits to begin with: `graduated` keeps the newest results whole and
    /// cuts older ones, `flat` cuts all at one length, `exact` cuts nothing and refuses
    /// what does not fit.
    /// [default: the setting `fork.preset`, with its limits].
    #[arg(long, value_parser = named(Preset::ALL))]
    preset: Option<Preset>,

    /// Change one limit of the preset; may be repeated.
    #[arg(long, value_name = "KEY=VALUE", value_parser = limit)]
    set: Vec<Assignment>,

    /// Print `{context, preamble, stats}` as one line of JSON instead of the context.
    #[arg(long)]
    json: bool,

    /// Print the preamble, which tells the child about its context, before the context.
    #[arg(long, conflicts_with = "json")]
    preamble: bool,

    /// Refuse an input larger than this many megabytes (1 MB is 1,000,000 bytes). Of a file of Claude
    /// Code or Codex only the end is read, as far back as the fork needs.
    #[arg(long, value_name = "MB", default_value_t = 512, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    max_input: u64,
}

pub(super) fn run(config: &Config, args: &ForkArgs) -> Result<Exit, Failure> {
    let (fork, took) = fork_file(config, args).map_err(Failure::Input)?;
    if args.json {
        print::json_line(&ForkView::new(&fork, took.reading, took.forking))?;
        return Ok(Exit::Done);
    }
    let preamble = args.preamble.then_some(&*fork.preamble);
    print::context(preamble, &fork.context)?;
    print::summary(&fork.stats, took);
    Ok(Exit::Done)
}

fn fork_file(config: &Config, args: &ForkArgs) -> anyhow::Result<(Fork, Took)> {
    let limits = limits(config, args)?;
    let name = match args.input.to_str() {
        Some("-") => "standard input".to_owned(),
        _ => args.input.display().to_string(),
    };
    let made = read_and_fork(args, &limits);
    made.map_err(|error| error.context(name))
}

fn read_and_fork(args: &ForkArgs, limits: &Limits) -> anyhow::Result<(Fork, Took)> {
    let begun = Instant::now();
    let session = saved_session::read(&args.input, args.from, limits, args.max_input)?;
    let parent = session.parent()?;
    let reading = begun.elapsed();
    let begun = Instant::now();
    let fork = fork(&parent, limits, tokens::o200k).map_err(with_hint)?;
    let forking = begun.elapsed();
    Ok((fork, Took { reading, forking }))
}

fn with_hint(error: ForkError) -> anyhow::Error {
    match error {
        ForkError::TooLarge { .. } => {
            anyhow!("{error}; `--set when_over=remove` leaves out the oldest messages")
        }
    }
}

fn limits(config: &Config, args: &ForkArgs) -> anyhow::Result<Limits> {
    let mut limits = match args.preset {
        Some(preset) => preset.limits(),
        None => config.fork.clone(),
    };
    for (key, value) in &args.set {
        limits.set(key, value.as_str()).context("--set")?;
    }
    Ok(limits)
}

fn limit(text: &str) -> Result<Assignment, &'static str> {
    key_value(text).ok_or("expected KEY=VALUE, such as max_chars=50000")
}

fn limits_help() -> String {
    let mut help = String::from("Limits (key, default of `graduated`, allowed values):\n");
    for (key, value, allowed) in Limits::default().describe() {
        help.push_str(&format!("  {key:<20} {value}  [{allowed}]\n"));
    }
    help.push_str(
        "\nExamples:
  asyncagents fork session.json
  opencode export SESSION | asyncagents fork - --preamble
  asyncagents fork page.json --from opencode2
  asyncagents fork 60104808-db31-4a6a-bbca-a6b936b75c66 --from claude-code
  asyncagents fork session.json --preset flat --set max_tokens=20000
  asyncagents fork session.json --json | jq .stats",
    );
    help
}
