//! A saved session: in a file, or where another agent keeps its sessions.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use anyhow::{anyhow, bail};
use asyncagents_core::{
    fork::{Limits, Parent, Plan},
    port::Recent,
    read::{Format, LineFormat},
};
use asyncagents_hosts::{
    claude_code::{SessionName, transcript},
    codex::rollout,
};

use crate::{config::no_home, other_agents::OtherAgent, read_input::at_most};

/// A session that was read.
pub(crate) enum SavedSession {
    /// All of it, which is yet to be understood.
    Whole { format: Format, input: Vec<u8> },
    /// The end of a long one, as far back as a fork needs it.
    End(Recent),
}

/// Reads a session: `-` is standard input, an ID one of another agent's sessions, all else a file.
pub(crate) fn read(
    input: &Path,
    format: Format,
    limits: &Limits,
    max_megabytes: u64,
) -> anyhow::Result<SavedSession> {
    if input == Path::new("-") {
        let read = at_most(io::stdin().lock(), 0, max_megabytes)?;
        return whole(read, format, max_megabytes);
    }
    let file = file_of(input, format)?;
    if let Some(lines) = format.lines().filter(|_| file.is_file()) {
        let recent = end_of(&file, lines, limits)?;
        // Of what is no session nothing is understood: it is to be said what is wrong with it.
        if recent.unread || !recent.transcript.messages().is_empty() {
            return Ok(SavedSession::End(recent));
        }
    }
    let opened = File::open(&file)?;
    let about = opened.metadata()?;
    if about.is_dir() {
        bail!("is a directory; give the file of a saved session");
    }
    let read = at_most(opened, about.len(), max_megabytes)?;
    whole(read, format, max_megabytes)
}

impl SavedSession {
    /// The session as a parent of forks.
    pub(crate) fn parent(&self) -> anyhow::Result<Parent<'_>> {
        match self {
            Self::Whole { format, input } => understand(*format, input),
            Self::End(Recent { transcript, unread }) => Ok(if *unread {
                Parent::end_of(transcript.clone())
            } else {
                Parent::new(transcript.clone())
            }),
        }
    }
}

fn whole(
    read: Option<Vec<u8>>,
    format: Format,
    max_megabytes: u64,
) -> anyhow::Result<SavedSession> {
    let input = read.ok_or_else(|| {
        anyhow!("is larger than {max_megabytes} MB; `--max-input` raises the limit")
    })?;
    Ok(SavedSession::Whole { format, input })
}

fn end_of(file: &Path, format: LineFormat, limits: &Limits) -> io::Result<Recent> {
    let plan = Plan {
        limits: limits.clone(),
        ..Plan::default()
    };
    match format {
        LineFormat::ClaudeCode => transcript::recent(file, &plan),
        LineFormat::Codex => rollout::recent(file, &plan),
    }
}

fn understand(format: Format, input: &[u8]) -> anyhow::Result<Parent<'_>> {
    // Such a file may have a broken line, which need not even be text.
    let read = match format.lines() {
        Some(lines) => lines.read(input),
        None => format.read(as_text(input)?),
    };
    let read = read.map_err(|error| {
        let text = std::str::from_utf8(input).unwrap_or_default();
        let has_messages = |other: Format| {
            let read = other.read(text);
            read.is_ok_and(|transcript| !transcript.messages().is_empty())
        };
        let mut others = Format::ALL.iter().filter(|(_, other)| *other != format);
        match others.find(|(_, other)| has_messages(*other)) {
            Some((name, _)) => anyhow!("{error}; `--from {name}` reads it"),
            None => error.into(),
        }
    });
    read.map(Parent::new)
}

fn as_text(input: &[u8]) -> anyhow::Result<&str> {
    std::str::from_utf8(input).map_err(|error| {
        let at = error.valid_up_to();
        match error.error_len() {
            None => anyhow!("ends within a character (byte {at}); it seems to be truncated"),
            Some(_) => anyhow!("is not UTF-8 text (byte {at}); expected JSON"),
        }
    })
}

/// The file that is meant: one of this name, or that of a session with this ID. The folder of a
/// session has the name of its ID too.
fn file_of(input: &Path, format: Format) -> anyhow::Result<PathBuf> {
    let about = fs::metadata(input);
    if about.as_ref().is_ok_and(|about| !about.is_dir()) {
        return Ok(input.to_owned());
    }
    let id = input.to_str().and_then(SessionName::parse_text);
    let (Some(id), is_missing) = (id, about.is_err()) else {
        return Ok(input.to_owned());
    };
    let Some(lines) = format.lines() else {
        let others = [
            ("claude-code", LineFormat::ClaudeCode),
            ("codex", LineFormat::Codex),
        ];
        let knows = |other| matches!(file_of_session(&id, other), Ok((_, Some(_))));
        if is_missing && let Some((name, _)) = others.into_iter().find(|(_, other)| knows(*other)) {
            bail!("is no file, but a session: `--from {name}` reads it");
        }
        return Ok(input.to_owned());
    };
    match file_of_session(&id, lines)? {
        (_, Some(file)) => Ok(file),
        (folder, None) if is_missing => {
            bail!(
                "is neither a file nor the ID of a session in {}",
                folder.display()
            )
        }
        (_, None) => Ok(input.to_owned()),
    }
}

/// Where sessions are looked for, and the file of this one.
fn file_of_session(
    id: &SessionName,
    format: LineFormat,
) -> anyhow::Result<(PathBuf, Option<PathBuf>)> {
    let agent = match format {
        LineFormat::ClaudeCode => OtherAgent::ClaudeCode,
        LineFormat::Codex => OtherAgent::Codex,
    };
    let home = agent.folder().ok_or_else(|| anyhow!(no_home()))?;
    Ok(match format {
        LineFormat::ClaudeCode => {
            let found = transcript::find(&home, &id.session, id.agent.as_deref())?;
            (home.join("projects"), found)
        }
        LineFormat::Codex => {
            // Sub-agents are threads of their own.
            let is_thread = id.agent.is_none();
            let found = is_thread
                .then(|| rollout::find(&home, &id.session))
                .transpose()?;
            (home.join("sessions"), found.flatten())
        }
    })
}
