//! The real OpenCode in a world of its own: a home, a project, a model that plays a script.

mod events;
mod playbook;
mod processes;
mod run;
mod serve;
mod session;
mod spy;
mod tui;
mod turns;
mod world;

pub(crate) use playbook::{
    FIRST_MODEL, SECOND_MODEL, asked, child, counting, forked, launch, resume, root, story,
    task_id, tool,
};
pub(crate) use processes::{cpu_time, memory};
pub(crate) use session::{Notice, Session, each_shelf_told_once};
pub(crate) use world::{Setup, World};
