//! `asyncagents mcp --connect`: passes on what an agent in the sandbox and the worker say to each
//! other, and knows nothing itself: neither the configuration nor the database can be read there.

use std::{env, io};

use anyhow::anyhow;
use asyncagents_hosts::proxy::{DOORS_VARIABLE, Door, DoorConnection, connect_to};
use tokio::io::{AsyncWriteExt, copy, stdin, stdout};

use super::super::two_threads;
use crate::exit::{Exit, Failure};

/// Passes on until either side ends.
pub(in crate::commands) fn run() -> Result<Exit, Failure> {
    let address = env::var(DOORS_VARIABLE).map_err(|_| {
        Failure::Input(anyhow!(
            "{DOORS_VARIABLE} is not set; asyncagents starts `mcp --connect` itself, for its agents"
        ))
    })?;
    let runtime = two_threads()?;
    let done = runtime.block_on(relay(&address));
    // A blocked read of standard input must not keep the process.
    runtime.shutdown_background();
    done
}

async fn relay(address: &str) -> Result<Exit, Failure> {
    let gone = |why: &str| Failure::Machine(anyhow!("the worker of asyncagents is gone: {why}"));
    let connected = connect_to(Door::Tools, address)
        .await
        .map_err(|why| gone(&why))?;
    let DoorConnection {
        mut from_door,
        mut to_door,
        held: _held,
    } = connected;
    let (mut input, mut output) = (stdin(), stdout());
    let asked = async {
        copy(&mut input, &mut to_door).await?;
        // What was asked is still answered.
        to_door.shutdown().await
    };
    let answered = copy(&mut from_door, &mut output);
    tokio::pin!(answered);
    let ended: io::Result<()> = tokio::select! {
        asked = asked => asked,
        answered = &mut answered => {
            return match answered {
                Ok(_) => Err(gone("it has closed the connection")),
                Err(error) => Err(gone(&error.to_string())),
            };
        }
    };
    ended.map_err(|error| gone(&error.to_string()))?;
    answered.await.map_err(|error| gone(&error.to_string()))?;
    Ok(Exit::Done)
}
