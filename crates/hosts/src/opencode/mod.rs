//! OpenCode as a host: in its own process, through a plugin, or over the network.

mod api;
mod branch;
mod bridge;
mod connection;
mod events;
mod history;
mod host;
mod http;
mod known;
mod lines;
pub mod plugin;
pub mod process;
pub mod rpc;
mod skill_rules;
pub mod version;
mod wire;

pub use bridge::{Answer, BridgeConnection, Door, ToolCall, serve};
pub use connection::{Connection, Method, Request, Response, Signal};
pub use events::EVENTS;
pub use host::{AgentNote, OpenCode, Settings};
pub use http::{Address, HttpConnection};
