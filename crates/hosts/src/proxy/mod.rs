//! The proxy that is the only network of another vendor's agent: it connects to the hosts of the
//! agent's model, to our tools, and to nothing else. Each agent has one of its own.

mod allowed_hosts;
mod answer;
mod connect;
mod door;
mod forward;
mod listener;
mod login;
mod peer;
mod refused;
mod serve;
mod target;
mod way_out;

pub use allowed_hosts::AllowedHosts;
pub use connect::{DoorConnection, connect_to};
pub use door::{Door, DoorStream, TwoWay};
pub use listener::{Proxy, ProxySetup};
pub use way_out::WayOut;

/// Says to `asyncagents mcp --connect` and `asyncagents hook ask` where their proxy is.
pub const DOORS_VARIABLE: &str = "ASYNCAGENTS_TOOLS";
