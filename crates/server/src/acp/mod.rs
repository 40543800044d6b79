//! The built-in agent as an agent of the Agent Client Protocol, for editors. The protocol's types stay in
//! here.

mod agent;
mod error;
mod mode;
mod open_sessions;
mod permission;
mod plan;
mod port;
mod prompt_text;
mod replay;
mod serve;
mod session;
mod stdio;
mod tasks;
mod tool_call;
mod turn;
mod updates;

pub use error::AgentError;
pub use mode::SessionMode;
pub use open_sessions::OpenSessions;
pub use permission::CallQuestion;
pub use port::{BuiltInAgent, Happening, Happenings, Place, PromptRun, Used};
pub use serve::{ServeError, serve_stdio};
