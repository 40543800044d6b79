//! What a story needs: a home, a project, a model, an agent, and a terminal.

mod agent;
mod playbook;
mod processes;
mod terminal;
mod world;

pub(crate) use agent::Agent;
pub(crate) use playbook::{asked, child, launch, notices_in, one_task, reading, tasks, told};
pub(crate) use terminal::Terminal;
pub(crate) use world::World;
