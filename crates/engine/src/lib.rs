//! The built-in agent: a host of its own.
//!
//! [`Engine`] is the host: sessions live in the same store and journal as the tasks. A
//! driver works in one session: it asks [`asyncagents_core::agent::next`] what to do, does
//! it, and saves what came of it before it asks again. The driver that takes over a session
//! after a crash goes on from what was saved.

mod approve;
mod cache_key;
mod choose_model;
mod command_slots;
mod drive;
mod drivers;
mod engine;
mod grants;
mod host;
mod live;
mod permit;
mod printed_lines;
mod profiles;
mod questions;
mod read_file;
mod record;
mod settings;
mod shared;
mod system_prompt;
mod toolboxes;

pub use approve::{Approver, Question, Reply};
pub use command_slots::{CommandLimit, CommandSlots};
pub use engine::{Begin, Engine};
pub use live::{Live, LiveEvents};
pub use printed_lines::PrintedLines;
pub use profiles::agent_names;
pub use settings::{Settings, Unanswered};
pub use shared::{Owner, Parts};
