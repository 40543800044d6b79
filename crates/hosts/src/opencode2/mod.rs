//! OpenCode 2 as a host.

pub mod ports;
pub mod service;
