//! Many sub-agents at once, each with three tool calls.

use std::time::Duration;

use anyhow::{Result, ensure};
use asyncagents_scripted_model::Recorded;

use crate::comparison::{
    contender::{Contender, Contenders},
    figures::{Table, digits, kilobytes, mean, median, megabytes, thousands},
    options::Options,
    run::{Outcome, Play, Stage},
    sampler::Watch,
    script::{self, Call, PARENT, STEPS_OF_A_CHILD, child_prompt, result_of},
};

use super::{in_turns, steps};

/// Who has no sub-agents is run as so many processes, up to this number.
const MOST_PROCESSES: usize = 10;

/// A table for each number of sub-agents.
pub(super) fn tables(
    stage: &Stage,
    contenders: &Contenders,
    options: &Options,
    delay: Duration,
) -> Vec<Table> {
    let numbers = options.sub_agents().iter().enumerate();
    let tables = numbers.map(|(index, number)| {
        let rounds = options.rounds([3, 5, 5].get(index).copied().unwrap_or(5));
        table(stage, contenders, rounds, (*number, delay))
    });
    tables.collect()
}

fn table(
    stage: &Stage,
    contenders: &Contenders,
    rounds: u32,
    (number, delay): (usize, Duration),
) -> Table {
    let model = if delay.is_zero() {
        "a model that answers at once".to_owned()
    } else {
        format!(
            "a model that takes {} s for each answer",
            delay.as_secs_f64()
        )
    };
    let mut table = Table::new(
        format!("{number} sub-agents with {STEPS_OF_A_CHILD} tool calls each, {model}"),
        &[
            "",
            "wall, s",
            "CPU, s",
            "peak PSS (RSS), MB",
            "parent's requests",
            "their size, kB",
            "results it was told",
        ],
    );
    table.note(match rounds {
        1 => "One run each.".to_owned(),
        rounds => format!("{rounds} runs each."),
    });
    let is_measured = |contender: &Contender| number <= MOST_PROCESSES || has_sub_agents(contender);
    let (all, left_out): (Vec<&Contender>, Vec<&Contender>) = contenders
        .for_sub_agents()
        .into_iter()
        .partition(|contender| is_measured(contender));
    if !left_out.is_empty() {
        let names: Vec<&str> = left_out.iter().map(|contender| contender.name).collect();
        table.note(format!(
            "Left out: {}. They have no sub-agents of their own, and more than {MOST_PROCESSES} \
             processes are not started.",
            names.join(", ")
        ));
    }
    let what = format!("{number} sub-agents, {model}");
    let measured = in_turns(&what, &all, rounds, |contender| {
        stage
            .play(contender, delegate(contender, number, delay))
            .and_then(|run| {
                complete(&run, number)?;
                Ok(run)
            })
    });
    for (contender, runs) in measured {
        match runs {
            Ok(runs) => table.row(row(contender, &runs, number)),
            Err(why) => table.failed(contender.name, &why),
        }
    }
    table
}

fn has_sub_agents(contender: &Contender) -> bool {
    contender.agent.delegate(String::new()).is_some()
}

fn delegate(contender: &Contender, number: usize, delay: Duration) -> Play {
    let prompts = (0..number).map(child_prompt);
    let launches: Option<Vec<Call>> = prompts
        .clone()
        .map(|prompt| contender.agent.delegate(prompt))
        .collect();
    let prompts = match launches {
        Some(_) => vec![format!("{PARENT} Tell me what they found.")],
        None => prompts.collect(),
    };
    let steps = steps::calls(contender, STEPS_OF_A_CHILD);
    Play {
        prompts,
        script: script::delegation(launches.unwrap_or_default(), steps, delay),
        watch: Watch::Loosely,
        patience: Duration::from_secs(900),
    }
}

/// Nobody is fast because something was left out.
fn complete(run: &Outcome, number: usize) -> Result<()> {
    let is_last = |request: &&Recorded| {
        !request.text().contains(PARENT) && request.turn() == STEPS_OF_A_CHILD
    };
    let ended = run.turns().filter(is_last).count();
    ensure!(ended >= number, "only {ended} of {number} did their work");
    Ok(())
}

fn row(contender: &Contender, runs: &[Outcome], number: usize) -> Vec<String> {
    let seconds = |time: fn(&Outcome) -> Duration| -> Vec<f64> {
        runs.iter().map(|run| time(run).as_secs_f64()).collect()
    };
    let most = runs.iter().map(|run| run.memory);
    let most = most.reduce(|a, b| a.or_more(b)).unwrap_or_default();
    let name = if has_sub_agents(contender) {
        contender.name.to_owned()
    } else {
        format!("{}, {number} processes", contender.name)
    };
    let mut cells = vec![
        name,
        digits(median(seconds(|run| run.wall))),
        digits(mean(&seconds(|run| run.cpu))),
        format!(
            "{} ({})",
            megabytes(most.proportional),
            megabytes(most.resident)
        ),
    ];
    cells.extend(parent(runs, number));
    cells
}

/// How often a parent asked its model, and what it was told.
fn parent(runs: &[Outcome], number: usize) -> Vec<String> {
    let requests = |run: &Outcome| requests_of_parent(run).count() as f64;
    let sizes = |run: &Outcome| {
        let sizes = requests_of_parent(run).map(|request| request.body.len() as f64);
        sizes.sum::<f64>()
    };
    let last = runs.last().and_then(|run| requests_of_parent(run).last());
    let Some(text) = last.map(Recorded::text) else {
        return vec!["–".to_owned(); 3];
    };
    let told = (0..number).filter(|number| text.contains(&result_of(*number)));
    vec![
        thousands(median(runs.iter().map(requests).collect()) as u64),
        kilobytes(median(runs.iter().map(sizes).collect()) as usize),
        format!("{} of {number}", told.count()),
    ]
}

fn requests_of_parent(run: &Outcome) -> impl Iterator<Item = &Recorded> {
    run.turns()
        .filter(|request| request.text().contains(PARENT))
}
