//! Bytes as lines, none of them too long.

use std::{io, mem};

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tracing::warn;

/// A longer line is ignored, unless it is said otherwise.
const LONGEST_LINE: usize = 64 * 1024 * 1024;

/// Bytes as lines. A line without end costs no memory, and only itself.
pub(crate) struct Lines<R> {
    reader: BufReader<R>,
    longest: usize,
    line: Vec<u8>,
    /// How long the line is so far, kept or not.
    length: usize,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// For a program that tells of much at once.
    pub(crate) fn new(reader: R) -> Self {
        Self::buffered(64 * 1024, LONGEST_LINE, reader)
    }

    /// For one of many programs. A longer line than this is ignored.
    pub(crate) fn up_to(longest: usize, reader: R) -> Self {
        Self::buffered(8 * 1024, longest, reader)
    }

    fn buffered(capacity: usize, longest: usize, reader: R) -> Self {
        Self {
            reader: BufReader::with_capacity(capacity, reader),
            longest,
            line: Vec::new(),
            length: 0,
        }
    }

    /// The next line that is not too long. Cancel-safe: nothing is lost if the future is dropped.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            let bytes = self.reader.fill_buf().await?;
            if bytes.is_empty() {
                return Ok(None);
            }
            let end = memchr::memchr(b'\n', bytes);
            let piece = &bytes[..end.unwrap_or(bytes.len())];
            self.length += piece.len();
            if self.length <= self.longest {
                self.line.extend_from_slice(piece);
            } else {
                self.line = Vec::new();
            }
            let used = piece.len() + usize::from(end.is_some());
            self.reader.consume(used);
            if end.is_some() {
                let line = mem::take(&mut self.line);
                match mem::take(&mut self.length) {
                    0 => {}
                    bytes if bytes <= self.longest => return Ok(Some(line)),
                    bytes => warn!(bytes, "ignoring a line that is too long"),
                }
            }
        }
    }
}
