//! Other agents that tasks run in.

mod chosen_model;
mod connection;
mod http;
mod long_wait;
pub mod opencode;
pub mod opencode2;
pub mod plugin;
mod role;

pub use connection::{Connection, Method, Request, Response, Signal};
pub use http::{Address, HttpConnection, Protocol};
