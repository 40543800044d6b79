//! The tables, one file each.

mod idle;
mod read;
mod start;
mod steps;
mod sub_agents;
mod tokens;

use std::{fs, time::Duration};

use anyhow::Result;

use super::{
    contender::{Contender, Contenders},
    figures::{Table, say},
    options::{Options, TableName},
    run::Stage,
};

/// How long a model thinks that does.
const SLOW: Duration = Duration::from_millis(500);

pub(crate) fn make(
    table: TableName,
    stage: &Stage,
    contenders: &Contenders,
    options: &Options,
) -> Vec<Table> {
    let at_once = Duration::ZERO;
    match table {
        TableName::Start => vec![start::table(stage, contenders, options)],
        TableName::Steps => vec![steps::table(stage, contenders, options)],
        TableName::Tokens => vec![tokens::table(stage, contenders)],
        TableName::Read => vec![read::table(stage, contenders)],
        TableName::Idle => vec![idle::table(stage, contenders, options)],
        TableName::Agents => sub_agents::tables(stage, contenders, options, at_once),
        TableName::SlowAgents => sub_agents::tables(stage, contenders, options, SLOW),
    }
}

/// What was measured of one contender, or why it could not be.
type Measured<T> = Result<Vec<T>, String>;

/// Measures all contenders in turns, so that whatever else the machine does slows all of them down.
/// Who fails once is not tried again.
fn in_turns<'c, T>(
    what: &str,
    contenders: &[&'c Contender],
    rounds: u32,
    one: impl Fn(&Contender) -> Result<T>,
) -> Vec<(&'c Contender, Measured<T>)> {
    let begin = |contender: &&'c Contender| (*contender, Ok(Vec::new()));
    let mut measured: Vec<(&Contender, Measured<T>)> = contenders.iter().map(begin).collect();
    for round in 1..=rounds {
        for (contender, seen) in &mut measured {
            let Ok(values) = seen else { continue };
            say(&format!("{what}: {} ({round} of {rounds})", contender.name));
            match one(contender) {
                Ok(value) => values.push(value),
                Err(error) => {
                    say(&format!("!!! {what}: {} FAILED: {error:#}", contender.name));
                    *seen = Err(format!("{error:#}"));
                }
            }
        }
    }
    measured
}

/// What the figures were measured on.
pub(crate) fn machine() -> Result<String> {
    let processors = fs::read_to_string("/proc/cpuinfo")?;
    let named = processors
        .lines()
        .find_map(|line| line.strip_prefix("model name"));
    let name = named.map_or("a processor without a name", |name| {
        name.trim_start_matches([' ', '\t', ':'])
    });
    let cores = std::thread::available_parallelism()?;
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease")?;
    Ok(format!(
        "{cores} cores of {name}, Linux {}; load before: {}.",
        kernel.trim(),
        load()
    ))
}

/// Whether it was quiet.
pub(crate) fn machine_afterwards() -> String {
    format!("Load afterwards: {}.", load())
}

fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let averages: Vec<&str> = text.split_whitespace().take(3).collect();
    averages.join(", ")
}
