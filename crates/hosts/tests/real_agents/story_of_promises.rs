//! Every real agent keeps what the port promises of a host.

use std::io::{self, Write as _};

use asyncagents_testkit::host_contract::slow_host_contract;

use crate::{agent::Agent, site::RealAgent};

/// A process of a real agent takes a second to begin.
const TIMES_AT_ONCE: usize = 2;

async fn keeps_its_promises(agent: Agent) {
    if agent.is_missing() {
        let test = std::thread::current();
        let test = test.name().unwrap_or_default();
        // Past the test's own capture, so that `scripts/test` counts it, and on a line of its own.
        let line = format!("\nskipped: {test}: there is no {agent:?} here\n");
        let _ = io::stderr().write_all(line.as_bytes());
        return;
    }
    slow_host_contract(async || RealAgent::new(agent).await, TIMES_AT_ONCE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn claude() {
    keeps_its_promises(Agent::Claude).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn codex() {
    keeps_its_promises(Agent::Codex).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn gemini() {
    keeps_its_promises(Agent::Gemini).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn goose() {
    keeps_its_promises(Agent::Goose).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn opencode() {
    keeps_its_promises(Agent::OpenCode).await;
}
