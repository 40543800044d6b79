//! The tools for other agents, over MCP. The protocol's types stay in here.

mod answer;
mod call;
mod instructions;
mod progress;
mod serve;
mod tools;

pub use call::{CallerSource, ToolCaller, WhoCalls};
pub use serve::{ServeError, serve_stdio};
