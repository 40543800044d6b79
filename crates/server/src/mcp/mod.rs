//! The tools for other agents, over MCP. The protocol's types stay in here.

mod answer;
mod call;
mod changes;
mod connection;
mod custom;
mod instructions;
mod progress;
mod prompts;
mod protocol_tasks;
mod resources;
mod serve;
mod server;
mod sessions;
mod skills;
mod structured;
mod tool_call;
mod tools;

pub use call::{CallerSource, ToolCaller, WhoCalls};
pub use prompts::UserSkill;
pub use serve::{Answers, ServeError, serve, serve_stdio, serve_without_tools};
pub use skills::{ServedSkill, SkillSource};
