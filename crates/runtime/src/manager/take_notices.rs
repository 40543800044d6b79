//! What a session is told that can be sent nothing: it asks, takes what there is, and what it took is
//! settled when it is in its history.

use std::time::Duration;

use asyncagents_core::{
    id::{PostId, SessionId},
    moment::Moment,
    notify::Message,
    port::{HostError, PendingPost},
};
use tokio::time;

use super::Manager;
use crate::{
    Problem,
    outbox::{self, PARENT_STOPPED, Readiness, parent_was_stopped, readiness, worded},
};

/// How many messages a session is given at once.
const MOST_AT_ONCE: usize = 20;

/// How many messages are looked at for that. More than are given: those that were given and do not show
/// must not be in the way of new ones.
const MOST_LOOKED_AT: usize = 100;

/// Something that a session is told now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenNotice {
    pub id: PostId,
    pub message: Message,
}

impl TakenNotice {
    /// The notice as a model reads it, in a text that is not the user's. Its last line is how it is
    /// recognised in a history.
    pub fn text(&self) -> String {
        let (visible, hidden) = (&self.message.visible, &self.message.hidden);
        format!("{visible}\n{hidden}\n[asyncagents notice {}]", self.id)
    }
}

/// When a session asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asking {
    /// While its program runs: what waits in there is on its way.
    Running,
    /// While its program runs, by one of several hooks that wait to wake it. What another has handed over is
    /// on its way: the program may be frozen, and would be told as often as there are hooks.
    Waking,
    /// Its program has just been started: what waited in the one before is lost.
    Started,
}

/// What a session that waits is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Awaited {
    Notices(Vec<TakenNotice>),
    /// None of its tasks is at work, and it knows of all ends.
    NothingLeft,
}

impl Manager {
    /// Gives a session what it has not been told. What it was given before is settled if it is in its
    /// history, given again if it was lost, and left alone while that is not known.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn take_notices(
        &self,
        session: &SessionId,
        asking: Asking,
    ) -> Result<Vec<TakenNotice>, Problem> {
        let (to, now) = (session.clone(), self.now());
        let found = self
            .shared
            .read(move |journal| Ok(journal.due_to(&to, now, MOST_LOOKED_AT)?));
        let mut due = Vec::new();
        for post in found.await? {
            if due.len() == MOST_AT_ONCE {
                break;
            }
            match post {
                Ok(post) => due.extend(self.is_to_be_told(&post, asking).await?.then_some(post)),
                Err(unreadable) => outbox::give_up(&self.shared, vec![unreadable]).await,
            }
        }
        let mut taken = Vec::new();
        for post in due {
            taken.extend(self.take(post).await?);
        }
        if !taken.is_empty() {
            self.shared.written();
        }
        Ok(taken)
    }

    /// Waits until there is something to tell a session, or nothing more will be. Nothing is taken once
    /// the session cannot be told any more.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn await_notices(
        &self,
        session: &SessionId,
        asking: Asking,
        can_be_told: impl AsyncFn() -> bool,
    ) -> Result<Awaited, Problem> {
        loop {
            let version = self.shared.version().await;
            if !can_be_told().await {
                return Ok(Awaited::NothingLeft);
            }
            let taken = self.take_notices(session, asking).await?;
            if !taken.is_empty() {
                return Ok(Awaited::Notices(taken));
            }
            let (to, now) = (session.clone(), self.now());
            let left = self.shared.read(move |journal| {
                let live = journal.any_live(&to)?;
                let pending = journal.any_pending(&to)?;
                // It may have come, and be due, since we looked.
                let untaken = journal.next_due_to(&to, Moment::default())?.is_some();
                Ok((live, pending, untaken, journal.next_due_to(&to, now)?))
            });
            let (live, pending, untaken, next) = left.await?;
            // What was handed over and does not show is told with the next prompt, or the next result.
            let is_handed_over = asking == Asking::Waking && !untaken;
            if !live && (!pending || is_handed_over) {
                return Ok(Awaited::NothingLeft);
            }
            // What was taken and does not show yet is looked for again.
            let again = pending.then(|| now.after(self.shared.settings.confirm_timeout));
            let until = [next, again].into_iter().flatten().min();
            tokio::select! {
                _ = self.shared.store.changed_since(version) => {}
                () = sleep_until(until, now), if until.is_some() => {}
            }
        }
    }

    /// The program of a session has just been started. What was given to the one before and is not in the
    /// history was lost with it: it is as if it had never been given.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn give_back_lost(&self, session: &SessionId) -> Result<(), Problem> {
        let (to, now) = (session.clone(), self.now());
        let found = self
            .shared
            .read(move |journal| Ok(journal.due_to(&to, now, MOST_LOOKED_AT)?));
        for post in found.await?.into_iter().flatten() {
            let was_given = post.attempted.is_some();
            if was_given && self.is_to_be_told(&post, Asking::Started).await? {
                let given_back = self.shared.write(move |journal| {
                    // Unless somebody has taken it since.
                    if journal.take(&post, now)? {
                        journal.put_off(&post.post.id, now, None)?;
                    }
                    Ok(())
                });
                given_back.await?;
                self.shared.written();
            }
        }
        Ok(())
    }

    /// Notices have reached their session for certain.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn notices_told(&self, taken: &[TakenNotice]) -> Result<(), Problem> {
        for notice in taken {
            outbox::note_told(&self.shared, notice.id.clone()).await?;
        }
        self.shared.written();
        Ok(())
    }

    /// A process of another agent shows this session from now on.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn shows(&self, process: &str, session: &SessionId) -> Result<(), Problem> {
        let (name, shown) = (process.to_owned(), session.clone());
        if self.shown_by(process).await?.as_ref() == Some(session) {
            return Ok(());
        }
        let now = self.now();
        let shows = self
            .shared
            .write(move |journal| Ok(journal.shows(&name, &shown, now)?));
        shows.await.map(drop)
    }

    /// The session that a process shows, if it has said so.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn shown_by(&self, process: &str) -> Result<Option<SessionId>, Problem> {
        let process = process.to_owned();
        let shown = self
            .shared
            .read(move |journal| Ok(journal.shown_by(&process)?));
        shown.await
    }

    /// Whether a session has tasks that are at work.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn has_live_tasks(&self, session: &SessionId) -> Result<bool, Problem> {
        let session = session.clone();
        let live = self
            .shared
            .read(move |journal| Ok(journal.any_live(&session)?));
        live.await
    }

    /// Whether a post that was found is to be told now. One that is in the history is settled.
    async fn is_to_be_told(&self, post: &PendingPost, asking: Asking) -> Result<bool, Problem> {
        let Some(attempted) = post.attempted else {
            return Ok(true);
        };
        let (session, id) = (&post.post.to, &post.post.id);
        let host = self.shared.hosts.get(&post.host)?;
        let is_told = match host.ask(|host| host.confirm(session, id)).await {
            Ok(is_told) => is_told,
            // It keeps no history in which this would ever show. It has been given it.
            Err(HostError::NoSession(_)) => asking != Asking::Started,
            Err(HostError::Unreachable(_) | HostError::Refused(_)) => return Ok(false),
        };
        if is_told {
            outbox::note_told(&self.shared, id.clone()).await?;
            self.shared.written();
            return Ok(false);
        }
        match asking {
            Asking::Started => return Ok(true),
            Asking::Waking => return Ok(false),
            Asking::Running => {}
        }
        if self.now() < attempted.after(self.shared.settings.confirm_timeout) {
            return Ok(false);
        }
        let on_its_way = host.ask(|host| host.is_on_its_way(session, id)).await;
        Ok(!on_its_way.unwrap_or(true))
    }

    /// Marks a post as told to the session that asks, unless somebody else has.
    async fn take(&self, found: PendingPost) -> Result<Option<TakenNotice>, Problem> {
        let shared = self.shared.clone();
        let taken = self.shared.write(move |journal| {
            let (id, now) = (&found.post.id, shared.now());
            let task = journal.task(&found.task)?;
            let stopped = match &task {
                Some(task) => parent_was_stopped(journal, task)?,
                None => false,
            };
            let too_late = match readiness(task.as_ref(), &found) {
                _ if stopped => Some(PARENT_STOPPED),
                Readiness::Ready => None,
                Readiness::Later => return Ok(None),
                Readiness::TooLate(why) => Some(why),
            };
            if let Some(why) = too_late {
                journal.undelivered(id, why, now)?;
                return Ok(None);
            }
            if !journal.take(&found, now)? {
                return Ok(None);
            }
            let marked = worded(journal, &found, &shared.settings.wording, now)?;
            Ok(Some(TakenNotice {
                id: id.clone(),
                message: marked.message,
            }))
        });
        taken.await
    }
}

async fn sleep_until(moment: Option<Moment>, now: Moment) {
    let pause = moment.map_or(Duration::MAX, |moment| moment.since(now));
    time::sleep(pause.max(Duration::from_millis(1))).await;
}
