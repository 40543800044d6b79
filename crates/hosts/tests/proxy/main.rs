//! Stories about the proxy of another vendor's agent, told by a client that writes its requests itself.
#![expect(clippy::expect_used, reason = "a test that cannot go on says why")]

mod agents;
mod ends;
mod hostile;
mod other_proxy;
mod reaching;
mod tools;
mod world;
