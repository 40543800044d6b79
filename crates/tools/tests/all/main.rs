//! Stories about the tools and their sandbox.
#![cfg(target_os = "linux")]
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that cannot go on says why"
)]

mod agents;
mod arguments;
mod bash;
mod cost;
mod edit;
mod escapes;
mod helpers;
mod paths;
mod read;
mod read_only;
mod resources;
mod search;
mod sessions;
mod todo;
mod tokens;
mod workbench;
mod write;
