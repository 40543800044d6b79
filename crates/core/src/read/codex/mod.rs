//! Codex's rollouts: a record on each line, in the order in which things happened.
//!
//! The conversation is the items that the model was sent and has answered. An answer is several
//! items: it ends where a result comes back, or somebody else speaks.

mod item;
mod line;
mod rollout;

use line::Line;
use rollout::Rollout;

use super::lines::{End, Found, Lines, Reading};

pub(super) fn read<'a>(lines: Lines<'a>, reading: &Reading) -> (End<'a>, Found) {
    let mut found = Found::default();
    let mut rollout = Rollout::default();
    found.each(lines, |found, line| {
        let line = Line::read(line)?;
        found.known += usize::from(line.payload.is_some());
        rollout.take(line, reading)
    });
    (rollout.into_end(found.skipped, reading), found)
}
