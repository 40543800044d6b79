//! What the rules need of the world: somewhere to keep tasks, and a host to run them in.

mod clock;
mod host;
mod store;

pub use clock::Clock;
pub use host::{
    Delivery, Host, HostError, HostEvents, Inheritance, Inspection, NewSession, Notice, Prompt,
    Report, SessionEvent,
};
pub use store::{Fate, Journal, PendingNotice, Saved, Store, StoreError, Stored, Work};
