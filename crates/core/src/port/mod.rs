//! What the rules need of the world: somewhere to keep tasks, and a host to run them in.

mod chains;
mod clock;
mod commands;
mod delegation;
mod host;
mod leases;
mod outbox;
mod prune;
mod queue;
mod sessions;
mod shown_sessions;
mod store;
mod store_error;
mod tasks;
mod tools_above;
mod transact;
mod waits;
mod whole_session;

pub use chains::Chains;
pub use clock::Clock;
pub use commands::Commands;
pub use delegation::Delegation;
pub use host::{
    Delivery, Host, HostError, HostEvents, Inheritance, Inspection, NewSession, Notice, OneAnswer,
    OneQuestion, Prompt, Recent, Report, SessionEvent, WantedModel,
};
pub use leases::{Lapsed, LeaseTime, Leases};
pub use outbox::{
    Content, Fate, NoticeText, Outbox, PendingPost, Post, PostKind, Posted, ToldOfBatch,
    UnreadablePost, UnsentEnd,
};
pub use prune::{OldSession, OldTree, Prune, SessionPlace, TreePlace};
pub use queue::Queue;
pub use sessions::{Base, Session, Sessions};
pub use shown_sessions::ShownSessions;
pub use store::{Journal, Store, Work};
pub use store_error::{FileWork, StoreError, StoreErrorKind, Stored};
pub use tasks::{Messaged, Tasks};
pub use tools_above::{bound, tools_above};
pub use transact::{query, transact, transact_unsynced};
pub use waits::Waits;
pub use whole_session::{WholeSession, is_driven_elsewhere};
