//! OpenCode as a host: in its own process, through a plugin, or over the network.

mod activity;
mod agents;
mod api;
mod branch;
mod bridge;
mod events;
mod history;
mod host;
mod lines;
pub mod plugin;
pub mod process;
pub mod rpc;
mod session_model;
mod session_rules;
mod skill_rules;
pub mod version;
mod wire;

pub use api::HTTP;
pub use bridge::{Answer, BridgeConnection, BridgeHandler, ToolCall, serve};
pub use events::EVENTS;
pub use host::{AgentNote, OpenCode, Settings};
