//! OpenCode 2 as a host, against a small OpenCode 2 in memory: what a user would notice.
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic; its helpers too"
)]

#[path = "opencode2_host/answering.rs"]
mod answering;
#[path = "opencode2_host/asking.rs"]
mod asking;
#[path = "opencode2_host/build.rs"]
mod build;
#[path = "opencode2_host/choosing_models.rs"]
mod choosing_models;
#[path = "opencode2_host/contract.rs"]
mod contract;
#[path = "opencode2_host/creating.rs"]
mod creating;
#[path = "opencode2_host/ending.rs"]
mod ending;
#[path = "opencode2_host/fake.rs"]
mod fake;
#[path = "opencode2_host/faults.rs"]
mod faults;
#[path = "opencode2_host/forking.rs"]
mod forking;
#[path = "opencode2_host/hearing.rs"]
mod hearing;
#[path = "opencode2_host/importing.rs"]
mod importing;
#[path = "opencode2_host/telling.rs"]
mod telling;
#[path = "opencode2_host/working.rs"]
mod working;
#[path = "opencode2_host/world.rs"]
mod world;
