//! Claude Code as a child by its own records: stories with the real program, whose model is scripted,
//! and with one in memory that says what no real one should.
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic; its helpers too"
)]

mod contract;
mod in_memory;
mod stories;
mod world;
