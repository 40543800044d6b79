//! The built-in agent as a machine: what a session consists of, what the model is shown of
//! it, and what happens next. Nothing here asks a model or runs a tool.

mod alias;
mod answer;
mod compaction;
mod conversation;
mod effort;
mod entry;
pub mod glob;
mod guarded_files;
mod next;
mod permission;
mod profile;
mod reread;
mod risky_options;
mod run;
mod shell_words;
mod tool;
mod transcript;

pub use alias::agent_meant;
pub use answer::{Answer, Block, Call, Raw, Stop, Usage};
pub use compaction::SUMMARISE;
pub use conversation::{Conversation, Last, Shown};
pub use effort::Effort;
pub use entry::{End, Entry, Filed};
pub use next::{Around, Next, UsedUp, next};
pub(crate) use permission::pieces as rule_pieces;
pub use permission::{Kind, Mode, Permissions, Reach, Rule, RuleError, Verdict};
pub use profile::{Profile, ProfileError, TASK_TOOLS, Tools};
pub use run::{LastTurn, Run};
pub use tool::{CallInfo, Preview, ToolOutcome, ToolSpec};
pub use transcript::transcript;

/// What the model is shown, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Turn {
    /// Text of the user, or of the host in the user's place.
    Said(String),
    Answered(Answer),
    /// What came of a call of the answer before it. All results of an answer follow it, in
    /// the order of its calls.
    Result {
        call: Call,
        outcome: ToolOutcome,
    },
}
