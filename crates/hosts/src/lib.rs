//! Other agents that tasks run in.

mod both;
mod connection;
mod http;
pub mod opencode;
pub mod opencode2;
pub mod plugin;

pub use both::AgentNote;
pub use connection::{Connection, Method, Request, Response, Signal};
pub use http::{Address, HttpConnection, Protocol};
