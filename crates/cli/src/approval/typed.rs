//! What is typed at the terminal, which is standard input. It is read only while an answer is
//! waited for, and nothing is kept: all that was typed and not read is with the kernel, which
//! can throw it away.

use std::{
    io::{self, PipeReader},
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::retry_on_intr,
    termios::{QueueSelector, tcflush},
};
use tokio::{task, time};

/// How long a paste may pause when room was made for the rest of it.
const PASTE_PAUSE: Duration = Duration::from_millis(100);

/// Throws away what was typed so far, also a line that was begun.
pub(super) async fn forget_typed() -> io::Result<()> {
    loop {
        flush()?;
        // The kernel keeps about 12 kB. A longer paste waits in the terminal's program, and goes
        // on when these are gone.
        time::sleep(PASTE_PAUSE).await;
        if !has_line()? {
            // What came may be the beginning of a line.
            return flush();
        }
    }
}

/// The next line; none if standard input has ended.
pub(super) async fn next_line() -> io::Result<Option<String>> {
    // When this future is dropped, the pipe closes, and the line is not read.
    let (abandoned, _waiting) = io::pipe()?;
    let read = task::spawn_blocking(move || read_line(&abandoned));
    read.await.map_err(io::Error::other)?
}

fn read_line(abandoned: &PipeReader) -> io::Result<Option<String>> {
    let terminal = io::stdin();
    let mut line = Vec::new();
    // A terminal hands out a line at a time, unless it was set otherwise.
    while !line.ends_with(b"\n") {
        let mut either = [
            PollFd::new(abandoned, PollFlags::IN),
            PollFd::new(&terminal, PollFlags::IN),
        ];
        retry_on_intr(|| poll(&mut either, None))?;
        let [abandoned, _] = &either;
        if !abandoned.revents().is_empty() {
            return Ok(None);
        }
        // Not with the buffer of `Stdin`, which would keep what comes after the line.
        let mut piece = [0; 4096];
        let read = retry_on_intr(|| rustix::io::read(&terminal, &mut piece))?;
        if read == 0 {
            return Ok(None);
        }
        line.extend_from_slice(piece.get(..read).unwrap_or_default());
    }
    Ok(Some(String::from_utf8_lossy(&line).into_owned()))
}

fn flush() -> io::Result<()> {
    Ok(retry_on_intr(|| {
        tcflush(io::stdin(), QueueSelector::IFlush)
    })?)
}

fn has_line() -> io::Result<bool> {
    let terminal = io::stdin();
    let mut terminal = [PollFd::new(&terminal, PollFlags::IN)];
    let now = Timespec::default();
    Ok(retry_on_intr(|| poll(&mut terminal, Some(&now)))? > 0)
}
