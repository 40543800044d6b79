//! What a session has used up to an entry: numbers in a text, which is on people's disks.

use asyncagents_core::{
    agent::Usage,
    budget::{Cost, Spent},
    trace::TraceTotals,
};

use crate::sql::Damage;

/// Whether entries of a kind have it: where a run begins and ends, and where something was used.
pub(crate) fn is_kept(kind: &str) -> bool {
    matches!(kind, "prompted" | "answered" | "compacted" | "ended")
}

/// As it is written: tokens in, from the cache, into the cache and out; cost, tokens without a price,
/// answers, tool calls.
pub(crate) fn text(totals: &TraceTotals) -> String {
    let TraceTotals { spent, usage } = totals;
    let numbers = [
        usage.input,
        usage.cache_read,
        usage.cache_write,
        usage.output,
        spent.cost.0,
        spent.unpriced,
        spent.turns,
        spent.tool_calls,
    ];
    numbers.map(|number| number.to_string()).join(" ")
}

/// Reads it.
pub(crate) fn read(text: &str) -> Result<TraceTotals, Damage> {
    let damaged = || Damage(format!("column used holds the text `{text}`"));
    let numbers: Result<Vec<u64>, _> = text.split(' ').map(str::parse).collect();
    let numbers: [u64; 8] = numbers
        .map_err(|_| damaged())?
        .try_into()
        .map_err(|_| damaged())?;
    let [
        input,
        cache_read,
        cache_write,
        output,
        cost,
        unpriced,
        turns,
        tool_calls,
    ] = numbers;
    let usage = Usage {
        input,
        cache_read,
        cache_write,
        output,
    };
    let spent = Spent {
        tokens: usage.context(),
        cost: Cost(cost),
        unpriced,
        turns,
        tool_calls,
    };
    Ok(TraceTotals { spent, usage })
}
