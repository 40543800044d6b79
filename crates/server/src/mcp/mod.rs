//! The tools for other agents, over MCP. The protocol's types stay in here.

mod answer;
mod call;
mod changes;
mod connection;
mod instructions;
mod progress;
mod prompts;
mod resources;
mod serve;
mod sessions;
mod tools;

pub use call::{CallerSource, ToolCaller, WhoCalls};
pub use prompts::UserSkill;
pub use serve::{ServeError, serve_stdio};
