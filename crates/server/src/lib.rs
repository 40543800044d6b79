//! The doors by which other programs reach asyncagents.

pub mod acp;
pub mod mcp;
