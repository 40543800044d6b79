//! Where the kernel does not list which processes come of this one.

use std::{io, ops::ControlFlow};

/// A process that is never found.
#[derive(Clone, Copy)]
pub(super) struct Process {
    pub(super) pid: rustix::process::Pid,
    pub(super) threads: u64,
    pub(super) pages: u64,
}

/// Visits none.
pub(super) fn walk(_: impl FnMut(&Process) -> ControlFlow<()>) -> io::Result<()> {
    Ok(())
}

/// None that is known.
pub(super) fn descendants() -> io::Result<Vec<Process>> {
    Ok(Vec::new())
}

/// None that is known.
pub(super) fn children() -> io::Result<Vec<rustix::process::Pid>> {
    Ok(Vec::new())
}
