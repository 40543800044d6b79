//! The other side: a program of ours beside an agent, which wants one of our doors.

use tokio::io::{AsyncRead, AsyncWrite, split};

use super::{
    allowed_hosts::Network,
    door::Door,
    target::Target,
    way_out::{Reached, Unreached, WayOut},
};

/// Both directions of a connection to a door.
pub struct DoorConnection {
    pub from_door: Box<dyn AsyncRead + Send + Unpin>,
    pub to_door: Box<dyn AsyncWrite + Send + Unpin>,
    /// What it needs to go on, as long as it is held.
    pub held: Box<dyn Send>,
}

/// Connects to a door through the proxy at this address.
///
/// # Errors
/// With a sentence, if there is no such proxy.
pub async fn connect_to(door: Door, address: &str) -> Result<DoorConnection, String> {
    let way_out = WayOut::from_variables(|name| (name == "ALL_PROXY").then(|| address.to_owned()));
    // Without a proxy there is nothing: it is no host.
    let target = Target::of_door(door);
    let reached = way_out.reach(&target, "http", Network::Internet);
    let Reached { stream, tasks } = reached.await.map_err(|unreached| match unreached {
        Unreached::Refused(why) | Unreached::Failed(why) => why,
    })?;
    let (from_door, to_door) = split(stream);
    Ok(DoorConnection {
        from_door: Box::new(from_door),
        to_door: Box::new(to_door),
        held: Box::new(tasks),
    })
}
