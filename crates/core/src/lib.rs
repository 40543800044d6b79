//! The rules of asyncagents: what a conversation is, and what a forked child inherits of it.
//! Nothing here reads a file, a clock or the network.

pub mod fork;
pub mod read;
pub mod tokens;
pub mod transcript;
