//! What can happen to a task. Events are saved and never changed; they are deleted
//! only with their whole task.

use crate::{
    budget::{Budget, Spent},
    fallback::Fallback,
    fork::Plan,
    host_ref::HostRef,
    id::{ChainId, OwnerId, PostId, SessionId},
    moment::Moment,
    progress::Observation,
    question::Reply,
    skill::Role,
    speaker::Speaker,
    task::{Brief, Outcome, Place},
};

/// Something that happened to a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// It was launched and waits for a slot. Always the first event.
    Launched(Box<Launched>),
    /// Another process looks after it, or none.
    Owned {
        by: Option<OwnerId>,
    },
    /// It stays in the queue: the process that looked after it lacks something that another may have.
    Held {
        /// What is missing, in words.
        why: String,
    },
    Started,
    SessionMade {
        session: SessionId,
    },
    /// The host has the prompt.
    Prompted,
    Observed(Observation),
    /// Its model is unavailable: its session is prompted to go on with another one.
    FellBack(Fallback),
    /// What the tasks below it have spent by now.
    SpentBelow(Spent),
    /// A limit is reached: its work is stopped, and it may say what it has found so far.
    SummingUp {
        /// The limit, in words.
        why: String,
    },
    Ended {
        outcome: Outcome,
        /// What the child said last. A failed or cancelled task may have said something too.
        answer: Option<String>,
        /// Whether the host may still be working and has to be stopped.
        stop: bool,
    },
    /// The host has stopped working for a run that had ended.
    Stopped,
    /// A follow-up was asked for; it waits for a slot.
    Resumed {
        /// What it has to do now.
        prompt: String,
        /// The batch it belongs to now.
        batch: u64,
        /// The trace of this run.
        chain: Option<ChainId>,
        /// The trace of the run that asked for it.
        from: Option<ChainId>,
    },
    /// The clock moved by so many milliseconds in which the task did not run: it was set, the
    /// machine slept, or no worker had the task.
    ClockMoved {
        /// Forwards, or backwards if it is negative.
        by: i64,
    },
    /// Another host has its session now.
    Moved {
        host: HostRef,
    },
    /// It was told something while it was queued or worked.
    Messaged {
        /// Its name in the outbox and in the child's session.
        id: PostId,
        /// Who told it. Older versions did not say.
        from: Option<Speaker>,
        text: String,
    },
    /// What it asked was answered. Whether its host took the answer is in the outbox.
    Replied {
        /// Its name in the outbox.
        id: PostId,
        /// The host's name for the question.
        question: String,
        reply: Reply,
    },
    /// Its parent is told what it asks.
    QuestionTold {
        /// The host's name for the question.
        question: String,
    },
    Retrieved,
    /// Its parent forgot it.
    Cleared,
}

/// How a task began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launched {
    /// Where it stands in the tree.
    pub place: Place,
    pub brief: Brief,
    /// What it has to do.
    pub prompt: String,
    /// What its child inherits, if it is forked: as its launcher wants it, not the
    /// worker that happens to run it.
    pub fork: Option<Plan>,
    pub budget: Budget,
    /// The batch it belongs to.
    pub batch: u64,
    /// The process that looks after it, if one does already.
    pub owner: Option<OwnerId>,
    /// The trace of its first run.
    pub chain: Option<ChainId>,
    /// The trace of the run that launched it.
    pub from: Option<ChainId>,
    /// The skill it runs, with its terms and its text.
    pub role: Option<Role>,
}

/// An event as it was saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saved {
    /// Its number in the task's history.
    pub seq: u64,
    pub at: Moment,
    pub event: Event,
}
