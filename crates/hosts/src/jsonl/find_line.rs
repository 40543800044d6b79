//! Looks for a line, the newest first.

use std::{io, path::Path};

use memchr::{memchr, memrchr};

use super::open::Opened;

/// How much is read at once, if the lines are not longer.
const CHUNK: u64 = 1024 * 1024;

/// The first answer that `look` gives of a line, the newest first, within so many bytes at the end.
/// A last line without a line break counts: only `look` can say whether it is whole.
pub(crate) fn newest_line<T>(
    file: &Path,
    within: u64,
    mut look: impl FnMut(&[u8]) -> Option<T>,
) -> io::Result<Option<T>> {
    let file = Opened::new(file)?;
    let least = file.length.saturating_sub(within);
    let mut end = file.length;
    let mut size = CHUNK;
    // The end of a line whose beginning was not read.
    let mut known = Vec::new();
    while end > least {
        let start = end.saturating_sub(size).max(least);
        let mut chunk = file.before(start, end, &known)?;
        end = start;
        let whole = match memchr(b'\n', &chunk) {
            _ if start == 0 => 0,
            Some(at) => at + 1,
            None => {
                // Twice as much each time, so that a long line is not copied over and over.
                size = size.saturating_mul(2);
                known = chunk;
                continue;
            }
        };
        size = CHUNK;
        if let Some(found) = newest_of(&chunk[whole..], &mut look) {
            return Ok(Some(found));
        }
        chunk.truncate(whole);
        known = chunk;
    }
    Ok(None)
}

fn newest_of<T>(mut lines: &[u8], look: &mut impl FnMut(&[u8]) -> Option<T>) -> Option<T> {
    loop {
        let (before, line) = match memrchr(b'\n', lines) {
            Some(at) => (Some(&lines[..at]), &lines[at + 1..]),
            None => (None, lines),
        };
        if let Some(found) = look(line) {
            return Some(found);
        }
        lines = before?;
    }
}
