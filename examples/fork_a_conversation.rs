//! Forks a saved conversation and prints what a child would inherit of it.
//!
//! ```text
//! cargo run -p asyncagents-examples --example fork_a_conversation [SESSION.json]
//! ```
//!
//! The file is what `opencode export` writes, or its list of messages. Without one, the session
//! beside this program is forked.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::{env, fs, path::PathBuf};

use asyncagents_core::{
    fork::{Parent, Preset, fork},
    read::Format,
    tokens,
};

fn main() -> anyhow::Result<()> {
    let ours = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("session.json");
    let path = env::args_os().nth(1).map_or_else(ours, PathBuf::from);
    let json = fs::read_to_string(path)?;

    // The transcript borrows from the text, and the parent is read through once: it can be forked
    // as often as there are children.
    let parent = Parent::new(Format::OpenCode.read(&json)?);

    // Limits begin with a preset. Each can be changed by the name it has in `asyncagents.toml`.
    let mut limits = Preset::Graduated.limits();
    limits.set("max_tokens", 2_000)?;

    let child = fork(&parent, &limits, tokens::o200k)?;
    println!("{}\n\n{}\n", child.preamble, child.context);
    println!(
        "{} of {} messages, {} of {} characters",
        child.stats.messages.kept,
        child.stats.messages.r#in,
        child.stats.characters.after,
        child.stats.characters.before,
    );
    Ok(())
}
