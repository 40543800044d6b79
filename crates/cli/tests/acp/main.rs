//! `asyncagents acp`: the real binary, spoken to over its standard input and output by the protocol's own
//! client. Only the model is not real.
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic; its helpers too"
)]

mod cancelling;
mod delegating;
mod editor;
mod ending;
mod home;
mod loading;
mod modes;
mod permitting;
mod prompting;
mod refusing;
