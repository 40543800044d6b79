//! The sessions of our own journal, as other parts of this crate read and write them.

use std::sync::Arc;

use async_trait::async_trait;
use asyncagents_core::{
    agent::{self, Entry},
    fork::Plan,
    id::{PostId, SessionId},
    moment::Moment,
    port::{
        Clock, Delivery, HostError, Journal, Notice, Recent, Store, StoreError, WholeSession,
        query, transact,
    },
};

use crate::outside::Outside;

/// Why something was not read or saved.
#[derive(Debug, thiserror::Error)]
pub(super) enum SessionError {
    /// Another driver has taken over, or the session is gone.
    #[error("another process works in the session")]
    NotOurs,
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<SessionError> for HostError {
    fn from(error: SessionError) -> Self {
        HostError::Unreachable(error.to_string())
    }
}

/// The sessions of our own journal, whoever works in them. As a host they are only read and told
/// things: for tasks of theirs that run elsewhere.
#[derive(Clone)]
pub struct JournalSessions {
    pub(super) store: Arc<dyn Store>,
    pub(super) clock: Arc<dyn Clock>,
    /// What the names of our tools begin with.
    prefix: String,
}

impl JournalSessions {
    /// The sessions of a journal.
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, prefix: String) -> Self {
        Self {
            store,
            clock,
            prefix,
        }
    }

    /// The journal's version. Without one, any that can be read is new.
    pub(super) async fn version(&self) -> i64 {
        self.store.version().await.unwrap_or(i64::MIN)
    }

    pub(super) fn now(&self) -> Moment {
        self.clock.now()
    }

    pub(super) async fn read<T: Send + 'static>(
        &self,
        work: impl Fn(&mut dyn Journal) -> Result<T, SessionError> + Send + 'static,
    ) -> Result<T, SessionError> {
        query(&*self.store, work).await
    }

    pub(super) async fn write<T: Send + 'static>(
        &self,
        work: impl Fn(&mut dyn Journal) -> Result<T, SessionError> + Send + 'static,
    ) -> Result<T, SessionError> {
        transact(&*self.store, work).await
    }

    /// A session with everything in it.
    pub(super) async fn whole(&self, id: &SessionId) -> Result<WholeSession, HostError> {
        let session = id.clone();
        let read = self.read(move |journal| Ok(WholeSession::read(journal, &session)?));
        let whole = read.await?;
        whole.ok_or_else(|| HostError::NoSession(id.clone()))
    }

    /// Adds an entry to a session. False if there is no such session.
    pub(super) async fn file(&self, id: &SessionId, entry: Entry) -> Result<bool, HostError> {
        let (session, now) = (id.clone(), self.now());
        let filed = self.write(move |journal| {
            let there = journal.session(&session)?.is_some();
            if there {
                journal.file(&session, &entry, now)?;
            }
            Ok(there)
        });
        Ok(filed.await?)
    }
}

/// Whether a session is in the journal, by its name. Others, such as a shell's, have no
/// conversation, but can be told things.
fn is_ours(session: &SessionId) -> bool {
    session.as_str().starts_with(SessionId::KIND)
}

#[async_trait]
impl Outside for JournalSessions {
    async fn recent(&self, session: &SessionId, plan: &Plan) -> Result<Recent, HostError> {
        let mut whole = self.whole(session).await?;
        whole.cut_to(plan.asked_in.as_deref(), &self.prefix);
        Ok(Recent {
            transcript: agent::transcript(&whole.entries()),
            unread: false,
        })
    }

    async fn exists(&self, session: &SessionId) -> Result<bool, HostError> {
        if !is_ours(session) {
            return Ok(true);
        }
        let id = session.clone();
        let read = self.read(move |journal| Ok(journal.session(&id)?.is_some()));
        Ok(read.await?)
    }

    async fn deliver(&self, session: &SessionId, notice: Notice) -> Result<Delivery, HostError> {
        let (id, now) = (session.clone(), self.now());
        let is_message = notice.id.is_message();
        let entry = Entry::Notice {
            post: notice.id,
            visible: notice.message.visible,
            hidden: notice.message.hidden,
        };
        let delivered = self.write(move |journal| {
            if is_ours(&id) && journal.session(&id)?.is_none() {
                return Ok(Delivery::Gone);
            }
            // A child that has done with its prompt would never read it.
            if is_message && journal.open_prompt(&id)?.is_none() {
                return Ok(Delivery::NotNow);
            }
            journal.file(&id, &entry, now)?;
            Ok(Delivery::Taken)
        });
        Ok(delivered.await?)
    }

    async fn confirm(&self, session: &SessionId, notice: &PostId) -> Result<bool, HostError> {
        let (id, post) = (session.clone(), notice.clone());
        let there = self.read(move |journal| Ok(journal.posted(&id, &post)?));
        Ok(there.await?)
    }

    async fn is_on_its_way(&self, _: &SessionId, _: &PostId) -> Result<bool, HostError> {
        Ok(false)
    }
}
