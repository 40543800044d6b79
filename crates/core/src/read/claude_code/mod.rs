//! Claude Code's transcripts: a record on each line, each naming the one that it follows.

mod chain;
mod messages;
mod record;

use chain::Chain;
use messages::Messages;
use record::Record;

use super::lines::{End, Found, Go, Lines, Reading};

pub(super) fn read<'a>(lines: Lines<'a>, reading: &Reading) -> (End<'a>, Found) {
    let mut found = Found::default();
    let mut records = Vec::new();
    found.each(lines, |found, line| {
        let read = Record::read(line)?;
        found.known += usize::from(read.is_known);
        records.extend(read.record);
        Ok(Go::On)
    });
    let chain = Chain::new(records, reading);
    let end = Messages::of(&chain, found.skipped);
    (end, found)
}
