//! Large results, which Claude Code keeps in files beside its conversation.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

use asyncagents_core::transcript::{Outcome, Part, Text, ToolCall, Transcript};
use rustix::{
    fd::OwnedFd,
    fs::{CWD, Mode, OFlags, openat},
};
use serde::Deserialize;

use crate::jsonl::is_id;

/// The folder of these files, in that of a session.
const FOLDER: &str = "tool-results";
/// What stands for such a result begins with this.
const STANDS_FOR_IT: &str = "<persisted-output>";
/// What stands for a result is shorter than this: the beginning of the text, and where it is.
const LONGEST_POINTER: usize = 20_000;
/// A result that is longer is left as it is.
const LONGEST: u64 = 2 * 1024 * 1024;
/// How much is read for one conversation, the newest results first.
const MOST: u64 = 16 * 1024 * 1024;

#[derive(Deserialize)]
struct WirePiece {
    text: Option<String>,
}

/// Puts the results of these files in the place of what stands for them.
pub(super) fn fill_in<'a>(transcript: Transcript<'a>, session: &Path) -> Transcript<'a> {
    let skipped = transcript.skipped();
    let mut messages = transcript.into_messages();
    let parts = messages.iter_mut().flat_map(|message| &mut message.parts);
    let calls = parts.filter_map(|part| match part {
        Part::Tool(call) => Some(call),
        Part::Text(_) => None,
    });
    let mut stored: Vec<(Vec<String>, &mut ToolCall)> = calls
        .filter_map(|call| Some((names(call)?, call)))
        .collect();
    if let Ok(folder) = folder(session) {
        let mut left = MOST;
        for (names, call) in stored.iter_mut().rev() {
            let mut texts = names
                .iter()
                .filter_map(|name| read(&folder, name, left).ok());
            if let Some(text) = texts.next() {
                left = left.saturating_sub(text.len().try_into().unwrap_or(left));
                put(call, Text::new(text));
            }
        }
    }
    drop(stored);
    Transcript::new(messages, skipped)
}

fn put<'a>(call: &mut ToolCall<'a>, text: Text<'a>) {
    match &mut call.outcome {
        Outcome::Completed(result) | Outcome::Failed(result) => *result = text,
        Outcome::Pending | Outcome::Cleared => {}
    }
}

/// The names that the file of a result may have; nothing if all of the result is there.
fn names(call: &ToolCall) -> Option<Vec<String>> {
    let (Outcome::Completed(result) | Outcome::Failed(result)) = &call.outcome else {
        return None;
    };
    let id = call.id.as_ref().map(|id| id.as_str())?;
    if result.chars() > LONGEST_POINTER || !is_id(id) {
        return None;
    }
    let named = named(result.as_str());
    let is_own = named.is_some_and(|name| stem(name) == id);
    // Other results may speak of such files too.
    if !is_own && !result.starts_with(STANDS_FOR_IT) {
        return None;
    }
    let by_id = [format!("{id}.json"), format!("{id}.txt")];
    let named = named.map(str::to_owned);
    Some(named.into_iter().chain(by_id).collect())
}

/// The file that a text names.
fn named(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once(FOLDER)?;
    let rest = rest.strip_prefix('/')?;
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let end = rest.find(|c| !allowed(c)).unwrap_or(rest.len());
    let name = rest[..end].trim_end_matches('.');
    is_id(stem(name)).then_some(name)
}

/// A name without what it ends with.
fn stem(name: &str) -> &str {
    let known = [".json", ".txt"];
    let stems = known
        .into_iter()
        .find_map(|ending| name.strip_suffix(ending));
    stems.unwrap_or(name)
}

/// Links could lead out of the session's own folder: none is followed from there on.
fn folder(session: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let session = openat(CWD, session, flags, Mode::empty())?;
    Ok(openat(session, FOLDER, flags, Mode::empty())?)
}

fn read(folder: &OwnedFd, name: &str, most: u64) -> io::Result<String> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(openat(folder, name, flags, Mode::empty())?);
    let about = file.metadata()?;
    let most = most.min(LONGEST);
    if !about.is_file() || about.len() > most {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut text = String::new();
    // It may have grown since.
    file.take(most).read_to_string(&mut text)?;
    Ok(if name.ends_with(".json") {
        pieces(&text).unwrap_or(text)
    } else {
        text
    })
}

/// The texts of a result that has several pieces.
fn pieces(json: &str) -> Option<String> {
    let pieces: Vec<WirePiece> = serde_json::from_str(json).ok()?;
    let texts = pieces.into_iter().filter_map(|piece| piece.text);
    Some(texts.collect::<Vec<_>>().join("\n"))
}
