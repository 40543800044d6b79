//! The sessions of the built-in agent, for people who want to go on with one.

use asyncagents_core::{
    agent::Conversation,
    id::SessionId,
    moment::Moment,
    port::{Journal, Session},
    progress::Totals,
    refusal::Refusal,
};

use crate::{Manager, Problem};

/// A session of a person, and what has come of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionSummary {
    pub session: Session,
    pub state: SessionState,
    /// What it has used, without its background tasks.
    pub used: Totals,
    /// When something last happened in it.
    pub newest: Moment,
}

/// Where a session stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionState {
    /// A process works in it.
    Running,
    /// A run was interrupted, and can be gone on with.
    Unfinished,
    /// All its runs are over.
    Idle,
}

impl SessionState {
    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            SessionState::Running => "running",
            SessionState::Unfinished => "unfinished",
            SessionState::Idle => "idle",
        }
    }
}

impl Manager {
    /// The newest sessions of persons, in one folder or in all, newest first.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn sessions(
        &self,
        workspace: Option<String>,
        most: usize,
    ) -> Result<Vec<SessionSummary>, Problem> {
        self.shared
            .read(move |journal| {
                let sessions = journal.newest_sessions(workspace.as_deref(), most)?;
                let summaries = sessions
                    .into_iter()
                    .map(|session| summary(journal, session));
                summaries.collect::<Result<Vec<_>, Problem>>()
            })
            .await
    }

    /// The session with this name, or the only one whose name begins so. A name that no session
    /// has stays as it is: it may be a host's that keeps its own.
    ///
    /// # Errors
    /// When several begin so, or the store fails.
    pub async fn session_named(&self, asked: &str) -> Result<SessionId, Problem> {
        if !is_beginning(asked) {
            return Ok(asked.into());
        }
        let asked = asked.to_owned();
        self.shared
            .read(move |journal| {
                let mut found = journal.sessions_beginning_with(&asked, MOST_MATCHES)?;
                if found.is_empty() {
                    found =
                        journal.sessions_beginning_with(&format!("ses_{asked}"), MOST_MATCHES)?;
                }
                let exact = found.iter().any(|id| id.as_str() == asked);
                match (found.as_slice(), exact) {
                    ([only], _) => Ok(only.clone()),
                    ([], _) | (_, true) => Ok(asked.as_str().into()),
                    (several, false) => {
                        let matches = several.iter().map(ToString::to_string).collect();
                        let asked = asked.clone();
                        Err(Problem::Refused(Refusal::Ambiguous { asked, matches }))
                    }
                }
            })
            .await
    }
}

/// Whether it may be the beginning of an ID, and not a name that was made up.
fn is_beginning(asked: &str) -> bool {
    let digits = asked.chars().all(|c| c.is_ascii_hexdigit());
    asked.starts_with("ses_") || (digits && asked.len() >= 4)
}

/// How many sessions are named that a beginning may stand for.
const MOST_MATCHES: usize = 10;

fn summary(journal: &mut dyn Journal, session: Session) -> Result<SessionSummary, Problem> {
    let mut conversation = Conversation::default();
    let mut newest = session.begun;
    for filed in journal.entries(&session.id, 0, u64::MAX)? {
        conversation.take(&filed);
        newest = filed.at;
    }
    let open = journal.open_prompt(&session.id)?.is_some();
    let driver = journal.driver(&session.id)?.unwrap_or_default();
    let owner = driver.split_once('/').map_or("", |(owner, _)| owner);
    let alive = journal
        .owners()?
        .iter()
        .any(|alive| alive.as_str() == owner);
    let state = match (open, alive) {
        (true, true) => SessionState::Running,
        (true, false) => SessionState::Unfinished,
        (false, _) => SessionState::Idle,
    };
    Ok(SessionSummary {
        used: conversation.totals().clone(),
        session,
        state,
        newest,
    })
}
