//! `asyncagents man`: manual pages, one for each command.

use std::{fs, path::PathBuf};

use anyhow::Context;
use clap_mangen::Man;

use super::parse::parser;
use crate::{
    exit::{Exit, Failure},
    print,
};

/// Write manual pages into a folder, one for each command.
///
/// Without a folder, print the page of asyncagents itself.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  asyncagents man ~/.local/share/man/man1 && man asyncagents-run
  asyncagents man | man -l -")]
pub(super) struct ManArgs {
    /// Folder to write to; created if missing.
    folder: Option<PathBuf>,
}

pub(super) fn run(args: &ManArgs) -> Result<Exit, Failure> {
    let Some(folder) = &args.folder else {
        let mut page = Vec::new();
        Man::new(parser()).render(&mut page)?;
        print::answer(&String::from_utf8_lossy(&page))?;
        return Ok(Exit::Done);
    };
    let written =
        fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(parser(), folder));
    let written = written.with_context(|| folder.display().to_string());
    written.map_err(Failure::Machine)?;
    Ok(Exit::Done)
}
