//! Stories of other agents as children, told with an agent that speaks ACP and plays a script.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

#[path = "agent_host/contract.rs"]
mod contract;
#[path = "agent_host/crashing.rs"]
mod crashing;
#[path = "agent_host/fake.rs"]
mod fake;
#[path = "agent_host/paying.rs"]
mod paying;
#[path = "agent_host/taking_back.rs"]
mod taking_back;
#[path = "agent_host/talking.rs"]
mod talking;
#[path = "agent_host/world.rs"]
mod world;
