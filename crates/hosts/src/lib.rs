//! Other agents that tasks run in.

pub mod opencode;
