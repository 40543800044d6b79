//! `asyncagents mcp`: the real binary, spoken to over its standard input and output as MCP clients do.
//! Only the model is not real.
#![expect(clippy::expect_used, reason = "a test may panic; its helpers too")]

mod bounding;
mod changing;
mod client;
mod ending;
mod following;
mod handshake;
mod lacking_keys;
mod owning;
mod reading;
mod refusing;
mod skills;
mod structuring;
mod tasks;
mod waiting;
