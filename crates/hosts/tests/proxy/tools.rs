//! Our tools, through the proxy.

use std::sync::Arc;

use async_trait::async_trait;
use asyncagents_hosts::proxy::{
    AllowedHosts, Door, DoorConnection, DoorStream, TwoWay, WayOut, connect_to,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::timeout,
};

use crate::world::{PATIENCE, proxy, status, tunnel, with};

/// Answers in capitals.
struct Capitals;

#[async_trait]
impl DoorStream for Capitals {
    async fn serve(&self, mut stream: Box<dyn TwoWay>) {
        let mut said = [0; 5];
        while stream.read_exact(&mut said).await.is_ok() {
            let _ = stream.write_all(&said.to_ascii_uppercase()).await;
            let _ = stream.flush().await;
        }
        let _ = stream.write_all(b"END").await;
        let _ = stream.shutdown().await;
    }
}

#[tokio::test]
async fn the_agents_program_talks_with_the_worker() {
    let proxy = with(
        AllowedHosts::new(),
        Some(Arc::new(Capitals)),
        WayOut::direct(),
    );
    let (_, address) = proxy.doors_environment();
    let DoorConnection {
        mut from_door,
        mut to_door,
        held: _held,
    } = connect_to(Door::Tools, &address).await.expect("connected");
    let talk = async {
        for words in ["hello", "again"] {
            to_door.write_all(words.as_bytes()).await.expect("sent");
            let mut answer = [0; 5];
            from_door.read_exact(&mut answer).await.expect("an answer");
            assert_eq!(answer, *words.to_ascii_uppercase().as_bytes());
        }
        to_door.shutdown().await.expect("said all");
        let mut last = String::new();
        from_door.read_to_string(&mut last).await.expect("the end");
        assert_eq!(last, "END");
    };
    timeout(PATIENCE, talk).await.expect("in time");
}

#[tokio::test]
async fn an_agent_without_tools_is_told_so() {
    let proxy = proxy(AllowedHosts::new());
    let (_, answer) = tunnel(&proxy, "asyncagents.tools:1").await;
    assert_eq!(status(&answer), "403", "{answer}");
    assert_eq!(proxy.refused(), [""; 0], "it is no host of the network");
}

#[tokio::test]
async fn a_worker_that_is_gone_is_a_sentence() {
    let gone = with(
        AllowedHosts::new(),
        Some(Arc::new(Capitals)),
        WayOut::direct(),
    );
    let (_, address) = gone.doors_environment();
    let wrong = address.replace("asyncagents:", "asyncagents:x");
    let why = connect_to(Door::Tools, &wrong)
        .await
        .err()
        .expect("no such login");
    assert!(why.contains("407"), "{why}");
    drop(gone);
    // Until the listener has gone, it may be connected to.
    let asked = async {
        loop {
            if let Err(why) = connect_to(Door::Tools, &address).await {
                return why;
            }
        }
    };
    let why = timeout(PATIENCE, asked).await.expect("in time");
    assert!(!why.is_empty());
    for nonsense in ["", "nonsense", "socks5://a:b@127.0.0.1:1"] {
        assert!(
            connect_to(Door::Tools, nonsense).await.is_err(),
            "{nonsense}"
        );
    }
}
