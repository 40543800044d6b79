//! Runs the agents in turns, and prints Markdown.

mod agents;
mod contender;
mod figures;
mod options;
mod place;
mod processes;
mod run;
mod sampler;
mod script;
mod summary;
mod tables;

use std::io::Write;

use anyhow::Result;

use contender::Contenders;
pub(crate) use options::Options;
use run::Stage;

/// Everything that the options ask for, table by table.
pub(crate) fn compare(options: &Options, output: &mut dyn Write) -> Result<()> {
    let stage = Stage::new(options)?;
    let contenders = Contenders::find(options, &stage)?;
    writeln!(output, "{}", contenders.shown(options)?)?;
    let mut made = Vec::new();
    for name in options.tables() {
        for table in tables::make(name, &stage, &contenders, options) {
            writeln!(output, "{table}")?;
            made.push((name, table));
        }
        output.flush()?;
    }
    let names = contenders.usual().into_iter();
    let names: Vec<&str> = names.map(|contender| contender.name).collect();
    writeln!(output, "{}", summary::of(&names, &made))?;
    writeln!(output, "{}", tables::machine_afterwards())?;
    Ok(())
}
