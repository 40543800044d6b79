//! The server over real HTTP.
#![expect(clippy::expect_used, reason = "a test that cannot go on should stop")]

mod client;
mod faults;
mod other_agents;
mod record;
mod usage;
mod wires;
