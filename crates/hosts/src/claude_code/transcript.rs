//! The files in which Claude Code keeps its conversations.

use std::{
    cmp::Reverse,
    fs, io,
    path::{Path, PathBuf},
    time::SystemTime,
};

use asyncagents_core::{fork::Plan, port::Recent, read::LineFormat, transcript::Transcript};

use super::{told, tool_results};
use crate::jsonl::{self, is_id, newest_line};

/// How much of each file is looked through for a call that is being made.
const RECENT: u64 = 4 * 1024 * 1024;
/// In how many files a call is looked for, in its folder and then in all others: it was written a
/// moment ago.
const MOST_FILES: usize = 32;

/// A conversation in its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub session: String,
    /// The sub-agent of the session whose conversation it is, if it is one's.
    pub agent: Option<String>,
    pub file: PathBuf,
}

/// The file of a session, or of one of its sub-agents. Of several the one that was written last.
///
/// # Errors
/// When the folders of projects cannot be read.
pub fn find(config_dir: &Path, session: &str, agent: Option<&str>) -> io::Result<Option<PathBuf>> {
    if !is_id(session) || !agent.is_none_or(is_id) {
        return Ok(None);
    }
    let projects = folders(&config_dir.join("projects"))?;
    let files = projects.into_iter().map(|project| match agent {
        None => project.join(format!("{session}.jsonl")),
        Some(agent) => {
            let agents = project.join(session).join("subagents");
            agents.join(format!("agent-{agent}.jsonl"))
        }
    });
    let newest = files.filter_map(written).max_by_key(|(time, _)| *time);
    Ok(newest.map(|(_, file)| file))
}

/// The sessions whose IDs begin like this, with their files, and those of sub-agents not among
/// them.
///
/// # Errors
/// When the folders of projects cannot be read.
pub fn find_by_prefix(config_dir: &Path, prefix: &str) -> io::Result<Vec<Found>> {
    if !is_id(prefix) {
        return Ok(Vec::new());
    }
    let projects = folders(&config_dir.join("projects"))?;
    let sessions = projects.iter().flat_map(|project| sessions_in(project));
    Ok(sessions
        .filter(|found| found.session.starts_with(prefix))
        .collect())
}

/// The conversation that makes a tool call just now: in the project of a folder, else in any.
pub fn find_call(config_dir: &Path, cwd: &Path, tool_use_id: &str) -> Option<Found> {
    let own = config_dir.join("projects").join(project_name(cwd));
    let makes_it = |found: &Found| call_within(&found.file, tool_use_id, RECENT).unwrap_or(false);
    let here = newest_first(conversations_in(&own));
    here.into_iter().find(makes_it).or_else(|| {
        let projects = folders(&config_dir.join("projects")).ok()?;
        let others = projects.iter().filter(|project| **project != own);
        let others = newest_first(others.flat_map(|project| conversations_in(project)));
        others.into_iter().find(makes_it)
    })
}

/// Whether a conversation makes a tool call.
///
/// # Errors
/// When the file cannot be read.
pub fn has_call(file: &Path, tool_use_id: &str) -> io::Result<bool> {
    call_within(file, tool_use_id, u64::MAX)
}

/// The end of a conversation, as far back as a fork reaches. `asked_in` of the plan is the ID of a
/// tool call.
///
/// # Errors
/// When the file cannot be read, or is too long.
pub fn recent(file: &Path, plan: &Plan) -> io::Result<Recent> {
    let recent = jsonl::recent(file, LineFormat::ClaudeCode, plan, is_of_sub_agent(file))?;
    Ok(Recent {
        transcript: with_stored_results(recent.transcript, file),
        ..recent
    })
}

/// Whether a model has seen a text with this mark: said to it, added to a prompt or a result, or as
/// a result. What only waits to be said does not count.
///
/// # Errors
/// When the file cannot be read.
pub fn told(file: &Path, mark: &str) -> io::Result<bool> {
    told::is_told(file, mark)
}

/// Whether a text with this mark waits to be shown to a model.
///
/// # Errors
/// When the file cannot be read.
pub fn queued(file: &Path, mark: &str) -> io::Result<bool> {
    told::is_queued(file, mark)
}

/// Puts large results, of which a conversation has only the beginning, in the place of what stands
/// for them. They are in files beside the conversation's.
pub fn with_stored_results<'a>(transcript: Transcript<'a>, file: &Path) -> Transcript<'a> {
    match session_folder(file) {
        Some(folder) => tool_results::fill_in(transcript, &folder),
        None => transcript,
    }
}

fn call_within(file: &Path, tool_use_id: &str, bytes: u64) -> io::Result<bool> {
    if !is_id(tool_use_id) {
        return Ok(false);
    }
    let makes_it = told::Calls::new(tool_use_id);
    let found = newest_line(file, bytes, |line| makes_it.is_made_in(line).then_some(()))?;
    Ok(found.is_some())
}

/// The folder of a project: its path, with a dash for all that is no letter or digit.
fn project_name(cwd: &Path) -> String {
    let mut name = String::new();
    for c in cwd.to_string_lossy().chars() {
        if c.is_ascii_alphanumeric() {
            name.push(c);
        } else {
            // One for each unit of JavaScript's strings.
            name.extend(std::iter::repeat_n('-', c.len_utf16()));
        }
    }
    name
}

fn newest_first(conversations: impl IntoIterator<Item = Found>) -> Vec<Found> {
    let conversations = conversations.into_iter();
    let mut written: Vec<(SystemTime, Found)> = conversations
        .filter_map(|found| Some((written(found.file.clone())?.0, found)))
        .collect();
    written.sort_by_key(|(time, _)| Reverse(*time));
    written.truncate(MOST_FILES);
    written.into_iter().map(|(_, found)| found).collect()
}

/// All conversations of a project.
fn conversations_in(project: &Path) -> Vec<Found> {
    let mut found = sessions_in(project);
    // The folder of a session may outlive its file.
    for folder in folders(project).unwrap_or_default() {
        if let Some(session) = name_of(&folder).filter(|name| is_id(name)) {
            let agents = entries(&folder.join("subagents")).unwrap_or_default();
            found.extend(agents.into_iter().filter_map(|file| {
                let agent = id_of(&file)?.strip_prefix("agent-")?.to_owned();
                Some(Found {
                    session: session.to_owned(),
                    agent: Some(agent),
                    file,
                })
            }));
        }
    }
    found
}

/// The conversations of sessions in a project, without their sub-agents.
fn sessions_in(project: &Path) -> Vec<Found> {
    let files = entries(project).unwrap_or_default().into_iter();
    files
        .filter_map(|file| {
            let session = id_of(&file)?.to_owned();
            let (_, file) = written(file)?;
            Some(Found {
                session,
                agent: None,
                file,
            })
        })
        .collect()
}

/// The ID that a transcript is named after.
fn id_of(file: &Path) -> Option<&str> {
    name_of(file)?.strip_suffix(".jsonl").filter(|id| is_id(id))
}

fn name_of(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}

/// When a file was written last, if it is one.
fn written(file: PathBuf) -> Option<(SystemTime, PathBuf)> {
    let about = fs::metadata(&file).ok()?;
    let time = about.modified().ok()?;
    about.is_file().then_some((time, file))
}

fn is_of_sub_agent(file: &Path) -> bool {
    file.parent().and_then(name_of) == Some("subagents")
}

/// Where a session has what does not go into its conversation.
fn session_folder(file: &Path) -> Option<PathBuf> {
    let folder = file.parent()?;
    if is_of_sub_agent(file) {
        return folder.parent().map(Path::to_owned);
    }
    id_of(file).map(|session| folder.join(session))
}

fn folders(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut folders = entries(folder)?;
    folders.retain(|path| path.is_dir());
    Ok(folders)
}

/// What is in a folder; nothing if there is no such folder.
fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    match fs::read_dir(folder) {
        Ok(entries) => entries
            .map(|entry| entry.map(|entry| entry.path()))
            .collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}
