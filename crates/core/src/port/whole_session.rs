//! A session with everything in it, as the journal has it.

use std::collections::HashSet;

use super::{Journal, Session, Stored};
use crate::{
    agent::{Conversation, Entry, Filed},
    id::{OwnerId, SessionId},
};

/// A session with what it begins with and what happened in it.
pub struct WholeSession {
    pub session: Session,
    /// The conversations it begins with, outermost first.
    pub before: Vec<Vec<Filed>>,
    pub own: Vec<Filed>,
}

impl WholeSession {
    /// Reads a session, if there is one.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn read(journal: &mut dyn Journal, id: &SessionId) -> Stored<Option<Self>> {
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
        Ok(Some(Self {
            session,
            before,
            own,
        }))
    }

    /// The conversation folded from its entries.
    pub fn conversation(&self) -> Conversation {
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
    /// children that one message asks for inherit the same, whenever they begin. The message is
    /// named by its number, or by one of its calls.
    pub fn cut_to(&mut self, asked_in: Option<&str>, prefix: &str) {
        let Some(asked_in) = asked_in else {
            return;
        };
        let number: Option<u64> = asked_in.parse().ok();
        let asks = |filed: &Filed| match &filed.entry {
            Entry::Answered { answer, .. } => {
                Some(filed.seq) == number || answer.calls().any(|call| call.id == asked_in)
            }
            _ => false,
        };
        let Some(asking) = self.own.iter().position(asks) else {
            return;
        };
        let Entry::Answered { answer, .. } = &self.own[asking].entry else {
            return;
        };
        let is_other = |name: &str, id: &str| !name.starts_with(prefix) && id != asked_in;
        let others = answer.calls().filter(|call| is_other(&call.name, &call.id));
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
    pub fn entries(&self) -> Vec<Filed> {
        let parts = self.before.iter().chain([&self.own]);
        parts.flatten().cloned().collect()
    }
}

/// How many forks of forks are followed.
const DEEPEST: usize = 64;

/// Whether another process drives a session and still has its lease. A driver's name begins with its
/// owner, up to a slash.
///
/// # Errors
/// When the journal cannot be read.
pub fn is_driven_elsewhere(
    journal: &mut dyn Journal,
    session: &SessionId,
    mine: Option<&OwnerId>,
) -> Stored<bool> {
    let driver = journal.driver(session)?.unwrap_or_default();
    let owner = driver.split_once('/').map_or("", |(owner, _)| owner);
    if owner.is_empty() || mine.is_some_and(|mine| mine.as_str() == owner) {
        return Ok(false);
    }
    let owners = journal.owners()?;
    Ok(owners.iter().any(|alive| alive.as_str() == owner))
}
