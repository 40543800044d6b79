//! OpenCode 1 as a host: in its own process, through a plugin, or over the network.

mod activity;
mod agents;
mod api;
mod branch;
mod events;
mod history;
mod host;
mod inspecting;
mod last_turn;
mod models;
mod new_sessions;
pub mod process;
mod questions;
mod session_model;
mod session_rules;
pub(crate) mod skill_rules;
mod telling;
pub mod version;
mod wire;

pub use api::HTTP;
pub use events::EVENTS;
pub use host::{OpenCode, Settings};
