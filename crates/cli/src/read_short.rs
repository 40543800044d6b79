//! Reads files that others may have put there: one that never ends, or a pipe that nobody writes to,
//! must not keep a command from its work.

use std::{
    fs::OpenOptions,
    io::{self, Read},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use rustix::fs::OFlags;

/// How many bytes such a file may have.
const LONGEST: u64 = 1_000_000;

/// The text of a short plain file, or of what a link to it leads to.
pub(crate) fn read_short(file: &Path) -> io::Result<String> {
    let mut text = String::new();
    // Opening a pipe would wait for a process at its other end.
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(file)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a plain file"));
    }
    let read = file.take(LONGEST + 1).read_to_string(&mut text)?;
    if read as u64 > LONGEST {
        let why = format!("it has more than {LONGEST} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    Ok(text)
}
