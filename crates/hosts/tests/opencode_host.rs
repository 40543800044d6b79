//! OpenCode as a host, against a small OpenCode in memory: what a user would notice.
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic; its helpers too"
)]

#[path = "opencode_host/answering.rs"]
mod answering;
#[path = "opencode_host/branching.rs"]
mod branching;
#[path = "opencode_host/choosing_models.rs"]
mod choosing_models;
#[path = "opencode_host/contract.rs"]
mod contract;
#[path = "opencode_host/creating.rs"]
mod creating;
#[path = "opencode_host/fake.rs"]
mod fake;
#[path = "opencode_host/hearing.rs"]
mod hearing;
#[path = "opencode_host/inspecting.rs"]
mod inspecting;
#[path = "opencode_host/message.rs"]
mod message;
#[path = "opencode_host/playing.rs"]
mod playing;
#[path = "opencode_host/prompting.rs"]
mod prompting;
#[path = "opencode_host/reading.rs"]
mod reading;
#[path = "opencode_host/refusing.rs"]
mod refusing;
#[path = "opencode_host/telling.rs"]
mod telling;
#[path = "opencode_host/world.rs"]
mod world;
