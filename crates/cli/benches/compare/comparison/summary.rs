//! The few figures that say most, as the README has them.

use super::{figures::Table, options::TableName};

/// What is taken from a table: the column, and what it is called.
const FIGURES: &[(TableName, &str, &str)] = &[
    (
        TableName::Start,
        "start → first",
        "start → first request, ms",
    ),
    (TableName::Start, "peak PSS", "memory of one agent, MB"),
    (TableName::Steps, "each further", "a tool call, ms"),
    (TableName::Tokens, "total", "tokens of the first request"),
    (
        TableName::Idle,
        "wake-ups",
        "wake-ups per second, waiting for the model",
    ),
    (TableName::SlowAgents, "wall", "time, s"),
    (TableName::SlowAgents, "CPU", "processor time, s"),
    (TableName::SlowAgents, "peak PSS", "memory, MB"),
    (TableName::SlowAgents, "parent's", "requests of the parent"),
];

/// A column for each contender. Of several tables of a kind the last one counts.
pub(crate) fn of(contenders: &[&str], tables: &[(TableName, Table)]) -> Table {
    let header: Vec<&str> = std::iter::once("")
        .chain(contenders.iter().copied())
        .collect();
    let mut summary = Table::new("Summary", &header);
    for (name, column, label) in FIGURES {
        let Some((_, table)) = tables.iter().rfind(|(kind, _)| kind == name) else {
            continue;
        };
        let label = match name {
            TableName::SlowAgents => format!("{}: {label}", table.title()),
            _ => (*label).to_owned(),
        };
        let cells = contenders.iter().map(|contender| {
            let cell = table.cell(contender, column).unwrap_or("–");
            // Without what is in brackets behind it.
            let figure = cell.split([' ', '[']).next();
            figure.unwrap_or_default().to_owned()
        });
        summary.row(std::iter::once(label).chain(cells).collect());
    }
    summary
}
