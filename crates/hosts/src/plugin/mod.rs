//! The plugin that runs inside of OpenCode, 1 and 2, and this program's end of it: the bridge.

mod bounds;
mod bridge;
mod file;
mod folders;
mod json;
mod link;
mod params;
mod relay;
mod relayed;
pub mod rpc;
mod shown;

pub use bounds::{Bounds, ToolUse};
pub use bridge::{Answer, BridgeHandler, ToolCall, serve};
pub use file::{MARK, render};
pub use folders::BridgeConnection;
pub use link::{Asked, PluginLink, Shown};
pub use relay::Relay;
