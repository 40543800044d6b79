//! Stories about tasks, told through the manager's handle. Time is tokio's and paused, the
//! store is SQLite, the host is scripted.
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic; its helpers too"
)]

mod answering;
mod harness;
mod telling;

mod choosing_models;
mod clocks;
mod ending;
mod idling;
mod last_turns;
mod launching;
mod limits;
mod notices;
mod properties;
mod refusals;
mod restarting;
mod seeds;
mod taking;
mod traces;
