//! The real OpenCode in a world of its own: a home, a project, a model that plays a script.

mod api;
mod events;
mod message;
mod opencode;
mod playbook;
mod processes;
mod run;
mod serve;
mod session;
mod spy;
mod traces;
mod tui;
mod turns;
mod v1;
mod v2;
mod world;

pub(crate) use message::{Message, Notice, Speaker, each_shelf_told_once, is_notice};
pub(crate) use opencode::{Opencode, command};
pub(crate) use playbook::{
    FIRST_MODEL, SECOND_MODEL, THIRD_MODEL, asked, child, counting, forked, launch, resume, root,
    story, task_id, tasks_model, tool,
};
pub(crate) use processes::{cpu_time, memory};
pub(crate) use serve::Serve;
pub(crate) use session::Session;
pub(crate) use tui::Tui;
pub(crate) use world::{Setup, World};
