//! Other agents that tasks run in.

pub mod acp;
pub mod agent;
pub mod agent_needs;
pub mod agent_rules;
mod both;
pub mod claude_code;
pub mod claude_stream;
pub mod codex;
mod connection;
mod http;
mod jsonl;
mod lines;
mod mcp_client;
pub mod opencode;
pub mod opencode2;
mod outside;
pub mod plugin;
pub mod proxy;

pub use both::AgentNote;
pub use connection::{Connection, Method, Request, Response, Signal};
pub use http::{Address, HttpConnection, Protocol};
pub use mcp_client::McpClient;
pub use outside::{Outside, OutsideHost};
