//! What has to reach a session exactly once: notices to parents, messages and answers to children.

use super::Stored;
use crate::{
    end_notice::EndNotice,
    host_ref::HostSetup,
    id::{OwnerId, PostId, SessionId, TaskId},
    moment::Moment,
    notify::Message,
    question::Reply,
    task::Task,
    words::words,
};

/// The outbox, as one transaction sees it.
pub trait Outbox {
    /// Puts a post about a task into the outbox, not to be sent before a moment.
    fn post(&mut self, task: &Task, post: &Post, not_before: Moment) -> Stored<()>;
    /// The posts of an owner that are due, oldest first: up to `most` after place `after`. Of the
    /// messages to a child, up to the first that its host does not have.
    fn due(
        &mut self,
        owner: &OwnerId,
        now: Moment,
        after: i64,
        most: usize,
    ) -> Stored<Vec<Result<PendingPost, UnreadablePost>>>;
    /// The notices and questions for a session, oldest first, whoever owns their tasks: those that are
    /// due and that nobody has begun to send, and those that it was given when it asked and that are
    /// not known to have reached it.
    fn due_to(
        &mut self,
        session: &SessionId,
        now: Moment,
        most: usize,
    ) -> Stored<Vec<Result<PendingPost, UnreadablePost>>>;
    /// When the next one for a session that nobody has begun to send will be due.
    fn next_due_to(&mut self, session: &SessionId, now: Moment) -> Stored<Option<Moment>>;
    /// Marks a post as about to be told to the session that has asked. False if somebody else has
    /// marked it since, or settled it.
    fn take(&mut self, found: &PendingPost, at: Moment) -> Stored<bool>;
    /// From now on a post is told to its session when that asks, and no worker sends it.
    fn hold(&mut self, post: &PostId) -> Stored<()>;
    /// From now on a post is left in its session's host, where it waits: no worker looks for it before
    /// [`Outbox::look_again`].
    fn leave(&mut self, post: &PostId) -> Stored<()>;
    /// Workers look again for what was left in hosts.
    fn look_again(&mut self) -> Stored<()>;
    /// When the next post of an owner that is not due yet will be.
    fn next_due(&mut self, owner: &OwnerId, now: Moment) -> Stored<Option<Moment>>;
    /// Marks a post as about to be sent. False if it is not as it was found: no longer
    /// pending, no longer this owner's, or marked by someone else since.
    fn sending(&mut self, found: &PendingPost, by: &OwnerId, at: Moment) -> Stored<bool>;
    /// The other ends that can be told in the message of a notice: those of its batch and host that
    /// nobody has begun to send, oldest first, up to `most`. Not those that wait for a caller who is
    /// blocked and will read the result.
    fn unsent_ends(&mut self, with: &PostId, now: Moment, most: usize) -> Stored<Vec<UnsentEnd>>;
    /// How far a session has been told of a batch's ends. No more than `most` messages are counted.
    fn told_of_batch(&mut self, to: &SessionId, batch: u64, most: u32) -> Stored<ToldOfBatch>;
    /// Saves the message that tells of several ends, under the name of the post that is about to be
    /// sent, `leader`. The others are sent with it, and what becomes of it becomes of them. For each,
    /// the leader too, whether its whole result is in the message.
    fn tell_together(
        &mut self,
        leader: &PostId,
        message: &Message,
        ends: &[(PostId, bool)],
        at: Moment,
    ) -> Stored<()>;
    /// The runs whose whole results are in the message of this name.
    fn told_whole(&mut self, leader: &PostId) -> Stored<Vec<(TaskId, u32)>>;
    /// Puts a post off, and says when it may last have been sent, if it may have been. If it cannot
    /// have been, ends that were to be told with it are posts of their own again.
    fn put_off(&mut self, post: &PostId, until: Moment, attempted: Option<Moment>) -> Stored<()>;
    /// All runs of a batch have ended: a session is told now of those that wait for others, but for
    /// those whose results a blocked caller will read.
    fn hurry_batch(&mut self, to: &SessionId, batch: u64, now: Moment) -> Stored<()>;
    /// Another worker may have sent a task's posts just now; they are to be looked for at
    /// `until`.
    fn postpone_posts(&mut self, task: &TaskId, now: Moment, until: Moment) -> Stored<()>;
    /// A session may be able to take now what it could not take before.
    fn hurry(&mut self, session: &SessionId, now: Moment) -> Stored<bool>;
    /// Whether there is something for a session.
    fn any_pending(&mut self, session: &SessionId) -> Stored<bool>;
    /// A post has been delivered: it is in the session's history, or the host took the answer.
    fn delivered(&mut self, post: &PostId, at: Moment) -> Stored<()>;
    /// A post will not be delivered, for this reason.
    fn undelivered(&mut self, post: &PostId, why: &str, at: Moment) -> Stored<()>;
    /// A post that cannot be read will not be delivered.
    fn give_up(&mut self, post: &UnreadablePost, at: Moment) -> Stored<()>;
    /// A session has read the result that a notice to it would have: it is told of the end only,
    /// unless someone has begun to send it.
    fn result_was_read(&mut self, notice: &PostId) -> Stored<()>;
    /// Withdraws one post, unless someone has begun to send it.
    fn withdraw(&mut self, post: &PostId, why: &str, at: Moment) -> Stored<()>;
    /// A task's posts, and what became of each, oldest first.
    fn posts(&mut self, task: &TaskId) -> Stored<Vec<Posted>>;
}

/// Something that has to reach a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Post {
    /// Its name in the session.
    pub id: PostId,
    /// The session it is for.
    pub to: SessionId,
    /// The run of the task that it is about.
    pub run: u32,
    pub content: Content,
}

/// What a post says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// To the parent: the run has ended.
    Notice(NoticeText),
    /// To the parent or the top of the tree: the child asks something.
    Question {
        /// The host's name for the question.
        question: String,
        message: Message,
    },
    /// To the child: it was told something.
    Message(Message),
    /// To the child's host: the answer to a question.
    Answer {
        /// The host's name for the question.
        question: String,
        reply: Reply,
    },
}

/// The text of a notice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoticeText {
    /// It is worded when it is sent, perhaps with others of its batch.
    Unsent {
        /// The batch of the run.
        batch: u64,
        end: EndNotice,
    },
    /// As it was sent, or may have been.
    Worded(Message),
}

impl Content {
    /// Which kind of post it is.
    pub fn kind(&self) -> PostKind {
        match self {
            Content::Notice(_) => PostKind::Notice,
            Content::Question { .. } => PostKind::Question,
            Content::Message(_) => PostKind::Message,
            Content::Answer { .. } => PostKind::Answer,
        }
    }
}

/// Which kind of post something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PostKind {
    /// To the parent: the run has ended.
    Notice,
    /// To the parent or the top of the tree: the child asks something.
    Question,
    /// To the child: it was told something.
    Message,
    /// To the child's host: the answer to a question.
    Answer,
}

words! {
    PostKind {
        Notice = "notice",
        Question = "question",
        Message = "message",
        Answer = "answer",
    }
}

/// What became of a post.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    Pending,
    /// It is in the session's history, or the host took the answer.
    Delivered,
    /// It was given up or withdrawn, for a reason.
    Undelivered(String),
}

/// A post, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Posted {
    pub id: PostId,
    pub kind: PostKind,
    pub run: u32,
    /// The host's name for the question that it is about or answers, if it is.
    pub question: Option<String>,
    pub fate: Fate,
    /// Whether it may have been sent.
    pub attempted: bool,
    /// The post in whose message it was told, if that is another one.
    pub told_with: Option<PostId>,
}

/// The end of a run that a session is still to be told of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsentEnd {
    /// Its place in the outbox.
    pub place: i64,
    pub id: PostId,
    pub end: EndNotice,
}

/// How far a session has been told of a batch's ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToldOfBatch {
    /// How many messages were sent about it.
    pub messages: u32,
    /// When the next one will be.
    pub next: Option<Moment>,
}

/// A post that has to be delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingPost {
    /// Its place in the outbox.
    pub place: i64,
    /// The task that it is about.
    pub task: TaskId,
    pub post: Post,
    pub host: HostSetup,
    /// When it was last about to be sent, and perhaps was.
    pub attempted: Option<Moment>,
    /// How often it was put off.
    pub attempts: u32,
}

/// A post that is due and cannot be read: it was damaged, or another program wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadablePost {
    /// Its place in the outbox.
    pub place: i64,
    /// What is wrong with it.
    pub why: String,
}
