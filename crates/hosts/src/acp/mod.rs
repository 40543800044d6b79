//! Agents that speak the Agent Client Protocol, on the pipes of a process. What an agent can do is
//! what it says itself, never what its name suggests; what it does wrongly is in the settings that it is
//! used with.

mod ask;
mod capabilities;
mod connection;
mod hook;
mod incoming;
mod start;
mod updates;

pub use start::{Acp, AcpSettings, BeforeLoad};
