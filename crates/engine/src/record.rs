//! Sessions in the store: read, begun, written to.

use std::sync::Arc;

use asyncagents_core::{
    agent::{Conversation, Entry, Filed},
    id::{OwnerId, SessionId},
    port::{Clock, HostError, Journal, Session, Store, StoreError, typed},
};

/// The journal, as the engine uses it.
#[derive(Clone)]
pub(crate) struct Record {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
}

/// Why something was not saved.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// Another driver has taken over, or the session is gone.
    NotOurs,
    /// Another process, which is alive, drives the session.
    Busy,
    /// The store failed.
    Store(StoreError),
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        Trouble::Store(error)
    }
}

impl From<Trouble> for HostError {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::NotOurs | Trouble::Busy => {
                HostError::Unreachable("another process works in the session".to_owned())
            }
            Trouble::Store(error) => HostError::Unreachable(error.to_string()),
        }
    }
}

impl Record {
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        work: impl Fn(&mut dyn Journal) -> Result<T, Trouble> + Send + 'static,
    ) -> Result<T, Trouble> {
        let (work, answer) = typed(work);
        self.store.write(work).await?;
        answer.take()
    }

    pub(crate) async fn read<T: Send + 'static>(
        &self,
        work: impl Fn(&mut dyn Journal) -> Result<T, Trouble> + Send + 'static,
    ) -> Result<T, Trouble> {
        let (work, answer) = typed(work);
        self.store.read(work).await?;
        answer.take()
    }

    /// A session, if there is one.
    pub(crate) async fn session(&self, id: &SessionId) -> Result<Option<Session>, Trouble> {
        let id = id.clone();
        self.read(move |journal| Ok(journal.session(&id)?)).await
    }

    /// A session and everything in it, what it begins with included.
    pub(crate) async fn whole(&self, id: &SessionId) -> Result<Option<Whole>, Trouble> {
        let id = id.clone();
        self.read(move |journal| whole(journal, &id)).await
    }

    /// Adds to a session that exists, whoever drives it.
    pub(crate) async fn file(&self, id: &SessionId, entry: Entry) -> Result<(), HostError> {
        let (session, now) = (id.clone(), self.clock.now());
        let filed = self.write(move |journal| {
            let there = journal.session(&session)?.is_some();
            if there {
                journal.file(&session, &entry, now)?;
            }
            Ok(there)
        });
        if filed.await? {
            Ok(())
        } else {
            Err(HostError::NoSession(id.clone()))
        }
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
    /// Folded.
    pub(crate) fn conversation(&self) -> Conversation {
        let mut conversation = Conversation::default();
        for part in &self.before {
            part.iter().for_each(|filed| conversation.take(filed));
            conversation.branch();
        }
        self.own.iter().for_each(|filed| conversation.take(filed));
        conversation
    }

    /// Everything in it, in order.
    pub(crate) fn entries(&self) -> Vec<Filed> {
        let parts = self.before.iter().chain([&self.own]);
        parts.flatten().cloned().collect()
    }
}

/// How many forks of forks are followed.
const DEEPEST: usize = 64;

pub(crate) fn whole(journal: &mut dyn Journal, id: &SessionId) -> Result<Option<Whole>, Trouble> {
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
) -> Result<bool, Trouble> {
    let driver = journal.driver(session)?.unwrap_or_default();
    let owner = driver.split_once('/').map_or("", |(owner, _)| owner);
    if owner.is_empty() || mine.is_some_and(|mine| mine.as_str() == owner) {
        return Ok(false);
    }
    let owners = journal.owners()?;
    Ok(owners.iter().any(|alive| alive.as_str() == owner))
}
