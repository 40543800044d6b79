//! The built-in agent against a scripted model, over real HTTP and a real database.
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic; its helpers too"
)]

mod answering;
mod bad_models;
mod choosing_models;
mod contract;
mod crashing;
mod delegating;
mod folders;
mod harness;
mod last_turns;
mod permitting;
mod prefix;
mod skill_limits;
mod skills;
mod telling;
mod windows;
