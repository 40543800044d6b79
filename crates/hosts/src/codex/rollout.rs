//! The files in which Codex keeps its conversations.

use std::{
    fs,
    io::{self, BufRead, BufReader, Read},
    path::{Path, PathBuf},
};

use asyncagents_core::{fork::Plan, port::Recent, read::LineFormat};
use memchr::memmem::Finder;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::jsonl::{self, has_mark, is_id, newest_line};

/// Between `rollout-` and the ID of a thread there is a time: `2026-11-16T16-35-37-`.
const TIME: usize = 20;

/// The longest first line that is read: it has the instructions of a thread in it.
const LONGEST_META: u64 = 4_000_000;

/// A conversation in its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub thread: String,
    pub file: PathBuf,
}

#[derive(Deserialize)]
struct WireLine<'a> {
    #[serde(rename = "type")]
    kind: String,
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct WirePayload<'a> {
    #[serde(rename = "type")]
    kind: String,
    role: Option<String>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    /// What a tool has answered.
    #[serde(borrow)]
    output: Option<&'a RawValue>,
    item: Option<WireItem>,
    turn_attribution: Option<WireAttribution>,
}

/// What the first line says of a thread.
#[derive(Deserialize)]
struct WireMeta {
    thread_source: Option<String>,
}

#[derive(Deserialize)]
struct WireAttribution {
    turn_trigger: Option<String>,
}

#[derive(Deserialize)]
struct WireItem {
    client_id: Option<String>,
}

/// The file of a thread.
///
/// # Errors
/// When a folder cannot be read.
pub fn find(codex_home: &Path, thread: &str) -> io::Result<Option<PathBuf>> {
    if !is_id(thread) {
        return Ok(None);
    }
    let found = search(codex_home, |id| id == thread, true)?;
    Ok(found.into_iter().next().map(|found| found.file))
}

/// The threads whose IDs begin like this, with their files, the newest first.
///
/// # Errors
/// When a folder cannot be read.
pub fn find_by_prefix(codex_home: &Path, prefix: &str) -> io::Result<Vec<Found>> {
    if !is_id(prefix) {
        return Ok(Vec::new());
    }
    search(codex_home, |id| id.starts_with(prefix), false)
}

/// The end of a conversation, as far back as a fork reaches. `asked_in` of the plan is the ID of a
/// call.
///
/// # Errors
/// When the file cannot be read, or is too long.
pub fn recent(file: &Path, plan: &Plan) -> io::Result<Recent> {
    jsonl::recent(file, LineFormat::Codex, plan, false)
}

/// Whether a model has seen a text with this mark, or a message that was queued under this name.
///
/// # Errors
/// When the file cannot be read.
pub fn told(file: &Path, mark: &str) -> io::Result<bool> {
    if mark.is_empty() {
        return Ok(false);
    }
    let finder = Finder::new(mark);
    let tells = |line: &[u8]| {
        finder.find(line)?;
        tells(line, mark).then_some(())
    };
    Ok(newest_line(file, u64::MAX, tells)?.is_some())
}

/// Whether a turn is under way at whose end a hook tells the thread: in `codex exec`, which ends with its
/// turn, and in a sub-agent, whose parent takes what it says last. A turn whose process was killed never
/// ends.
///
/// # Errors
/// When the file cannot be read.
pub fn is_told_by_hooks(file: &Path) -> io::Result<bool> {
    let finder = Finder::new("event_msg");
    let turn = newest_line(file, u64::MAX, |line| {
        finder.find(line)?;
        let (kind, payload) = payload(line)?;
        match payload.kind.as_str() {
            _ if kind != "event_msg" => None,
            "task_started" | "turn_started" => Some(Turn::Began {
                by: payload
                    .turn_attribution
                    .and_then(|began| began.turn_trigger),
            }),
            "task_complete" | "turn_complete" | "turn_aborted" => Some(Turn::Ended),
            _ => None,
        }
    })?;
    match turn {
        Some(Turn::Began { by }) if by.as_deref() == Some("exec") => Ok(true),
        Some(Turn::Began { .. }) => is_sub_agent(file),
        Some(Turn::Ended) | None => Ok(false),
    }
}

/// What a rollout says last about turns.
enum Turn {
    Began { by: Option<String> },
    Ended,
}

/// Whether a thread was started by another one. Its first line says so.
fn is_sub_agent(file: &Path) -> io::Result<bool> {
    let mut line = Vec::new();
    let file = BufReader::new(fs::File::open(file)?);
    file.take(LONGEST_META).read_until(b'\n', &mut line)?;
    let meta = serde_json::from_slice::<WireLine>(&line).ok();
    let meta = meta.filter(|line| line.kind == "session_meta");
    let meta = meta.and_then(|line| serde_json::from_str::<WireMeta>(line.payload?.get()).ok());
    Ok(meta.is_some_and(|meta| meta.thread_source.as_deref() == Some("subagent")))
}

fn tells(line: &[u8], mark: &str) -> bool {
    let has_mark = |json: Option<&RawValue>| json.is_some_and(|json| has_mark(json.get(), mark));
    let Some((kind, payload)) = payload(line) else {
        return false;
    };
    match (
        kind.as_str(),
        payload.kind.as_str(),
        payload.role.as_deref(),
    ) {
        ("event_msg", "item_completed", _) => {
            payload.item.and_then(|item| item.client_id).as_deref() == Some(mark)
        }
        ("response_item", "message", Some("user" | "developer")) => has_mark(payload.content),
        // Our answers have in them what the thread has not been told.
        ("response_item", "function_call_output", _) => has_mark(payload.output),
        _ => false,
    }
}

fn payload(line: &[u8]) -> Option<(String, WirePayload<'_>)> {
    let line: WireLine = serde_json::from_slice(line).ok()?;
    let payload = serde_json::from_str(line.payload?.get()).ok()?;
    Some((line.kind, payload))
}

/// The threads that are wanted, the newest first: folders are named after years, months and days.
fn search(
    codex_home: &Path,
    is_wanted: impl Fn(&str) -> bool,
    only_first: bool,
) -> io::Result<Vec<Found>> {
    let mut found = Vec::new();
    let mut unseen = vec![
        (codex_home.join("archived_sessions"), 0),
        (codex_home.join("sessions"), 3),
    ];
    while let Some((folder, deeper)) = unseen.pop() {
        let mut entries = entries(&folder)?;
        if deeper > 0 {
            entries.sort();
            // The last is looked at first.
            unseen.extend(entries.into_iter().map(|entry| (entry, deeper - 1)));
            continue;
        }
        entries.retain(|file| thread_of(file).is_some_and(&is_wanted));
        entries.sort();
        for file in entries.into_iter().rev() {
            if let Some(thread) = thread_of(&file).map(str::to_owned)
                && file.is_file()
            {
                found.push(Found { thread, file });
                if only_first {
                    return Ok(found);
                }
            }
        }
    }
    Ok(found)
}

/// The thread that a rollout is named after.
fn thread_of(file: &Path) -> Option<&str> {
    let name = file.file_name()?.to_str()?;
    let name = name.strip_prefix("rollout-")?.strip_suffix(".jsonl")?;
    name.get(TIME..).filter(|id| is_id(id))
}

/// What is in a folder; nothing if it is none.
fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    use io::ErrorKind::{NotADirectory, NotFound};
    match fs::read_dir(folder) {
        Ok(entries) => entries
            .map(|entry| entry.map(|entry| entry.path()))
            .collect(),
        Err(error) if matches!(error.kind(), NotFound | NotADirectory) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}
