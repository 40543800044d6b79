//! What is written in the journal and read from it, under the name of this driver.

use std::borrow::Cow;

use asyncagents_core::{
    agent::{End, Entry, Filed, ToolOutcome},
    id::{PostId, SessionId},
    port::{Journal, SessionEvent},
};

use super::{
    super::{journal::SessionError, message},
    Driver,
    ask::rejected_in,
};

impl Driver {
    /// Whether tasks of the session are unfinished, or it has not been told of all that have ended.
    pub(super) async fn is_unsettled(&self) -> Result<bool, SessionError> {
        let id = self.session.id.clone();
        let read = self
            .shared
            .sessions
            .read(move |journal| Ok(journal.any_live(&id)? || journal.any_pending(&id)?));
        read.await
    }

    /// Ends the run, unless there is more to it than this driver knew.
    pub(super) async fn finish(&mut self, end: End) -> Result<(), SessionError> {
        let Some(run) = self.conversation.run() else {
            return Ok(());
        };
        let entry = Entry::Ended {
            prompt: run.prompt.clone(),
            end: end.clone(),
            answer: run.answer.clone(),
        };
        let (id, name) = (self.session.id.clone(), self.name.clone());
        let (newest, now) = (self.conversation.newest(), self.shared.sessions.now());
        let answered = end == End::Answered;
        let finished = self.shared.sessions.write(move |journal| {
            check_driver(journal, &id, &name)?;
            let news = journal.entries(&id, newest, u64::MAX)?;
            if answered && !news.is_empty() {
                return Ok((news, false));
            }
            journal.file(&id, &entry, now)?;
            Ok((journal.entries(&id, newest, u64::MAX)?, true))
        });
        let (news, is_over) = finished.await?;
        self.fold(&news);
        if is_over {
            (self.over, self.broken, self.crashes) = (None, None, 0);
            self.shared.report(&self.session.id, SessionEvent::Idle);
        }
        Ok(())
    }

    pub(super) async fn check_ours(&self) -> Result<(), SessionError> {
        let (id, name) = (self.session.id.clone(), self.name.clone());
        let read = self
            .shared
            .sessions
            .read(move |journal| check_driver(journal, &id, &name));
        read.await
    }

    pub(super) async fn save(&mut self, entries: Vec<Entry>) -> Result<(), SessionError> {
        let (id, name) = (self.session.id.clone(), self.name.clone());
        let (newest, now) = (self.conversation.newest(), self.shared.sessions.now());
        let saved = self.shared.sessions.write(move |journal| {
            check_driver(journal, &id, &name)?;
            for entry in &entries {
                journal.file(&id, entry, now)?;
            }
            Ok(journal.entries(&id, newest, u64::MAX)?)
        });
        let news = saved.await?;
        self.fold(&news);
        Ok(())
    }

    pub(super) async fn catch_up(&mut self) -> Result<(), SessionError> {
        let (id, newest) = (self.session.id.clone(), self.conversation.newest());
        let news = self
            .shared
            .sessions
            .read(move |journal| Ok(journal.entries(&id, newest, u64::MAX)?));
        let news = news.await?;
        self.fold(&news);
        Ok(())
    }

    /// Takes in entries of the session.
    pub(super) fn fold(&mut self, news: &[Filed]) {
        for filed in news {
            self.conversation.take(&without_result(filed));
            match &filed.entry {
                Entry::AgentSession { id, process, .. } => {
                    (self.agents, self.process) = (Some(id.clone()), process.clone());
                }
                Entry::ToolBegan { .. } => self.has_begun = true,
                Entry::Answered { seen, .. } => {
                    self.sent = self.sent.max(*seen);
                    self.posts.retain(|post| post.seq > *seen);
                }
                Entry::Ended { prompt, .. } => {
                    // What was rejected in it is of no use to the next.
                    let rejected = rejected_in(prompt);
                    self.posts.retain(|filed| {
                        let post = filed.entry.post();
                        let is_of =
                            |post: &PostId| post == prompt || post.as_str().starts_with(&rejected);
                        !post.is_some_and(is_of)
                    });
                }
                entry => {
                    if matches!(entry, Entry::Prompted { .. }) {
                        (self.over, self.broken) = (None, None);
                    }
                    if message::parts_of(entry).is_some() {
                        self.posts.push(filed.clone());
                    }
                }
            }
        }
    }
}

/// The same without what came of a call: an agent may have read very much, and has that itself.
fn without_result(filed: &Filed) -> Cow<'_, Filed> {
    let Entry::ToolEnded { call, outcome } = &filed.entry else {
        return Cow::Borrowed(filed);
    };
    let outcome = match outcome {
        ToolOutcome::Done(_) => ToolOutcome::Done(String::new()),
        ToolOutcome::Failed(_) => ToolOutcome::Failed(String::new()),
        ToolOutcome::Unknown => ToolOutcome::Unknown,
    };
    let entry = Entry::ToolEnded {
        call: call.clone(),
        outcome,
    };
    Cow::Owned(Filed { entry, ..*filed })
}

pub(super) fn check_driver(
    journal: &mut dyn Journal,
    id: &SessionId,
    name: &str,
) -> Result<(), SessionError> {
    match journal.driver(id)? {
        Some(driver) if driver == name => Ok(()),
        _ => Err(SessionError::NotOurs),
    }
}
