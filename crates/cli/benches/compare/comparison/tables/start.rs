//! From the start of a program to its first request, and to the end of one answer.

use std::time::Duration;

use crate::comparison::{
    contender::{Contender, Contenders},
    figures::{Table, digits, mean, median_and_best, megabytes, milliseconds},
    options::Options,
    run::{Outcome, Play, Stage},
    sampler::Watch,
    script,
};

use super::in_turns;

pub(super) fn table(stage: &Stage, contenders: &Contenders, options: &Options) -> Table {
    let mut table = Table::new(
        "Start",
        &[
            "",
            "start → first request, ms",
            "start → end of one answer, ms",
            "CPU, ms",
            "peak RSS, MB",
            "peak PSS, MB",
        ],
    );
    let run = |contender: &Contender, watch| stage.play(contender, hello(watch));
    let usual = contenders.usual();
    let timed = in_turns("start", &usual, options.rounds(1), |contender| {
        run(contender, Watch::Not)
    });
    // Watching slows down, so it has runs of its own.
    let watched = in_turns("memory", &usual, options.rounds(5), |contender| {
        run(contender, Watch::Closely)
    });
    for ((contender, timed), (_, watched)) in timed.into_iter().zip(watched) {
        match (timed, watched) {
            (Ok(timed), Ok(watched)) => table.row(row(contender, &timed, &watched)),
            (Err(why), _) | (_, Err(why)) => table.failed(contender.name, &why),
        }
    }
    table
}

fn hello(watch: Watch) -> Play {
    Play {
        prompts: vec!["Say hello.".to_owned()],
        script: script::answer(),
        watch,
        patience: Duration::from_secs(120),
    }
}

fn row(contender: &Contender, timed: &[Outcome], watched: &[Outcome]) -> Vec<String> {
    let times = |time: fn(&Outcome) -> Duration| -> Vec<f64> {
        timed.iter().map(|run| milliseconds(time(run))).collect()
    };
    let most = watched.iter().map(|run| run.memory);
    let most = most.reduce(|a, b| a.or_more(b)).unwrap_or_default();
    vec![
        contender.name.to_owned(),
        median_and_best(times(|run| run.first_request)),
        median_and_best(times(|run| run.wall)),
        digits(mean(&times(|run| run.cpu))),
        megabytes(most.resident),
        megabytes(most.proportional),
    ]
}
