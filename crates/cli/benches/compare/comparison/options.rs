//! What can be chosen.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

/// Compare asyncagents with other coding agents: all against the same scripted model, in turns.
///
/// The model is on loopback, every agent has a home of its own with telemetry and updates switched
/// off, and no key of yours reaches it. Figures mean something on a quiet machine only; Linux only.
#[derive(Debug, Parser)]
#[command(bin_name = "scripts/compare")]
pub(crate) struct Options {
    /// Whom to compare with: `all`, `none`, or some of codex, claude, opencode, pi
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "all"
    )]
    peers: Vec<PeerName>,

    /// Which tables to make [default: all]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    tables: Vec<TableName>,

    /// How often the shortest runs are made; longer ones are made less often
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,

    /// One round, few steps and sub-agents: to see that everything runs
    #[arg(long)]
    quick: bool,

    /// Where the homes and projects of all agents are made, to be removed at the end. Not inside a
    /// repository, whose instructions agents would read
    #[arg(long, value_name = "FOLDER", default_value = "/var/tmp")]
    folder: PathBuf,

    /// Cargo says this to every benchmark.
    #[arg(long, hide = true)]
    bench: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PeerName {
    All,
    None,
    Codex,
    Claude,
    Opencode,
    Pi,
}

/// One part of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TableName {
    /// From the start of the program to its first request
    Start,
    /// Runs of several tool calls
    Steps,
    /// Tokens of the first request
    Tokens,
    /// Tokens of a file that is read
    Read,
    /// Waiting for a model that says nothing
    Idle,
    /// Sub-agents, with a model that answers at once
    Agents,
    /// Sub-agents, with a model that takes half a second for each answer
    SlowAgents,
}

impl Options {
    pub(crate) fn wants(&self, peer: &str) -> bool {
        let named = |name: &PeerName| {
            name.to_possible_value()
                .is_some_and(|value| value.get_name() == peer)
        };
        !self.peers.contains(&PeerName::None)
            && (self.peers.contains(&PeerName::All) || self.peers.iter().any(named))
    }

    pub(crate) fn tables(&self) -> Vec<TableName> {
        if self.tables.is_empty() {
            return TableName::value_variants().to_vec();
        }
        self.tables.clone()
    }

    pub(crate) fn folder(&self) -> &std::path::Path {
        &self.folder
    }

    /// How often something is done that is so many times as long as the shortest run.
    pub(crate) fn rounds(&self, times_as_long: u32) -> u32 {
        let rounds = if self.quick { 1 } else { self.rounds };
        (rounds / times_as_long).max(1)
    }

    /// How many tool calls the runs have.
    pub(crate) fn steps(&self) -> &'static [usize] {
        if self.quick { &[1, 5] } else { &[1, 10, 50] }
    }

    /// How many sub-agents there are.
    pub(crate) fn sub_agents(&self) -> &'static [usize] {
        if self.quick { &[3] } else { &[10, 50, 200] }
    }

    /// How long idling is watched, in seconds.
    pub(crate) fn idle_seconds(&self) -> u64 {
        if self.quick { 1 } else { 20 }
    }

    /// How long an agent may still be busy with itself before idling is watched, in seconds.
    pub(crate) fn settling_seconds(&self) -> u64 {
        if self.quick { 1 } else { 5 }
    }
}
