//! Looks for a line, the newest first.

use std::{io, path::Path};

use memchr::{memchr, memrchr};

use super::open::Opened;

/// How much is read at once, if the lines are not longer.
const CHUNK: u64 = 1024 * 1024;
/// What is longer and still has no beginning is passed over: no agent writes such a line, and it would
/// have to be kept whole.
const LONGEST_LINE: usize = 64 * 1024 * 1024;

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
    // Whether that line is passed over.
    let mut passes_over = false;
    while end > least {
        let start = end.saturating_sub(size).max(least);
        let mut chunk = file.before(start, end, &known)?;
        end = start;
        // What is unfinished ends before the line break: with it, it would be taken for a whole line
        // each time.
        let (unfinished, whole) = match memchr(b'\n', &chunk) {
            _ if start == 0 => (0, 0),
            Some(at) => (at, at + 1),
            None if passes_over || chunk.len() > LONGEST_LINE => {
                (passes_over, size, known) = (true, CHUNK, Vec::new());
                continue;
            }
            None => {
                // Twice as much each time, so that a long line is not copied over and over.
                size = size.saturating_mul(2);
                known = chunk;
                continue;
            }
        };
        size = CHUNK;
        let is_cut = std::mem::take(&mut passes_over);
        let end = if is_cut {
            memrchr(b'\n', &chunk).unwrap_or_default()
        } else {
            chunk.len()
        };
        let lines = chunk.get(whole..end).unwrap_or_default();
        if let Some(found) = newest_of(lines, &mut look) {
            return Ok(Some(found));
        }
        chunk.truncate(unfinished);
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

#[cfg(test)]
mod tests {
    use std::{
        fs::File,
        io::{Seek, SeekFrom, Write},
    };

    use super::*;

    /// Nobody's transcript, but a process with such a file in its way must not take all memory.
    #[test]
    fn a_line_that_is_too_long_is_passed_over() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("long.jsonl");
        let mut file = File::create(&path).expect("a file");
        file.write_all(b"first\nsecond\n").expect("written");
        let long = i64::try_from(3 * LONGEST_LINE).expect("a length");
        file.seek(SeekFrom::Current(long)).expect("moved");
        file.write_all(b"the end of a long line\nlast")
            .expect("written");
        let mut seen = Vec::new();
        let found = newest_line(&path, u64::MAX, |line| {
            seen.push(String::from_utf8_lossy(line).into_owned());
            None::<()>
        });
        assert!(found.expect("read").is_none());
        assert_eq!(seen, ["last", "second", "first"]);
    }
}
