//! Waiting for a model that says nothing.

use crate::comparison::{
    contender::{Contender, Contenders},
    figures::{Table, digits, megabytes},
    options::Options,
    run::{Idling, Stage},
};

use super::in_turns;

pub(super) fn table(stage: &Stage, contenders: &Contenders, options: &Options) -> Table {
    let mut table = Table::new(
        "Waiting for a model that says nothing",
        &["", "wake-ups per second", "CPU, %", "RSS, MB", "PSS, MB"],
    );
    table.note(format!(
        "{} s of it, {} s after its request. Wake-ups are voluntary context switches of all threads.",
        options.idle_seconds(),
        options.settling_seconds(),
    ));
    let measured = in_turns("idle", &contenders.usual(), 1, |contender| {
        stage.idle(contender, options)
    });
    for (contender, idling) in measured {
        match idling {
            Ok(idling) => idling
                .iter()
                .for_each(|idling| table.row(row(contender, idling))),
            Err(why) => table.failed(contender.name, &why),
        }
    }
    table
}

fn row(contender: &Contender, idling: &Idling) -> Vec<String> {
    vec![
        contender.name.to_owned(),
        digits(idling.wakeups_per_second),
        digits(idling.cpu_percent),
        megabytes(idling.memory.resident),
        megabytes(idling.memory.proportional),
    ]
}
