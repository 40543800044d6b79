//! Skills: what a `SKILL.md` says, which of several counts, what its body becomes when it is
//! invoked, and what a sub-agent that runs one is told. Nothing here reads a file or runs a
//! command.

mod body;
mod catalog;
mod disclose;
mod event;
mod manifest;
mod prompt;
mod summary;
mod terms;
mod value;

pub use body::{Body, Piece, Surroundings};
pub use catalog::{Catalog, Found, Layer, Listed, UnknownSkill};
pub use disclose::disclose;
pub use event::{ErrorCode, FinalState, SkillEvent};
pub use manifest::{Flaw, Manifest, Skill, SkillContext};
pub use prompt::isolated;
pub use summary::{message_parts, summary};
pub use terms::{Role, Terms, UsualTerms, iterations};
