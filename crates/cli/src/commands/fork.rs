//! `asyncagents fork`: what a forked child would inherit of a saved session.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use asyncagents_core::{
    fork::{Fork, Limits, fork},
    tokens,
};

use crate::{args::ForkArgs, exit::Failure, print};

/// A fork, and how long it took.
pub(crate) struct Timed {
    pub(crate) fork: Fork,
    pub(crate) reading: Duration,
    pub(crate) forking: Duration,
}

pub(crate) fn run(args: &ForkArgs) -> Result<(), Failure> {
    let timed = fork_file(args).map_err(Failure::Input)?;
    if args.json {
        return print::json(&timed).map_err(Failure::Output);
    }
    let preamble = args.preamble.then_some(&*timed.fork.preamble);
    print::context(preamble, &timed.fork.context).map_err(Failure::Output)?;
    print::summary(&timed).map_err(Failure::Output)
}

fn fork_file(args: &ForkArgs) -> anyhow::Result<Timed> {
    let limits = limits(args)?;
    let name = match args.input.to_str() {
        Some("-") => "standard input".to_owned(),
        _ => args.input.display().to_string(),
    };
    thread::scope(|scope| {
        // The vocabulary takes as long to load as a large session to read.
        scope.spawn(tokens::warm_up);
        let begun = Instant::now();
        let input = read_input(&args.input, args.max_input).with_context(|| name.clone())?;
        let parent = args.from.read(&input).with_context(|| name.clone())?;
        let reading = begun.elapsed();
        tokens::warm_up();
        let begun = Instant::now();
        let fork = fork(&parent, &limits, tokens::o200k).with_context(|| name.clone())?;
        Ok(Timed {
            fork,
            reading,
            forking: begun.elapsed(),
        })
    })
}

fn limits(args: &ForkArgs) -> anyhow::Result<Limits> {
    let mut limits = args.preset.limits();
    for (key, value) in &args.set {
        limits.set(key, value).context("--set")?;
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
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text),
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            bail!("is not UTF-8 text (byte {at}); expected JSON")
        }
    }
}

/// Reads everything, but never more than one byte over the limit.
fn read_at_most(input: impl Read, expected: u64, most: u64) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if expected <= most {
        // Room for one byte more, so that the end is seen without growing.
        bytes.reserve_exact(usize::try_from(expected)? + 1);
        input.take(most + 1).read_to_end(&mut bytes)?;
    }
    if expected > most || bytes.len() as u64 > most {
        let most = most / 1_000_000;
        bail!("is larger than {most} MB; `--max-input` raises the limit");
    }
    Ok(bytes)
}
