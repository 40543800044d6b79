//! A host whose children do what a script says, and that fails as it is told to.
//!
//! What a child has done is worked out from its script and the time since its prompt, so
//! it goes on while nobody looks, as in a host that is a process of its own. What is put
//! into sessions is kept in memory or in a folder.

mod faults;
mod host;
mod plan;
mod script;
mod world;

pub use faults::{Call, Faults};
pub use host::ScriptedHost;
pub use script::{Child, LastTurn, Script, ScriptError, Step};
pub use world::{Line, World};
