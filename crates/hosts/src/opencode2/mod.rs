//! OpenCode 2 as a host: its background server or a bare `serve`, in all folders.

mod activity;
mod agents;
mod answering;
mod api;
mod branch;
mod capabilities;
mod copied_message;
mod events;
mod host;
mod id;
mod inspecting;
mod last_turn;
mod models;
pub mod ports;
mod questions;
mod retry;
mod run;
pub mod service;
mod session_model;
mod session_rules;
mod telling;
mod wire;

pub use api::{HEALTH, HTTP};
pub use events::EVENTS;
pub use host::{OpenCode2, Settings};
pub use id::{OUR_MESSAGES, OUR_SESSIONS, child_session, is_session, message};
