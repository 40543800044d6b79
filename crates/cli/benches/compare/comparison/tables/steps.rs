//! Runs of several tool calls, in turns a read of the same file and a command that does nothing.

use std::time::Duration;

use crate::comparison::{
    contender::{Contender, Contenders},
    figures::{Table, digits, kilobytes, mean, median, median_and_best, megabytes, milliseconds},
    options::Options,
    place::SAMPLE,
    run::{Outcome, Play, Stage},
    sampler::Watch,
    script::{self, Call},
};

use super::{Measured, in_turns};

/// What was measured of one contender: for each number of steps its runs, and one that was watched.
struct Runs {
    steps: Vec<(usize, Vec<Outcome>)>,
    watched: Vec<Outcome>,
}

pub(super) fn table(stage: &Stage, contenders: &Contenders, options: &Options) -> Table {
    let steps = options.steps();
    let mut header = vec![String::new()];
    header.extend(steps.iter().map(|steps| format!("{steps}, ms")));
    header.push("each further one, ms".to_owned());
    header.extend(steps.iter().map(|steps| format!("CPU of {steps}, ms")));
    header.extend(["peak RSS, MB", "first request, kB", "all requests, kB"].map(str::to_owned));
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let mut table = Table::new("Steps: tool calls, one after the other", &header);
    table.note(
        "In turns \"read a file of 200 lines\", always the same, and `bash true`. Memory and bytes are \
         those of the longest run.",
    );
    for (contender, runs) in measure(stage, contenders, options) {
        match runs {
            Ok(runs) => table.row(row(contender, &runs)),
            Err(why) => table.failed(contender.name, &why),
        }
    }
    table
}

fn measure<'c>(
    stage: &Stage,
    contenders: &'c Contenders,
    options: &Options,
) -> Vec<(&'c Contender, Result<Runs, String>)> {
    let all = contenders.for_steps();
    let none = |contender: &&'c Contender| {
        let runs = Runs {
            steps: Vec::new(),
            watched: Vec::new(),
        };
        (*contender, Ok(runs))
    };
    let mut measured: Vec<(&Contender, Result<Runs, String>)> = all.iter().map(none).collect();
    for (index, steps) in options.steps().iter().enumerate() {
        let rounds = options.rounds([1, 2, 3].get(index).copied().unwrap_or(3));
        let what = format!("{steps} steps");
        let runs = in_turns(&what, &all, rounds, |contender| {
            stage.play(contender, work(contender, *steps, Watch::Not))
        });
        add(&mut measured, runs, |all, runs| {
            all.steps.push((*steps, runs))
        });
    }
    let longest = options.steps().last().copied().unwrap_or(1);
    let runs = in_turns("memory", &all, 1, |contender| {
        stage.play(contender, work(contender, longest, Watch::Closely))
    });
    add(&mut measured, runs, |all, runs| all.watched = runs);
    measured
}

fn add(
    measured: &mut [(&Contender, Result<Runs, String>)],
    runs: Vec<(&Contender, Measured<Outcome>)>,
    add: impl Fn(&mut Runs, Vec<Outcome>),
) {
    for ((_, all), (_, runs)) in measured.iter_mut().zip(runs) {
        match (&mut *all, runs) {
            (Ok(all), Ok(runs)) => add(all, runs),
            (Ok(_), Err(why)) => *all = Err(why),
            (Err(_), _) => {}
        }
    }
}

fn work(contender: &Contender, steps: usize, watch: Watch) -> Play {
    Play {
        prompts: vec!["Look at the sample again and again.".to_owned()],
        script: script::calls(calls(contender, steps)),
        watch,
        patience: Duration::from_secs(300),
    }
}

/// Reads and commands in turns.
pub(super) fn calls(contender: &Contender, steps: usize) -> Vec<Call> {
    let one = |step: usize| {
        if step.is_multiple_of(2) {
            contender.agent.read(contender.place.file(SAMPLE))
        } else {
            contender.agent.bash("true")
        }
    };
    (0..steps).map(one).collect()
}

fn row(contender: &Contender, runs: &Runs) -> Vec<String> {
    let walls =
        |runs: &[Outcome]| -> Vec<f64> { runs.iter().map(|run| milliseconds(run.wall)).collect() };
    let processor =
        |runs: &[Outcome]| -> Vec<f64> { runs.iter().map(|run| milliseconds(run.cpu)).collect() };
    let mut cells = vec![contender.name.to_owned()];
    let all = &runs.steps;
    cells.extend(all.iter().map(|(_, runs)| median_and_best(walls(runs))));
    let further = match (all.first(), all.last()) {
        (Some((few, short)), Some((many, long))) => {
            let more = median(walls(long)) - median(walls(short));
            digits(more / (many - few).max(1) as f64)
        }
        _ => String::new(),
    };
    cells.push(further);
    cells.extend(all.iter().map(|(_, runs)| digits(mean(&processor(runs)))));
    let watched = runs.watched.first();
    cells.push(watched.map_or_else(String::new, |run| megabytes(run.memory.resident)));
    let sizes = watched.into_iter().flat_map(Outcome::turns);
    let sizes: Vec<usize> = sizes.map(|request| request.body.len()).collect();
    cells.push(kilobytes(sizes.first().copied().unwrap_or(0)));
    cells.push(kilobytes(sizes.iter().sum()));
    cells
}
