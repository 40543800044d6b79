//! `asyncagents fork`: what a forked child would inherit of a saved session.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
    thread,
    time::Instant,
};

use anyhow::{Context, anyhow, bail};
use asyncagents_core::{
    fork::{Fork, ForkError, Limits, Parent, fork},
    tokens,
};

use crate::{
    args::ForkArgs,
    config::Config,
    exit::{Exit, Failure},
    print::{self, Took},
};

pub(super) fn run(config: &Config, args: &ForkArgs) -> Result<Exit, Failure> {
    let (fork, took) = fork_file(config, args).map_err(Failure::Input)?;
    if args.json {
        print::json(&fork, took)?;
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
    let made = thread::scope(|scope| {
        // The vocabulary takes as long to load as a large session to read.
        scope.spawn(tokens::warm_up);
        let begun = Instant::now();
        let input = read_input(&args.input, args.max_input)?;
        let parent = Parent::new(args.from.read(&input)?);
        let reading = begun.elapsed();
        tokens::warm_up();
        let begun = Instant::now();
        let fork = fork(&parent, &limits, tokens::o200k).map_err(with_hint)?;
        let forking = begun.elapsed();
        Ok((fork, Took { reading, forking }))
    });
    made.map_err(|error: anyhow::Error| error.context(name))
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

fn read_input(path: &Path, max_megabytes: u64) -> anyhow::Result<String> {
    let most = max_megabytes * 1_000_000;
    let bytes = if path == Path::new("-") {
        read_at_most(io::stdin().lock(), 0, most)?
    } else {
        let file = File::open(path)?;
        let about = file.metadata()?;
        if about.is_dir() {
            bail!("is a directory; give the file of a saved session");
        }
        read_at_most(file, about.len(), most)?
    };
    String::from_utf8(bytes).map_err(|error| {
        let error = error.utf8_error();
        let at = error.valid_up_to();
        match error.error_len() {
            None => anyhow!("ends within a character (byte {at}); it seems to be truncated"),
            Some(_) => anyhow!("is not UTF-8 text (byte {at}); expected JSON"),
        }
    })
}

/// Reads everything, but never more than one byte over the limit.
fn read_at_most(input: impl Read, expected: u64, most: u64) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if expected <= most {
        // Room for one byte more, so that the end is seen without growing.
        bytes.try_reserve_exact(usize::try_from(expected)? + 1)?;
        input.take(most + 1).read_to_end(&mut bytes)?;
    }
    if expected > most || bytes.len() as u64 > most {
        let most = most / 1_000_000;
        bail!("is larger than {most} MB; `--max-input` raises the limit");
    }
    Ok(bytes)
}
