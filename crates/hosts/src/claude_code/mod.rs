//! Claude Code: whose call a call is, its conversations, and what they were told.

mod caller;
mod host;
mod session;
mod told;
mod tool_results;
pub mod transcript;

pub use caller::{CallHints, Calling, find_caller};
pub use host::ClaudeCode;
pub use session::SessionName;
