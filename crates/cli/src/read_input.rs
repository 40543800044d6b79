//! Reads the input of a command, up to a limit.

use std::io::{self, Read};

use anyhow::{Context, anyhow};
use asyncagents_core::task_limits::LONGEST_PROMPT;

use crate::exit::Failure;

/// The prompt as typed, or standard input for `-`.
pub(crate) fn prompt(typed: &str) -> Result<String, Failure> {
    if typed != "-" {
        return Ok(typed.to_owned());
    }
    let most = LONGEST_PROMPT as u64 / 1_000_000;
    let read = at_most(io::stdin().lock(), 0, most).and_then(|bytes| {
        let bytes = bytes
            .ok_or_else(|| anyhow!("is larger than {most} MB, the most that a prompt may have"))?;
        String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            anyhow!("is not UTF-8 text (byte {at})")
        })
    });
    read.context("standard input").map_err(Failure::Input)
}

/// Reads everything; nothing if it is more than so many megabytes. Never is more than one byte
/// over the limit read.
pub(crate) fn at_most(
    input: impl Read,
    expected: u64,
    megabytes: u64,
) -> anyhow::Result<Option<Vec<u8>>> {
    let most = megabytes.saturating_mul(1_000_000);
    if expected > most {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    // Room for one byte more, so that the end is seen without growing.
    bytes.try_reserve_exact(usize::try_from(expected)? + 1)?;
    input.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= most).then_some(bytes))
}
