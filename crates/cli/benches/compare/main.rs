//! Us and other coding agents against the same scripted model: start, steps, sub-agents, tokens,
//! memory, idling.
//!
//! `scripts/compare` fetches the other agents and runs this; `scripts/compare --help` says what can
//! be chosen. Its tables are in `docs/benchmarks.md`.

mod comparison;

use clap::Parser;

fn main() -> anyhow::Result<()> {
    comparison::compare(&comparison::Options::parse(), &mut std::io::stdout().lock())
}
