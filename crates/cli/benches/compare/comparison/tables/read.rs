//! What it costs to read a file, against its own tokens.

use std::time::Duration;

use anyhow::{Context, Result};
use asyncagents_core::tokens::o200k;

use crate::comparison::{
    contender::{Contender, Contenders},
    figures::{Table, thousands},
    place::{REAL_FILES, SAMPLE, sample},
    run::{Play, Stage},
    sampler::Watch,
    script,
};

use super::in_turns;

pub(super) fn table(stage: &Stage, contenders: &Contenders) -> Table {
    let files = files();
    let mut header = vec![String::new()];
    header.extend(files.iter().map(|(name, text)| {
        let lines = text.lines().count();
        format!("{name}, {lines} lines, {}", thousands(o200k(text) as u64))
    }));
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let mut table = Table::new("Tokens of a file that was read", &header);
    table.note(
        "Everything that the model is sent after its call. In the head of the table the tokens of the bare file.",
    );
    let measured = in_turns("read", &contenders.usual(), 1, |contender| {
        let read = |(name, text): &(&str, String)| cost(stage, contender, name, text);
        files.iter().map(read).collect::<Result<Vec<String>>>()
    });
    for (contender, cells) in measured {
        match cells {
            Ok(cells) => {
                let name = std::iter::once(contender.name.to_owned());
                table.row(name.chain(cells.into_iter().flatten()).collect());
            }
            Err(why) => table.failed(contender.name, &why),
        }
    }
    table
}

fn files() -> Vec<(&'static str, String)> {
    let real = REAL_FILES.map(|(name, text)| (name, text.to_owned()));
    let mut files = vec![(SAMPLE, sample())];
    files.extend(real);
    files
}

fn cost(stage: &Stage, contender: &Contender, name: &str, text: &str) -> Result<String> {
    let play = Play {
        prompts: vec!["Read it.".to_owned()],
        script: script::calls(vec![contender.agent.read(contender.place.file(name))]),
        watch: Watch::Not,
        patience: Duration::from_secs(120),
    };
    let requests = stage.play(contender, play)?.requests;
    let after = requests.iter().find(|request| request.turn() == 1);
    let shown = after.context("it did not go on after its call")?.last();
    let (shown, bare) = (o200k(&shown), o200k(text));
    let more = (shown as f64 / bare as f64 - 1.0) * 100.0;
    Ok(format!("{} ({more:+.0} %)", thousands(shown as u64)))
}
