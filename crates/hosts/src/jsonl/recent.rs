//! As much of a conversation as a fork needs.

use std::{io, path::Path};

use asyncagents_core::{
    fork::{Plan, Reach},
    port::Recent,
    read::{LineFormat, Reached, Reading},
    transcript::{Message, Transcript},
};
use memchr::memchr;

use super::open::Opened;

/// How much is read at first. What is read is understood anew each time, so each time it is four
/// times as much.
const FIRST: u64 = 1024 * 1024;
const GROWTH: u64 = 4;
/// How much is read at most, as of other hosts.
const MOST: u64 = 256 * 1024 * 1024;

/// The end of a conversation, as far back as a fork reaches.
pub(crate) fn recent(
    file: &Path,
    format: LineFormat,
    plan: &Plan,
    of_sub_agent: bool,
) -> io::Result<Recent> {
    let file = Opened::new(file)?;
    let (mut from, mut bytes) = (file.length, Vec::new());
    let mut size = FIRST;
    loop {
        let start = file.length.saturating_sub(size);
        bytes = file.before(start, from, &bytes)?;
        from = start;
        let has_more = start > 0;
        let lines = if has_more {
            whole_lines(&bytes)
        } else {
            &bytes
        };
        let reading = Reading {
            asked_in: plan.asked_in.as_deref(),
            has_more,
            of_sub_agent,
        };
        let end = format.read_end(lines, &reading);
        let is_enough = match end.reached {
            Reached::Beginning | Reached::Compaction => true,
            Reached::TooLittle => !has_more,
            Reached::Middle => reaches(&end.transcript, plan),
        };
        if is_enough || !has_more {
            let skipped = end.transcript.skipped();
            let messages = end.transcript.into_messages().into_iter();
            return Ok(Recent {
                unread: has_more && end.reached != Reached::Beginning,
                transcript: Transcript::new(messages.map(Message::into_owned).collect(), skipped),
            });
        }
        if size >= MOST {
            let most = MOST / (1024 * 1024);
            let why = format!("the conversation is longer than {most} MB");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
        }
        size = size.saturating_mul(GROWTH).min(MOST);
    }
}

/// What comes after the first line break: a line may begin before what was read.
fn whole_lines(bytes: &[u8]) -> &[u8] {
    let first = memchr(b'\n', bytes).map_or(bytes.len(), |at| at + 1);
    &bytes[first..]
}

fn reaches(transcript: &Transcript, plan: &Plan) -> bool {
    let newest_first: Vec<Message> = transcript.messages().iter().rev().cloned().collect();
    Reach::new(&plan.limits).is_enough(&newest_first)
}
