//! Us and other coding agents against the same scripted model: start, steps, sub-agents, tokens,
//! memory, idling.
//!
//! `scripts/compare` fetches the other agents and runs this; `scripts/compare --help` says what can
//! be chosen. Its tables are in `docs/benchmarks.md`.

#![expect(clippy::print_stderr, reason = "a benchmark talks to a person")]

mod comparison;

use clap::Parser;

/// Set by the script.
const BY_SCRIPT: &str = "ASYNCAGENTS_COMPARE";

fn main() -> anyhow::Result<()> {
    if std::env::var_os(BY_SCRIPT).is_none() {
        eprintln!("compare: skipped; scripts/compare fetches the other agents and runs it");
        return Ok(());
    }
    comparison::compare(&comparison::Options::parse(), &mut std::io::stdout().lock())
}
