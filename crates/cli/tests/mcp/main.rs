//! `asyncagents mcp`: the real binary, spoken to over its standard input and output as MCP clients do.
//! Only the model is not real.
#![expect(clippy::expect_used, reason = "a test may panic; its helpers too")]

mod bounding;
mod bridge;
mod changing;
mod client;
mod conforming;
mod ending;
mod following;
mod handshake;
mod hooks;
mod inspecting;
mod lacking_keys;
mod npm;
mod owning;
mod reading;
mod refusing;
mod scenarios;
mod skills;
mod structuring;
mod tasks;
mod waiting;
