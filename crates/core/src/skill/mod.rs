//! Skills: what a `SKILL.md` says, which of several counts, what its body becomes when it is
//! invoked, and what a sub-agent that runs one is told. Nothing here reads a file or runs a
//! command.

mod arguments;
mod body;
mod catalog;
mod disclose;
mod fill_tools;
mod head;
mod manifest;
mod name;
mod prompt;
mod terms;
mod value;

pub use arguments::as_typed;
pub use body::{Body, Piece, Surroundings};
pub use catalog::{Catalog, Found, Layer, Listed, UnknownSkill};
pub use disclose::disclose;
pub use fill_tools::{filled_tools, lets_run};
pub use head::head;
pub use manifest::{Flaw, Manifest, Skill, SkillContext};
pub use name::name_key;
pub use prompt::isolated;
pub use terms::{Role, Terms, UsualTerms, iterations, tools_below};
