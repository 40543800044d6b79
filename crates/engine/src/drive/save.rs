//! Saves what happened in a session, and ends its runs.

use std::{sync::atomic::Ordering, time::Duration};

use asyncagents_core::{
    agent::{End, Entry, Filed},
    id::SessionId,
    port::Journal,
};
use tokio::time;

use super::{DriveError, Driven, Driver, driver_name};
use crate::{Live, record::SessionError};

/// How often saving is tried, with longer and longer pauses: what a model has answered was
/// paid for.
const SAVE_ATTEMPTS: u32 = 4;

impl Driver {
    pub(super) async fn fail(&mut self, error: &(dyn ToString + Sync)) -> Driven {
        let why = error.to_string();
        self.finish(End::Broken { why }).await
    }

    /// Ends the run, unless there is more to it than this driver knew.
    pub(super) async fn finish(&mut self, end: End) -> Driven {
        let Some(run) = self.conversation.run() else {
            return Ok(());
        };
        let cut = run.cuts > 0 && end == End::Answered;
        let mark = "\n\n[The answer was cut at the model's greatest length.]";
        let mark = if cut { mark } else { "" };
        let answer = run.answer.as_ref().map(|answer| format!("{answer}{mark}"));
        let entry = Entry::Ended {
            prompt: run.prompt.clone(),
            end: end.clone(),
            answer,
        };
        let waits = end == End::Answered && self.waits();
        let (id, name) = (self.session.id.clone(), self.name.clone());
        let (newest, now) = (self.conversation.newest(), self.shared.now());
        // What changes from here on ends the wait.
        self.version = self.shared.store.version().await.ok();
        let finished = self.shared.write(move |journal| {
            check_driver(journal, &id, &name)?;
            let news = journal.entries(&id, newest, u64::MAX)?;
            if !news.is_empty() {
                return Ok(Finished::NotYet(news));
            }
            if waits && is_unsettled(journal, &id)? {
                return Ok(Finished::Unsettled);
            }
            journal.file(&id, &entry, now)?;
            // Another process may go on with the session from here.
            journal.drive(&id, "")?;
            Ok(Finished::Done(journal.entries(&id, newest, u64::MAX)?))
        });
        match finished.await? {
            Finished::Unsettled => self.open_tasks = true,
            Finished::NotYet(news) => self.fold(&news),
            Finished::Done(news) => {
                self.released = true;
                self.fold(&news);
                self.show(Live::Ended(end));
            }
        }
        Ok(())
    }

    /// Saves what happened, retrying if the store fails, and takes in what other processes have added
    /// meanwhile.
    pub(super) async fn save(&mut self, entries: Vec<Entry>) -> Driven {
        self.save_as(entries, Saved::OnDisk).await
    }

    /// The same; `Saved::Soon` does not wait for the disk.
    pub(super) async fn save_as(&mut self, entries: Vec<Entry>, saved: Saved) -> Driven {
        let mut pause = Duration::from_millis(100);
        for _ in 1..SAVE_ATTEMPTS {
            match self.try_save(entries.clone(), saved).await {
                Err(DriveError::Failed(SessionError::Store(error))) => {
                    tracing::warn!(session = %self.session.id, %error, "saving failed, retrying");
                    time::sleep(pause).await;
                    pause *= 4;
                }
                saved => return saved,
            }
        }
        self.try_save(entries, saved).await
    }

    async fn try_save(&mut self, entries: Vec<Entry>, saved: Saved) -> Driven {
        let (id, name) = (self.session.id.clone(), self.name.clone());
        let (newest, now) = (self.conversation.newest(), self.shared.now());
        let work = move |journal: &mut dyn Journal| {
            check_driver(journal, &id, &name)?;
            for entry in &entries {
                journal.file(&id, entry, now)?;
            }
            Ok(journal.entries(&id, newest, u64::MAX)?)
        };
        let news = match saved {
            Saved::OnDisk => self.shared.write(work).await?,
            Saved::Soon => self.shared.write_unsynced(work).await?,
        };
        self.answer_unsynced = false;
        self.fold(&news);
        self.handle.has_acted.store(true, Ordering::SeqCst);
        Ok(())
    }

    /// Waits until the newest answer is on disk: it was paid for, and what follows takes time.
    pub(super) async fn sync_answer(&mut self) -> Driven {
        if !self.answer_unsynced {
            return Ok(());
        }
        // What is on disk then has everything before it. A commit that changes nothing would not
        // be written: the driver gets another name.
        let new = driver_name((self.shared.owner)().as_ref());
        let (id, old, name) = (self.session.id.clone(), self.name.clone(), new.clone());
        let renamed = self.shared.write(move |journal| {
            check_driver(journal, &id, &old)?;
            Ok(journal.drive(&id, &name)?)
        });
        renamed.await?;
        self.name = new;
        self.answer_unsynced = false;
        Ok(())
    }

    pub(super) async fn catch_up(&mut self) -> Driven {
        let (id, newest) = (self.session.id.clone(), self.conversation.newest());
        let news = self
            .shared
            .read(move |journal| Ok(journal.entries(&id, newest, u64::MAX)?));
        self.fold(&news.await?);
        Ok(())
    }

    fn fold(&mut self, news: &[Filed]) {
        news.iter().for_each(|filed| self.conversation.take(filed));
        self.publish();
    }

    pub(super) fn show(&self, live: Live) {
        self.shared.show(&self.session.id, live);
    }
}

/// When something counts as saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Saved {
    /// When it is on the disk.
    OnDisk,
    /// When the operating system has it: it survives this process. It is on the disk with what is
    /// saved next. For what can be done again after a power cut, or what is followed at once.
    Soon,
}

/// What came of ending a run.
enum Finished {
    Done(Vec<Filed>),
    NotYet(Vec<Filed>),
    Unsettled,
}

fn check_driver(journal: &mut dyn Journal, id: &SessionId, name: &str) -> Result<(), SessionError> {
    match journal.driver(id)? {
        Some(driver) if driver == name => Ok(()),
        _ => Err(SessionError::NotOurs),
    }
}

/// Whether tasks of the session are unfinished, or notices of ended ones are not delivered.
fn is_unsettled(journal: &mut dyn Journal, id: &SessionId) -> Result<bool, SessionError> {
    Ok(journal.any_live(id)? || journal.any_pending(id)?)
}
