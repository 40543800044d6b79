//! Hosts that tasks run in.

pub mod opencode;
pub mod scripted;
