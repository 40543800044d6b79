//! Codex: its conversations, and how its threads are told something.

mod host;
mod queue;
pub mod rollout;

pub use host::Codex;
