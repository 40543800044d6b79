//! What goes wrong in a host.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use asyncagents_core::id::{PostId, SessionId};

/// What a host can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Call {
    /// For its agents.
    Agents,
    /// For its models.
    Models,
    /// To make a session.
    Create,
    /// To inject context.
    Inject,
    /// To set a session to work.
    Prompt,
    /// To stop one.
    Abort,
    /// To ask one thing.
    AskOnce,
    /// For a conversation.
    Messages,
    /// Whether a session exists.
    Exists,
    /// What became of a prompt.
    Inspect,
    /// To tell a session something.
    Deliver,
    /// Whether something is in a history.
    Confirm,
    /// Whether something that is not in a history will be.
    IsOnItsWay,
    /// To answer a question.
    Answer,
    /// To delete a session.
    Delete,
}

/// What goes wrong, and how often the host was asked.
#[derive(Debug, Default)]
pub struct Faults {
    /// Every call takes this long.
    pub slow: Duration,
    /// The next so many calls of a kind fail.
    pub fail: HashMap<Call, u32>,
    /// The next so many calls of a kind do what they should, and their answer is lost:
    /// creating, prompting, delivering and answering.
    pub lose_answer: HashMap<Call, u32>,
    /// Every report comes twice.
    pub repeat: bool,
    /// No report comes at all.
    pub mute: bool,
    /// Every so-manieth report is lost, without a word.
    pub lose_every: Option<u64>,
    /// These sessions cannot be told anything now.
    pub busy: HashSet<SessionId>,
    /// Nothing can be sent to any session now: they are told when they ask.
    pub holds: bool,
    /// These notices wait in the host, and will be in the history.
    pub queued: HashSet<PostId>,
    /// The next so many notices are taken and never seen again.
    pub forget: u32,
    /// Prompts and notices take so long to arrive, and arrive also when the sender is gone.
    pub on_its_way: Duration,
    /// A notice shows in the history only so much later.
    pub late: Duration,
    /// It is asked what a session has used when that has stopped: no fault, but not what every host needs.
    pub counts_at_the_end: bool,
    /// What an inspection has found comes only so much later.
    pub late_inspection: Duration,
    /// A notice sets an idle session to work again: no fault, but not what every host does.
    pub notices_wake: bool,
    /// How often the host was asked what.
    pub asked: HashMap<Call, u64>,
    /// How many reports there have been.
    pub(super) reports: u64,
}
