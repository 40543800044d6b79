//! `asyncagents fork`: what a forked child would inherit of a saved session.

use std::{fs::File, io, path::Path, thread, time::Instant};

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
    read_input::at_most,
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
    let bytes = if path == Path::new("-") {
        at_most(io::stdin().lock(), 0, max_megabytes)?
    } else {
        let file = File::open(path)?;
        let about = file.metadata()?;
        if about.is_dir() {
            bail!("is a directory; give the file of a saved session");
        }
        at_most(file, about.len(), max_megabytes)?
    };
    let bytes = bytes.ok_or_else(|| {
        anyhow!("is larger than {max_megabytes} MB; `--max-input` raises the limit")
    })?;
    String::from_utf8(bytes).map_err(|error| {
        let error = error.utf8_error();
        let at = error.valid_up_to();
        match error.error_len() {
            None => anyhow!("ends within a character (byte {at}); it seems to be truncated"),
            Some(_) => anyhow!("is not UTF-8 text (byte {at}); expected JSON"),
        }
    })
}
