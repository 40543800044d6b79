//! What the rules need of the world: somewhere to keep tasks, and a host to run them in.

mod chains;
mod clock;
mod commands;
mod delegation;
mod host;
mod sessions;
mod store;
mod tools_above;
mod typed;

pub use chains::Chains;
pub use clock::Clock;
pub use commands::Commands;
pub use delegation::Delegation;
pub use host::{
    Delivery, Host, HostError, HostEvents, Inheritance, Inspection, NewSession, Notice, OneAnswer,
    OneQuestion, Prompt, Recent, Report, SessionEvent,
};
pub use sessions::{Base, Session, Sessions};
pub use store::{
    Fate, FileWork, Journal, Lapsed, LeaseTime, PendingNotice, Store, StoreError, Stored, Work,
};
pub use tools_above::{bound, tools_above};
pub use typed::{Slot, typed};
