//! The programs with which other agents are driven: which there are, where they are found, and the
//! copies that are installed for the user.

mod find;
mod node;
mod package;
mod table;

pub(crate) use find::{Adapter, Origin, find_adapter, find_own_program};
pub(crate) use node::Node;
pub(crate) use package::Package;
pub(crate) use table::AgentProgram;
