//! Sessions as the journal has them.

use std::collections::HashSet;

use asyncagents_core::{
    agent::{Conversation, Entry, Filed},
    id::{OwnerId, SessionId},
    port::{HostError, Journal, Session, StoreError},
};

/// Why something was not read or saved.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SessionError {
    /// Another driver has taken over, or the session is gone.
    #[error("another process works in the session")]
    NotOurs,
    /// Another process, which is alive, drives the session.
    #[error("another process works in the session")]
    Busy,
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<SessionError> for HostError {
    fn from(error: SessionError) -> Self {
        HostError::Unreachable(error.to_string())
    }
}

/// A session with what it begins with and what happened in it.
pub(crate) struct Whole {
    pub(crate) session: Session,
    /// The conversations it begins with, outermost first.
    pub(crate) before: Vec<Vec<Filed>>,
    pub(crate) own: Vec<Filed>,
}

impl Whole {
    pub(crate) fn conversation(&self) -> Conversation {
        let mut conversation = Conversation::default();
        for part in &self.before {
            part.iter().for_each(|filed| conversation.take(filed));
            conversation.branch();
        }
        self.own.iter().for_each(|filed| conversation.take(filed));
        conversation
    }

    /// Leaves out what was not there when a message asked for a fork: what came after it, and what
    /// its calls of tools with this prefix came to, among them the launch of the fork itself. So
    /// children that one message asks for inherit the same, whenever they begin.
    pub(crate) fn cut_to(&mut self, asked_in: Option<&str>, prefix: &str) {
        let asked_in = asked_in.and_then(|message| message.parse().ok());
        let asking = self
            .own
            .iter()
            .position(|filed| Some(filed.seq) == asked_in);
        let Some(asking) = asking else {
            return;
        };
        let Entry::Answered { answer, .. } = &self.own[asking].entry else {
            return;
        };
        let others = answer.calls().filter(|call| !call.name.starts_with(prefix));
        let others: HashSet<String> = others.map(|call| call.id.clone()).collect();
        let later = self.own.split_off(asking + 1).into_iter();
        let is_over = |filed: &Filed| {
            matches!(
                filed.entry,
                Entry::Answered { .. } | Entry::Compacted { .. }
            )
        };
        let results = later.take_while(|filed| !is_over(filed)).filter(
            |filed| matches!(&filed.entry, Entry::ToolEnded { call, .. } if others.contains(call)),
        );
        self.own.extend(results);
    }

    /// All entries, in order.
    pub(crate) fn entries(&self) -> Vec<Filed> {
        let parts = self.before.iter().chain([&self.own]);
        parts.flatten().cloned().collect()
    }
}

/// How many forks of forks are followed.
const DEEPEST: usize = 64;

pub(crate) fn whole(
    journal: &mut dyn Journal,
    id: &SessionId,
) -> Result<Option<Whole>, SessionError> {
    let Some(session) = journal.session(id)? else {
        return Ok(None);
    };
    let own = journal.entries(id, 0, u64::MAX)?;
    let mut before = Vec::new();
    let mut base = session.base.clone();
    while let Some(next) = base.take().filter(|_| before.len() < DEEPEST) {
        before.insert(0, journal.entries(&next.session, 0, next.until)?);
        base = journal.base_of(&next.session)?;
    }
    Ok(Some(Whole {
        session,
        before,
        own,
    }))
}

/// Whether another process drives a session and still has its lease.
pub(crate) fn is_driven_elsewhere(
    journal: &mut dyn Journal,
    session: &SessionId,
    mine: Option<&OwnerId>,
) -> Result<bool, SessionError> {
    let driver = journal.driver(session)?.unwrap_or_default();
    let owner = driver.split_once('/').map_or("", |(owner, _)| owner);
    if owner.is_empty() || mine.is_some_and(|mine| mine.as_str() == owner) {
        return Ok(false);
    }
    let owners = journal.owners()?;
    Ok(owners.iter().any(|alive| alive.as_str() == owner))
}
