//! Reading results, at once or when they are there.

use std::{pin::pin, sync::Arc, time::Duration};

use asyncagents_core::{
    answer::Report,
    id::{SessionId, TaskId},
    lifecycle::Command,
    port::{Journal, StoreErrorKind},
    refusal::Refusal,
    request::{Caller, ConversationRequest, OutputRequest},
    task::Task,
    transcript::{Message, Outcome, Part},
};
use tokio::{sync::mpsc, time};

use super::{
    Manager, find, shown,
    told::{messages, not_taken},
};
use crate::{Problem, shared::Shared};

impl Manager {
    /// Where a task stands, and its result if it has ended; the result is marked as read.
    /// A request that waits returns when the task has ended or the time is up.
    ///
    /// # Errors
    /// When there is no such task.
    pub async fn output(&self, caller: &Caller, request: OutputRequest) -> Result<Report, Problem> {
        let (who, asked) = (caller.clone(), request.task.clone());
        let task = self
            .shared
            .read(move |journal| find(journal, &who, &asked))
            .await?;
        let waits = match request.wait {
            Some(wait) => {
                let mut waits = self.announce_wait(caller, &task, wait).await?;
                self.until_ended(&task.id, wait).await?;
                waits.as_mut().and_then(Wait::keep)
            }
            None => None,
        };
        // What can fail comes before the result is marked as read.
        let conversation = match request.conversation {
            Some(wanted) => Some(self.conversation(&task.id, wanted).await?),
            None => None,
        };
        let by_parent = caller.session() == Some(&task.place.parent);
        let report = self.retrieve(task.id, by_parent, waits).await?;
        Ok(Report {
            conversation,
            ..report
        })
    }

    /// The child's conversation, from its host.
    async fn conversation(
        &self,
        id: &TaskId,
        wanted: ConversationRequest,
    ) -> Result<Vec<Message<'static>>, Problem> {
        let looked = id.clone();
        let task = self
            .shared
            .read(move |journal| look(journal, &looked))
            .await?
            .shown
            .task;
        let Some(session) = &task.session else {
            return Ok(Vec::new());
        };
        let host = self.shared.hosts.get(&task.brief.host)?;
        let conversation = host.ask(|host| host.messages(session)).await?;
        let messages = match &wanted.since {
            Some(id) => conversation
                .after(id)
                .ok_or_else(|| Refusal::UnknownMessage {
                    task: task.id.clone(),
                    message: id.clone(),
                })?,
            None => conversation.messages(),
        };
        let newest = wanted.limit.unwrap_or(messages.len());
        let messages = &messages[messages.len().saturating_sub(newest)..];
        let mut messages = messages.to_vec();
        if !wanted.tool_results {
            let calls = messages.iter_mut().flat_map(|message| &mut message.parts);
            for part in calls {
                if let Part::Tool(call) = part {
                    call.outcome = Outcome::Pending;
                }
            }
        }
        Ok(messages)
    }

    /// Returns when something has happened to a task after event number `seen`, or the
    /// time is up. Nothing is marked as read.
    ///
    /// # Errors
    /// When there is no such task.
    pub async fn follow(
        &self,
        caller: &Caller,
        asked: &str,
        seen: Option<u64>,
        wait: Duration,
    ) -> Result<Report, Problem> {
        let (who, asked) = (caller.clone(), asked.trim().to_owned());
        let id = self
            .shared
            .read(move |journal| find(journal, &who, &asked))
            .await?
            .id;
        self.until(&id, wait, |task| Some(task.seq) != seen).await?;
        self.shared.read(move |journal| look(journal, &id)).await
    }

    /// A session will ask for the result of its task again and again for so long, and is not also told if
    /// it does.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn will_ask(
        &self,
        session: &SessionId,
        task: &TaskId,
        lasts: Duration,
    ) -> Result<(), Problem> {
        let (id, session) = (task.clone(), session.clone());
        let until = self.shared.now().after(lasts);
        let wait = self
            .shared
            .write(move |journal| Ok(journal.wait(&id, &session, until)?));
        wait.await.map(drop)
    }

    /// A parent that waits is not also told.
    async fn announce_wait(
        &self,
        caller: &Caller,
        task: &Task,
        wait: Duration,
    ) -> Result<Option<Wait>, Problem> {
        let Some(session) = caller
            .session()
            .filter(|session| **session == task.place.parent)
        else {
            return Ok(None);
        };
        let (id, session) = (task.id.clone(), session.clone());
        let until = self.shared.now().after(wait);
        let row = self
            .shared
            .write(move |journal| Ok(journal.wait(&id, &session, until)?))
            .await?;
        let shared = self.shared.clone();
        Ok(Some(Wait {
            shared,
            row: Some(row),
        }))
    }

    async fn until_ended(&self, id: &TaskId, wait: Duration) -> Result<(), Problem> {
        self.until(id, wait, |task| !task.is_live()).await
    }

    /// Waits until something is so about a task, or the time is up.
    async fn until(
        &self,
        id: &TaskId,
        wait: Duration,
        is_so: impl Fn(&Task) -> bool,
    ) -> Result<(), Problem> {
        let mut time_up = pin!(time::sleep(wait));
        let watching = self.shared.watch.task(id);
        loop {
            let mut changed = pin!(watching.changed.notified());
            // From here on no change goes unnoticed.
            changed.as_mut().enable();
            let task_id = id.clone();
            let task = self.shared.read(move |journal| Ok(journal.task(&task_id)?));
            if task.await?.is_none_or(|task| is_so(&task)) {
                return Ok(());
            }
            tokio::select! {
                () = changed => {}
                () = &mut time_up => return Ok(()),
            }
        }
    }

    /// Marks a result as read, if there is one, and ends the wait for it.
    async fn retrieve(
        &self,
        id: TaskId,
        by_parent: bool,
        wait: Option<i64>,
    ) -> Result<Report, Problem> {
        let seen = id.clone();
        let report = self
            .shared
            .read(move |journal| look(journal, &seen))
            .await?;
        let nothing_to_mark =
            report.shown.task.is_live() || report.shown.task.retrieved_at.is_some();
        if nothing_to_mark && wait.is_none() {
            return Ok(report);
        }
        let shared = self.shared.clone();
        let retrieved = self.shared.write(move |journal| {
            if let Some(wait) = wait {
                journal.stop_waiting(wait)?;
            }
            if let Some(mut task) = journal.task(&id)? {
                shared.carry_out(journal, &mut task, Command::Retrieve)?;
                // This caller has not been told of the runs before it.
                let notice = id.notice(task.run);
                if wait.is_some() && !task.is_live() {
                    journal.withdraw(&notice, "a blocked caller got the result", shared.now())?;
                } else if by_parent && !task.is_live() {
                    journal.result_was_read(&notice)?;
                }
            }
            look(journal, &id)
        });
        match retrieved.await {
            // In a store that cannot be written, the result can still be read.
            Err(Problem::Store(error)) if error.kind() == StoreErrorKind::ReadOnly => Ok(report),
            retrieved => retrieved,
        }
    }
}

/// A caller's wait, as the journal knows it. One that is given up is ended there: the caller did
/// not get the result, so the parent has to be told.
struct Wait {
    shared: Arc<Shared>,
    row: Option<i64>,
}

impl Wait {
    /// It was not given up; the caller of this ends it.
    fn keep(&mut self) -> Option<i64> {
        self.row.take()
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        if let Some(row) = self.row.take() {
            // If the manager is gone, the wait expires by itself.
            let _ = self.shared.given_up.send(row);
        }
    }
}

/// Ends waits that were given up, for as long as there is a handle.
pub(super) async fn end_waits(shared: Arc<Shared>, mut given_up: mpsc::UnboundedReceiver<i64>) {
    while let Some(row) = given_up.recv().await {
        let ended = shared.write(move |journal| Ok(journal.stop_waiting(row)?));
        match ended.await {
            Ok(()) => shared.written(),
            Err(problem) => tracing::warn!(%problem, "cannot end a wait that was given up"),
        }
    }
}

fn look(journal: &mut dyn Journal, id: &TaskId) -> Result<Report, Problem> {
    let Some(task) = journal.task(id)? else {
        let asked = id.to_string();
        return Err(Refusal::UnknownTask { asked }.into());
    };
    let answer = if task.is_live() {
        None
    } else {
        journal.answer(id)?
    };
    Ok(Report {
        messages: messages(journal, &task)?,
        not_taken: not_taken(journal, &task)?,
        shown: shown(journal, task)?,
        answer,
        conversation: None,
    })
}
