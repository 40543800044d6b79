//! `asyncagents hook ask`: the hook before each call of an agent in our sandbox, which asks the worker
//! whether it may be made. It knows nothing itself: neither the configuration nor the database can be
//! read there.

use std::{
    env,
    io::{self, Write as _},
};

use anyhow::{Context, anyhow};
use asyncagents_hosts::proxy::{DOORS_VARIABLE, Door, DoorConnection, connect_to};
use tokio::io::{AsyncReadExt, AsyncWriteExt, stdin};

use super::super::two_threads;
use crate::exit::{Exit, Failure};

/// Asks, and prints the answer. Agents make a call whose hook fails, but for this exit code.
pub(in super::super) fn ask() -> Result<Exit, Failure> {
    let runtime = two_threads()?;
    let answer = runtime.block_on(answer());
    // A blocked read of standard input must not keep the process.
    runtime.shutdown_background();
    let printed = answer.and_then(|answer| Ok(io::stdout().write_all(answer.as_bytes())?));
    let printed = printed.context("the call is forbidden, because nobody could be asked");
    printed.map_err(Failure::Input)?;
    Ok(Exit::Done)
}

async fn answer() -> anyhow::Result<String> {
    let address = env::var(DOORS_VARIABLE).with_context(|| {
        format!("{DOORS_VARIABLE} is not set; asyncagents sets it for the agents that it starts")
    })?;
    let mut input = Vec::new();
    stdin().read_to_end(&mut input).await?;
    let connected = connect_to(Door::Permissions, &address).await;
    let DoorConnection {
        mut from_door,
        mut to_door,
        held: _held,
    } = connected.map_err(|why| anyhow!("the worker of asyncagents is gone: {why}"))?;
    to_door.write_all(&input).await?;
    to_door.shutdown().await?;
    let mut answer = String::new();
    from_door.read_to_string(&mut answer).await?;
    anyhow::ensure!(!answer.is_empty(), "there was no answer");
    Ok(answer)
}
