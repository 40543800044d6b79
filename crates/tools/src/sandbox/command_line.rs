//! What the last stage is told on its input: which command it becomes.

use std::{
    ffi::OsString,
    io::{self, Read},
    os::unix::ffi::{OsStrExt, OsStringExt},
};

/// Names the session to its commands: a program can tell by it that a model has called it, and
/// which session that was.
pub const SESSION_VARIABLE: &str = "ASYNCAGENTS_IN_SESSION";

/// More than the kernel takes.
const LONGEST: u32 = 4 * 1024 * 1024;

/// A command, and the session whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandLine {
    pub(crate) session: Option<OsString>,
    /// The program and its arguments.
    pub(crate) words: Vec<OsString>,
}

impl CommandLine {
    /// Its length, and its words, each with a zero byte after it.
    ///
    /// # Errors
    /// If a word has a zero byte in it, or there are too many.
    pub(crate) fn encode(&self) -> io::Result<Vec<u8>> {
        let invalid = |why: &str| io::Error::new(io::ErrorKind::InvalidInput, why);
        let none = OsString::new();
        let session = self.session.as_ref().unwrap_or(&none);
        let mut words = Vec::new();
        for word in [session].into_iter().chain(&self.words) {
            if word.as_bytes().contains(&0) {
                return Err(invalid("a command with a zero byte"));
            }
            words.extend_from_slice(word.as_bytes());
            words.push(0);
        }
        let length = u32::try_from(words.len()).ok();
        let length = length.filter(|length| *length <= LONGEST);
        let length = length.ok_or_else(|| invalid("the command is too long"))?;
        let mut encoded = length.to_le_bytes().to_vec();
        encoded.append(&mut words);
        Ok(encoded)
    }

    /// Waits for a command. `None`: there will be none. It is read whole or not at all, and nothing
    /// after it.
    pub(super) fn read(mut from: impl Read) -> io::Result<Option<Self>> {
        let mut length = [0; 4];
        match from.read_exact(&mut length) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            read => read?,
        }
        let invalid = || io::Error::from(io::ErrorKind::InvalidData);
        let length = Some(u32::from_le_bytes(length)).filter(|length| *length <= LONGEST);
        let length = length.ok_or_else(invalid)?;
        let mut words = vec![0; usize::try_from(length).map_err(|_| invalid())?];
        match from.read_exact(&mut words) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            read => read?,
        }
        if words.pop() != Some(0) {
            return Err(invalid());
        }
        let mut words = words
            .split(|byte| *byte == 0)
            .map(|word| OsString::from_vec(word.to_vec()));
        Ok(Some(Self {
            session: words.next().filter(|session| !session.is_empty()),
            words: words.collect(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

    use super::CommandLine;

    #[test]
    fn a_command_is_read_as_it_was_written_and_whole_or_not_at_all() {
        for session in [None, Some("ses_1".into())] {
            let odd = OsStr::from_bytes(b"printf '\xff\n' --").to_owned();
            let command = CommandLine {
                session,
                words: vec!["bash".into(), "-c".into(), odd, "".into()],
            };
            let encoded = command.encode().expect("it can be written");
            let read = |bytes: &[u8]| CommandLine::read(bytes).expect("it can be read");
            assert_eq!(read(&encoded), Some(command));
            for end in 0..encoded.len() {
                assert_eq!(read(&encoded[..end]), None, "{end}");
            }
        }
    }

    #[test]
    fn what_is_no_command_is_an_error() {
        for bytes in [&[255, 255, 255, 255][..], &[0; 4], &[1, 0, 0, 0, b'a']] {
            assert!(CommandLine::read(bytes).is_err(), "{bytes:?}");
        }
        let zero = CommandLine {
            session: None,
            words: vec!["a\0b".into()],
        };
        assert!(zero.encode().is_err());
    }
}
