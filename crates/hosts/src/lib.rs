//! Hosts that tasks run in.

pub mod scripted;
