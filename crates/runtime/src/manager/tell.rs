//! Telling a task something, and answering what it asks.

use std::{pin::pin, time::Duration};

use asyncagents_core::{
    answer::{self, AnswerState, Reader, Shown},
    id::{PostId, SessionId, TaskId},
    lifecycle::Command,
    moment::Moment,
    port::{Fate, Journal, PostKind, Posted, bound, tools_above},
    progress::OpenQuestion,
    question::{Given, Reply},
    refusal::Refusal,
    request::{AnswerRequest, Caller, MessageRequest},
    task::Task,
};
use tokio::time;

use super::{Manager, find, shown};
use crate::Problem;

/// How long a caller waits to be told whether the answer was taken.
const CONFIRM_TIMEOUT: Duration = Duration::from_secs(5);

/// How often it is looked whether it was.
const CONFIRM_POLL_INTERVAL: Duration = Duration::from_millis(100);

/// A permission that has been asked for so long can be meant by an answer that does not name it. A
/// younger question may have taken the place of the one that was seen.
const SEEN_AFTER: Duration = Duration::from_secs(5);

/// A message that a task will be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageAccepted {
    pub shown: Shown,
}

impl MessageAccepted {
    /// What the caller is answered.
    pub fn text(&self, reader: Reader) -> String {
        answer::messaged(&self.shown, reader)
    }
}

/// An answer to what a task asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerGiven {
    pub shown: Shown,
    /// What it asked.
    pub asked: String,
    pub reply: Reply,
    pub state: AnswerState,
    /// What else it asks.
    pub others: Vec<String>,
}

impl AnswerGiven {
    /// What the caller is answered.
    pub fn text(&self) -> String {
        let Self {
            shown,
            asked,
            reply,
            state,
            others,
        } = self;
        answer::answered(shown, asked, reply, state, others)
    }
}

impl Manager {
    /// Tells a task something: with its prompt if it has not begun, before its next step if it
    /// works.
    ///
    /// # Errors
    /// When there is no such task for the caller, or it takes no more messages.
    pub async fn message(
        &self,
        caller: &Caller,
        request: MessageRequest,
    ) -> Result<MessageAccepted, Problem> {
        let MessageRequest { task, text } = request;
        let (shared, caller) = (self.shared.clone(), caller.clone());
        let shown = self
            .shared
            .write(move |journal| {
                let mut task = find(journal, &caller, &task)?;
                check_below(journal, &caller, &task, "tell")?;
                let (from, text) = (caller.speaker(&task), text.clone());
                let command = Command::Tell { from, text };
                shared.carry_out(journal, &mut task, command)?;
                shown(journal, task)
            })
            .await?;
        self.shared.written();
        Ok(MessageAccepted { shown })
    }

    /// Answers what a task asks. Whether the host took the answer is said if that is known soon.
    ///
    /// # Errors
    /// When the task asks nothing, the answer does not fit, or the caller may not give it.
    pub async fn answer(
        &self,
        caller: &Caller,
        request: AnswerRequest,
    ) -> Result<AnswerGiven, Problem> {
        let (shared, caller) = (self.shared.clone(), caller.clone());
        let given = self.shared.write(move |journal| {
            let mut task = find(journal, &caller, &request.task)?;
            check_below(journal, &caller, &task, "answer")?;
            let (question, asked, others) = chosen(&task, &request, shared.now())?;
            check_unanswered(journal, &task, (&question, &asked))?;
            let reply = fitting(&task, &question, &request)?;
            let may_permit = shared.settings.model_may_permit && !is_in_task(journal, &caller)?;
            caller.may_reply(&reply, &asked, may_permit)?;
            let id = task.id.answer(task.seq + 1);
            let command = Command::Answer {
                question,
                reply: reply.clone(),
            };
            shared.carry_out(journal, &mut task, command)?;
            let given = AnswerGiven {
                shown: shown(journal, task)?,
                asked,
                reply,
                state: AnswerState::OnItsWay,
                others,
            };
            Ok((given, id))
        });
        let (given, post) = given.await?;
        self.shared.written();
        let state = self.until_settled(&given.shown.task.id, &post).await?;
        Ok(AnswerGiven { state, ..given })
    }

    /// Waits until a worker has given the answer to the host, or the time is up.
    async fn until_settled(&self, task: &TaskId, post: &PostId) -> Result<AnswerState, Problem> {
        let mut time_up = pin!(time::sleep(CONFIRM_TIMEOUT));
        loop {
            let (task, post) = (task.clone(), post.clone());
            let fate = self.shared.read(move |journal| {
                let posts = journal.posts(&task)?;
                let found = posts.into_iter().find(|posted| posted.id == post);
                Ok(found.map(|posted| posted.fate))
            });
            match fate.await? {
                Some(Fate::Delivered) => return Ok(AnswerState::Taken),
                Some(Fate::Undelivered(why)) => return Ok(AnswerState::NotTaken(why)),
                Some(Fate::Pending) | None => {}
            }
            tokio::select! {
                () = time::sleep(CONFIRM_POLL_INTERVAL) => {}
                () = &mut time_up => return Ok(AnswerState::OnItsWay),
            }
        }
    }
}

/// Whether a task is the caller's to tell something or to answer. A session has a say only in what
/// is below it, and one that works on a skill's terms only in what has them too.
fn check_below(
    journal: &mut dyn Journal,
    caller: &Caller,
    task: &Task,
    what: &'static str,
) -> Result<(), Problem> {
    let Some(session) = caller.session() else {
        return Ok(());
    };
    if !is_below(journal, session, task)? {
        let task = task.id.clone();
        return Err(Refusal::NotBelow { task, what }.into());
    }
    if let Some(bound) = bound(journal, session)? {
        bound.check_resume(&task.id, &tools_above(journal, task)?)?;
    }
    Ok(())
}

/// Whether a task works in the session that calls. Such a session permits nothing: it would get by
/// a task of its own what its user has refused it.
fn is_in_task(journal: &mut dyn Journal, caller: &Caller) -> Result<bool, Problem> {
    match caller.session() {
        Some(session) => Ok(journal.task_in(session)?.is_some()),
        None => Ok(false),
    }
}

fn is_below(journal: &mut dyn Journal, session: &SessionId, task: &Task) -> Result<bool, Problem> {
    let mut place = task.place.clone();
    loop {
        if place.parent == *session {
            return Ok(true);
        }
        let above = match &place.above {
            Some(above) => journal.task(above)?,
            None => None,
        };
        match above {
            Some(above) => place = above.place,
            None => return Ok(false),
        }
    }
}

/// The question that is meant, what it asks, and what else is asked.
fn chosen(
    task: &Task,
    request: &AnswerRequest,
    now: Moment,
) -> Result<(String, String, Vec<String>), Refusal> {
    let open = task.progress.open_questions();
    let is_first = task.progress.asked <= 1;
    let shown = |(id, open): &(&str, &OpenQuestion)| {
        format!("{}: {}", open.question.code(id), open.question.in_line())
    };
    let all = || open.iter().map(shown).collect();
    let (id, found) = match (&request.question, open.as_slice()) {
        (_, []) => {
            let task = task.id.clone();
            return Err(Refusal::NotAsking { task });
        }
        (Some(asked), open) => {
            let mut open = open.iter();
            let found = open.find(|(id, open)| asked == id || *asked == open.question.code(id));
            found.ok_or_else(|| Refusal::UnknownQuestion {
                task: task.id.clone(),
                asked: asked.clone(),
                open: all(),
            })?
        }
        (None, [only]) if is_clear(only.1, &request.given, is_first, now) => only,
        (None, _) => {
            let (task, open) = (task.id.clone(), all());
            return Err(Refusal::WhichQuestion { task, open });
        }
    };
    let others = open.iter().filter(|(other, _)| other != id).map(shown);
    let asked = found.question.in_line();
    Ok(((*id).to_owned(), asked, others.collect()))
}

/// A question is answered once: what was said first, or to the question that was open then, counts.
fn check_unanswered(
    journal: &mut dyn Journal,
    task: &Task,
    (question, asked): (&str, &str),
) -> Result<(), Problem> {
    let posts = journal.posts(&task.id)?;
    let answers = |post: &Posted| {
        let answer = post.kind == PostKind::Answer && post.question.as_deref() == Some(question);
        answer && post.run == task.run && post.fate == Fate::Pending
    };
    if posts.iter().any(answers) {
        let (task, question) = (task.id.clone(), asked.to_owned());
        return Err(Refusal::BeingAnswered { task, question }.into());
    }
    Ok(())
}

/// Whether the only question can be meant by an answer that does not name it. What would be
/// permitted must have been there for whoever permits it to see: a model can reject what a person
/// is looking at, and have the task ask for something else in its place.
fn is_clear(open: &OpenQuestion, given: &Given, is_first: bool, now: Moment) -> bool {
    match given {
        Given::Once | Given::Always => is_first && now.since(open.since) >= SEEN_AFTER,
        Given::Reject { .. } | Given::Text(_) | Given::Values(_) => true,
    }
}

/// The reply that was meant, if it answers the question.
fn fitting(task: &Task, question: &str, request: &AnswerRequest) -> Result<Reply, Refusal> {
    let Some(open) = task.progress.asking.get(question) else {
        let task = task.id.clone();
        return Err(Refusal::NotAsking { task });
    };
    let reply = open.question.reply(request.given.clone());
    reply.map_err(|why| Refusal::Unfit {
        task: task.id.clone(),
        question: open.question.in_line(),
        why,
    })
}
