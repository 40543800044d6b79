//! What is in the sessions.

use std::{
    collections::HashMap,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use asyncagents_core::{digest::digest, id::SessionId, lock::lock};
use serde::{Deserialize, Serialize};

/// Something that was put into a session. Times are in milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Line {
    /// It was made, for a task.
    Created {
        /// The task.
        task: String,
        /// Who launched it.
        parent: String,
        /// For people.
        title: String,
        /// Who works in it.
        agent: String,
        /// Whether tasks may be launched from it.
        may_delegate: bool,
    },
    /// It inherited a conversation.
    Inherited {
        /// Under this name.
        id: String,
        /// What it was told about the context.
        preamble: String,
        /// The context.
        context: String,
    },
    /// It was set to work.
    Prompted {
        /// Under this name.
        id: String,
        /// What to do.
        text: String,
        /// When.
        at: i64,
        /// By which model, if the prompt says so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// With how much effort, if the prompt says so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        effort: Option<String>,
    },
    /// It was stopped.
    Aborted {
        /// When.
        at: i64,
    },
    /// Its model was asked one thing, beside it.
    AskedOnce {
        /// Under this name.
        id: String,
        /// What was asked.
        text: String,
        /// When.
        at: i64,
    },
    /// The host itself was stopped while the session worked.
    Interrupted {
        /// When.
        at: i64,
    },
    /// It was told something.
    Told {
        /// Under this name.
        id: String,
        /// For people and the model.
        visible: String,
        /// For the model.
        hidden: String,
        /// When.
        at: i64,
    },
    /// What it asked was answered.
    Replied {
        /// The name of the question.
        question: String,
        /// The answer, in words.
        reply: String,
        /// When.
        at: i64,
    },
    /// It was deleted.
    Deleted,
}

/// What is in the sessions. Clones share it.
#[derive(Debug, Clone)]
pub struct World {
    kept: Arc<Kept>,
    marks: Arc<Mutex<HashMap<SessionId, Marks>>>,
}

/// What is known of a file up to where it was read.
#[derive(Debug, Default)]
struct Marks {
    read: u64,
    lines: Vec<Line>,
}

#[derive(Debug)]
enum Kept {
    Memory(Mutex<HashMap<SessionId, Vec<Line>>>),
    /// One file for each session, one line for each thing.
    Folder(PathBuf),
}

impl World {
    /// Kept in memory.
    pub fn in_memory() -> Self {
        Self {
            kept: Arc::new(Kept::Memory(Mutex::default())),
            marks: Arc::default(),
        }
    }

    /// Kept in a folder, which several processes may use.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub fn in_folder(folder: &Path) -> io::Result<Self> {
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(folder)?;
        Ok(Self {
            kept: Arc::new(Kept::Folder(folder.to_owned())),
            marks: Arc::default(),
        })
    }

    /// What is in a session.
    ///
    /// # Errors
    /// When its file cannot be read.
    pub fn lines(&self, session: &SessionId) -> io::Result<Vec<Line>> {
        match &*self.kept {
            Kept::Memory(sessions) => {
                let sessions = lock(sessions);
                Ok(sessions.get(session).cloned().unwrap_or_default())
            }
            Kept::Folder(folder) => match fs::read_to_string(file(folder, session)) {
                Ok(text) => text
                    .lines()
                    .map(|line| serde_json::from_str(line).map_err(io::Error::other))
                    .collect(),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
                Err(error) => Err(error),
            },
        }
    }

    /// Those lines of a session that say whether it exists. What was read once is not read again,
    /// so that a long session is known as quickly as a short one.
    pub(super) fn marks(&self, session: &SessionId) -> io::Result<Vec<Line>> {
        let Kept::Folder(folder) = &*self.kept else {
            return self.lines(session);
        };
        let mut all = lock(&self.marks);
        let known = all.entry(session.clone()).or_default();
        let mut text = String::new();
        match File::open(file(folder, session)) {
            Ok(mut file) => {
                file.seek(SeekFrom::Start(known.read))?;
                file.read_to_string(&mut text)?;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        for line in text.lines() {
            let line: Line = serde_json::from_str(line).map_err(io::Error::other)?;
            if matches!(line, Line::Created { .. } | Line::Deleted) {
                known.lines.push(line);
            }
        }
        known.read += text.len() as u64;
        Ok(known.lines.clone())
    }

    /// Puts something into a session.
    ///
    /// # Errors
    /// When its file cannot be written.
    pub fn add(&self, session: &SessionId, line: Line) -> io::Result<()> {
        match &*self.kept {
            Kept::Memory(sessions) => {
                let mut sessions = lock(sessions);
                sessions.entry(session.clone()).or_default().push(line);
                Ok(())
            }
            Kept::Folder(folder) => {
                let mut text = serde_json::to_string(&line)?;
                text.push('\n');
                let mut options = OpenOptions::new();
                let mut file = options
                    .create(true)
                    .append(true)
                    .open(file(folder, session))?;
                // One call, so that a killed process leaves the line or nothing.
                file.write_all(text.as_bytes())
            }
        }
    }

    /// Every session in which something is.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn sessions(&self) -> io::Result<Vec<SessionId>> {
        match &*self.kept {
            Kept::Memory(sessions) => {
                let sessions = lock(sessions);
                Ok(sessions.keys().cloned().collect())
            }
            Kept::Folder(folder) => {
                let mut found = Vec::new();
                for entry in fs::read_dir(folder)? {
                    let name = entry?.file_name();
                    let name = name.to_string_lossy();
                    found.extend(name.strip_suffix(".jsonl").map(SessionId::from));
                }
                Ok(found)
            }
        }
    }
}

/// File systems do not take names of any length.
const LONGEST_NAME: usize = 120;

/// Session names come from callers; none may lead out of the folder.
fn file(folder: &Path, session: &SessionId) -> PathBuf {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let mut name = String::new();
    for c in session.as_str().chars() {
        if plain(c) {
            name.push(c)
        } else {
            name.push_str(&format!("%{:x}", u32::from(c)))
        }
    }
    if name.len() > LONGEST_NAME {
        let hash = digest(&[&name]);
        name = format!("{}-{hash:016x}", &name[..LONGEST_NAME / 2]);
    }
    folder.join(format!("{name}.jsonl"))
}
