//! What is the same in both generations of OpenCode.

mod agent_note;
pub(crate) mod chosen_model;
pub(crate) mod conversation;
pub(crate) mod json;
pub(crate) mod long_wait;
pub(crate) mod metadata;
pub(crate) mod one_answer;
pub(crate) mod pages;
pub(crate) mod response;
pub(crate) mod role;
pub(crate) mod run;
pub(crate) mod session_model;
pub(crate) mod usage;

pub use agent_note::AgentNote;
