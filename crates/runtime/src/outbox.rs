//! Delivers posts: retries each until it is in the session's history, and never sends it twice. An
//! answer is retried until the host has taken it or the question is not open any more.

use std::{collections::HashSet, sync::Arc, time::Duration};

use asyncagents_core::{
    end_notice::{EndMessage, EndNotice, MOST_TOGETHER, end_message},
    id::{OwnerId, PostId, SessionId, TaskId},
    lifecycle::{Command, was_stopped},
    moment::Moment,
    notify::{Message, Wording},
    port::{
        Content, Delivery, HostError, Journal, Notice, NoticeText, PendingPost, PostKind, Stored,
        UnreadablePost, UnsentEnd,
    },
    progress::Observation,
    question::{Answered, Reply},
    task::{Stage, State, Task},
};
use tokio::time;

use crate::{Problem, hosts::OpenHost, shared::Shared};

/// The longest pause between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// How often a worker looks for what waits in a host. Nobody may continue that session for days, and no
/// worker should live for that: the next one looks again.
const LOOKS: u32 = 5;

/// The pause after the store has failed.
const STORE_RETRY: Duration = Duration::from_secs(1);

/// Why a message or an answer is not sent.
pub(crate) const RUN_ENDED: &str = "the run ended before it was delivered";

/// Why a parent is not told of an end.
pub(crate) const PARENT_STOPPED: &str = "the parent had been stopped";

/// Posts that are delivered one after the other: those to one session. Answers do not wait for the
/// rest, for the session may do nothing until it has them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Lane {
    session: SessionId,
    answers: bool,
}

impl Lane {
    pub(crate) fn of(pending: &PendingPost) -> Self {
        Self {
            session: pending.post.to.clone(),
            answers: pending.post.content.kind() == PostKind::Answer,
        }
    }
}

/// What is to be done about a post.
enum Verdict {
    /// Delivered: it is in the session's history, or the host took the answer.
    Delivered,
    /// Undeliverable, for a reason; do not retry.
    Undeliverable(String),
    /// The question is not open any more.
    NotAsked(String),
    /// It is of no use any more.
    TooLate(&'static str),
    /// Retry then. `attempted` is when it may have been sent.
    Retry {
        at: Moment,
        attempted: Option<Moment>,
    },
    /// Its session is told when it asks.
    Held,
    /// It waits in its session's host.
    Left,
    /// It was withdrawn, or another worker sends it.
    NotOurs,
}

/// What is about to be sent.
pub(crate) struct Marked {
    pub(crate) message: Message,
    /// The posts that are told in this message.
    pub(crate) with: Vec<PostId>,
}

/// Delivers posts to one session, one after the other.
pub(crate) async fn deliver(shared: Arc<Shared>, owner: OwnerId, posts: Vec<PendingPost>) {
    let mut told = HashSet::new();
    for pending in posts {
        let id = pending.post.id.clone();
        if told.contains(&id) {
            continue;
        }
        match settle(&shared, &owner, pending).await {
            Ok(with) => told.extend(with),
            Err(problem) => {
                tracing::warn!(post = %id, %problem, "store failed, retrying delivery");
                time::sleep(STORE_RETRY).await;
            }
        }
    }
    shared.written();
}

/// Settles posts that cannot be read, so that they are not in the way of all others.
pub(crate) async fn give_up(shared: &Shared, posts: Vec<UnreadablePost>) {
    for post in posts {
        let (why, now) = (post.why.clone(), shared.now());
        match note(shared, move |journal| journal.give_up(&post, now)).await {
            Ok(()) => {
                tracing::error!(why, "post is unreadable and was given up");
                shared.written();
            }
            Err(problem) => tracing::warn!(why, %problem, "store failed, unreadable post stays"),
        }
    }
}

/// Returns the posts that were told, or not, with this one.
async fn settle(
    shared: &Arc<Shared>,
    owner: &OwnerId,
    pending: PendingPost,
) -> Result<Vec<PostId>, Problem> {
    let (id, task) = (pending.post.id.clone(), pending.task.clone());
    let answers = match &pending.post.content {
        Content::Answer { question, .. } => Some(question.clone()),
        Content::Notice(_) | Content::Question { .. } | Content::Message(_) => None,
    };
    let (verdict, with) = attempt(shared, owner, pending).await?;
    let now = shared.now();
    match verdict {
        Verdict::Delivered => match answers {
            Some(question) => note_answer(shared, task, question, id, None).await,
            None => note_told(shared, id).await,
        },
        Verdict::NotAsked(why) => match answers {
            Some(question) => note_answer(shared, task, question, id, Some(why)).await,
            None => note(shared, move |journal| journal.undelivered(&id, &why, now)).await,
        },
        Verdict::Undeliverable(why) => {
            tracing::warn!(post = %id, why, "post is undeliverable");
            note(shared, move |journal| journal.undelivered(&id, &why, now)).await
        }
        Verdict::TooLate(why) => {
            note(shared, move |journal| journal.undelivered(&id, why, now)).await
        }
        Verdict::Retry { at, attempted } => {
            note(shared, move |journal| journal.put_off(&id, at, attempted)).await
        }
        Verdict::Held => {
            note(shared, move |journal| {
                journal.put_off(&id, now, None)?;
                journal.hold(&id)
            })
            .await
        }
        Verdict::Left => note(shared, move |journal| journal.leave(&id)).await,
        Verdict::NotOurs => Ok(()),
    }?;
    Ok(with)
}

/// One attempt. What may have been sent before is looked for before it is sent again, and
/// given the time it may take to show. Hosts can be slow, so the time is always taken anew.
async fn attempt(
    shared: &Shared,
    owner: &OwnerId,
    pending: PendingPost,
) -> Result<(Verdict, Vec<PostId>), Problem> {
    let mut with = Vec::new();
    let verdict = match shared.hosts.get(&pending.host) {
        Ok(host) => match &pending.post.content {
            Content::Notice(_) | Content::Message(_) | Content::Question { .. } => {
                tell(shared, owner, &host, pending, &mut with).await?
            }
            Content::Answer { question, reply } => {
                let (question, reply) = (question.clone(), reply.clone());
                answer(shared, owner, &host, pending, question, reply).await?
            }
        },
        Err(error) => retry_or_give_up(shared, &pending, error, pending.attempted),
    };
    Ok((verdict, with))
}

/// Tells a session something. `with` gets the posts that it is told in the same message.
async fn tell(
    shared: &Shared,
    owner: &OwnerId,
    host: &OpenHost,
    pending: PendingPost,
    with: &mut Vec<PostId>,
) -> Result<Verdict, Problem> {
    let (session, id) = (&pending.post.to, &pending.post.id);
    let confirm = || host.ask(|host| host.confirm(session, id));
    if let Some(attempted) = pending.attempted {
        match confirm().await {
            Ok(true) => return Ok(Verdict::Delivered),
            Ok(false) => {
                let at = attempted.after(shared.settings.confirm_timeout);
                if shared.now() < at {
                    let attempted = Some(attempted);
                    return Ok(Verdict::Retry { at, attempted });
                }
                let on_its_way = host.ask(|host| host.is_on_its_way(session, id));
                if on_its_way.await.unwrap_or(true) {
                    if pending.attempts >= LOOKS {
                        return Ok(Verdict::Left);
                    }
                    let at = shared.now().after(pause(&pending));
                    let attempted = Some(attempted);
                    return Ok(Verdict::Retry { at, attempted });
                }
            }
            Err(error) => {
                let attempted = Some(attempted);
                return Ok(retry_or_give_up(shared, &pending, error, attempted));
            }
        }
    }
    let marked = match mark(shared, owner, &pending).await? {
        Ok(marked) => marked,
        Err(verdict) => return Ok(verdict),
    };
    *with = marked.with;
    let notice = Notice {
        id: id.clone(),
        message: marked.message,
    };
    let delivered = host.ask(|host| host.deliver(session, notice));
    match delivered.await {
        Ok(Delivery::Taken) => match confirm().await {
            Ok(true) => Ok(Verdict::Delivered),
            Ok(false) | Err(_) => Ok(Verdict::Retry {
                at: shared
                    .now()
                    .after(pause(&pending).max(shared.settings.confirm_timeout)),
                attempted: Some(shared.now()),
            }),
        },
        Ok(Delivery::NotNow) => Ok(Verdict::Retry {
            at: shared.now().after(pause(&pending)),
            attempted: None,
        }),
        Ok(Delivery::Held) => Ok(Verdict::Held),
        Ok(Delivery::Gone) => Ok(Verdict::Undeliverable(gone(pending.post.content.kind()))),
        Err(error) => {
            let attempted = Some(shared.now());
            Ok(retry_or_give_up(shared, &pending, error, attempted))
        }
    }
}

fn gone(kind: PostKind) -> String {
    match kind {
        PostKind::Notice | PostKind::Question => "the parent's session is gone".to_owned(),
        PostKind::Message | PostKind::Answer => "its session is gone".to_owned(),
    }
}

/// Gives a host the answer to a question. A host answers a question once, so it is not looked for
/// before it is sent again.
async fn answer(
    shared: &Shared,
    owner: &OwnerId,
    host: &OpenHost,
    pending: PendingPost,
    question: String,
    reply: Reply,
) -> Result<Verdict, Problem> {
    if let Err(verdict) = mark(shared, owner, &pending).await? {
        return Ok(verdict);
    }
    let session = &pending.post.to;
    let answered = host.ask(|host| host.answer(session, &question, reply));
    match answered.await {
        Ok(Answered::Taken) => Ok(Verdict::Delivered),
        Ok(Answered::NotAsked) => {
            let perhaps = match pending.attempted {
                Some(_) => ", perhaps by this answer",
                None => "",
            };
            Ok(Verdict::NotAsked(format!(
                "it had been answered meanwhile{perhaps}"
            )))
        }
        Err(error) => {
            let attempted = Some(shared.now());
            Ok(retry_or_give_up(shared, &pending, error, attempted))
        }
    }
}

fn pause(pending: &PendingPost) -> Duration {
    let pause = Duration::from_millis(250).saturating_mul(1 << pending.attempts.min(10));
    pause.min(LONGEST_PAUSE)
}

/// A host that cannot be reached may be reached later; one that refuses will refuse again.
fn retry_or_give_up(
    shared: &Shared,
    pending: &PendingPost,
    error: HostError,
    attempted: Option<Moment>,
) -> Verdict {
    match error {
        HostError::Unreachable(_) => {
            tracing::warn!(post = %pending.post.id, %error, "host unavailable, retrying delivery");
            let at_least = match pending.post.content.kind() {
                // It is never looked for, so there is no time it may take to show.
                PostKind::Answer => Duration::ZERO,
                PostKind::Notice | PostKind::Question | PostKind::Message => {
                    shared.settings.confirm_timeout
                }
            };
            let at = shared.now().after(pause(pending).max(at_least));
            Verdict::Retry { at, attempted }
        }
        HostError::Refused(_) | HostError::NoSession(_) => {
            Verdict::Undeliverable(error.to_string())
        }
    }
}

/// Saves that the post is about to be sent, with its text: from here on it may have been, and a repeat
/// is the same. Returns what is to be done instead, if it must not be sent any more.
async fn mark(
    shared: &Shared,
    owner: &OwnerId,
    found: &PendingPost,
) -> Result<Result<Marked, Verdict>, Problem> {
    let (owner, found, now) = (owner.clone(), found.clone(), shared.now());
    let settings = shared.settings.clone();
    let marked = shared.write(move |journal| {
        let task = journal.task(&found.task)?;
        if let (Some(task), Content::Notice(NoticeText::Unsent { .. })) =
            (&task, &found.post.content)
            && parent_was_stopped(journal, task)?
        {
            return Ok(Err(Verdict::TooLate(PARENT_STOPPED)));
        }
        match readiness(task.as_ref(), &found) {
            Readiness::Ready => {}
            Readiness::Later => {
                let (at, attempted) = (now.after(pause(&found)), found.attempted);
                return Ok(Err(Verdict::Retry { at, attempted }));
            }
            Readiness::TooLate(why) => return Ok(Err(Verdict::TooLate(why))),
        }
        if !journal.sending(&found, &owner, now)? {
            return Ok(Err(Verdict::NotOurs));
        }
        worded(journal, &found, &settings.wording, now).map(Ok)
    });
    let marked = marked.await?;
    if marked.is_ok() && !shared.has_own_lease() {
        return Ok(Err(Verdict::NotOurs));
    }
    Ok(marked)
}

/// Whether the parent's task has been stopped: to tell it something would set it to work again.
pub(crate) fn parent_was_stopped(journal: &mut dyn Journal, task: &Task) -> Result<bool, Problem> {
    let Some(above) = &task.place.above else {
        return Ok(false);
    };
    Ok(journal
        .task(above)?
        .is_some_and(|above| was_stopped(&above)))
}

/// The text of a post. A notice is worded now, with all ends of its batch that are still to be told.
pub(crate) fn worded(
    journal: &mut dyn Journal,
    found: &PendingPost,
    wording: &Wording,
    now: Moment,
) -> Result<Marked, Problem> {
    let post = &found.post;
    let (batch, end) = match &post.content {
        Content::Notice(NoticeText::Unsent { batch, end }) => (*batch, end.clone()),
        Content::Notice(NoticeText::Worded(message))
        | Content::Message(message)
        | Content::Question { message, .. } => {
            let (message, with) = (message.clone(), Vec::new());
            return Ok(Marked { message, with });
        }
        Content::Answer { .. } => {
            let (visible, hidden) = (String::new(), String::new());
            let (message, with) = (Message { visible, hidden }, Vec::new());
            return Ok(Marked { message, with });
        }
    };
    let mut ends = journal.unsent_ends(&post.id, now, MOST_TOGETHER - 1)?;
    ends.push(UnsentEnd {
        place: found.place,
        id: post.id.clone(),
        end,
    });
    ends.sort_by_key(|end| end.place);
    let ends = ends.into_iter().map(|end| (end.id, end.end));
    let (with, ends): (Vec<PostId>, Vec<EndNotice>) = ends.unzip();
    let batch = journal.batch(&post.to, batch)?;
    let wording = wording.in_host(&found.host.host);
    let EndMessage { message, whole } = end_message(&ends, batch, &wording);
    let told: Vec<(PostId, bool)> = with.iter().cloned().zip(whole).collect();
    journal.tell_together(&post.id, &message, &told, now)?;
    Ok(Marked { message, with })
}

/// Whether a post is to be sent.
pub(crate) enum Readiness {
    Ready,
    /// The child is being prompted again, and is told when it has its prompt.
    Later,
    TooLate(&'static str),
}

/// Only the end of a run is told in any case; the rest while the run has something to do with it.
pub(crate) fn readiness(task: Option<&Task>, found: &PendingPost) -> Readiness {
    let same_run = task.filter(|task| task.run == found.post.run);
    let works = match same_run.map(|task| &task.state) {
        Some(State::Running { stage, .. }) => match stage {
            Stage::Working => Some(Readiness::Ready),
            // Another model goes on: nothing was posted before the first prompt.
            Stage::Prompting => Some(Readiness::Later),
            Stage::Creating | Stage::SummingUp { .. } => None,
        },
        Some(State::Queued { .. } | State::Ended { .. }) | None => None,
    };
    match &found.post.content {
        Content::Notice(_) => Readiness::Ready,
        Content::Message(_) | Content::Answer { .. } => {
            works.unwrap_or(Readiness::TooLate(match found.attempted {
                None => RUN_ENDED,
                Some(_) => "the run ended before it was confirmed",
            }))
        }
        Content::Question { question, .. } => {
            let is_open = task.is_some_and(|task| task.progress.asking.contains_key(question));
            let works = works.filter(|_| is_open);
            works.unwrap_or(Readiness::TooLate("it was answered"))
        }
    }
}

/// A session has been told something. A result that it was told whole counts as read.
pub(crate) async fn note_told(shared: &Arc<Shared>, post: PostId) -> Result<(), Problem> {
    let handle = shared.clone();
    let told = shared.write(move |journal| {
        for (id, run) in journal.told_whole(&post)? {
            // One that cannot be read is not in the way of the others, which were told.
            if let Ok(Some(mut task)) = journal.task(&id)
                && task.run == run
                && !task.is_live()
            {
                handle.carry_out(journal, &mut task, Command::Retrieve)?;
            }
        }
        Ok(journal.delivered(&post, handle.now())?)
    });
    told.await
}

/// A question has been answered, by this answer or another (`otherwise`): the task does not wait
/// for it any more.
async fn note_answer(
    shared: &Arc<Shared>,
    task: TaskId,
    question: String,
    post: PostId,
    otherwise: Option<String>,
) -> Result<(), Problem> {
    let (handle, id) = (shared.clone(), task.clone());
    shared
        .write(move |journal| {
            let now = handle.now();
            match &otherwise {
                None => journal.delivered(&post, now)?,
                Some(why) => journal.undelivered(&post, why, now)?,
            }
            if let Some(mut task) = journal.task(&id)?
                && task.progress.asking.contains_key(&question)
            {
                let id = question.clone();
                let answered = Command::Observe(vec![Observation::Answered { id }]);
                handle.carry_out(journal, &mut task, answered)?;
            }
            Ok(())
        })
        .await?;
    shared.watch.wake(&[task]);
    Ok(())
}

async fn note(
    shared: &Shared,
    what: impl Fn(&mut dyn Journal) -> Stored<()> + Send + 'static,
) -> Result<(), Problem> {
    shared.write(move |journal| Ok(what(journal)?)).await
}
