//! A program of another vendor that is talked to for hours, in the sandbox of commands: it is started
//! with three pipes, and all that it starts ends with it, with whoever holds it, and with asyncagents.

mod command;
mod environment;
mod life;
mod limits;
mod start;

pub use command::{AgentCommand, AgentProcess, AgentStartError};
pub use environment::agent_environment;
pub use life::AgentLife;
pub use limits::{AgentFiles, AgentLimits, AgentNetwork};
