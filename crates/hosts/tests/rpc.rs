//! Two programs that speak over a pipe, as one of them notices it.
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on should stop, and one handler is meant to burst"
)]

use std::{future::pending, sync::Arc, time::Duration};

use asyncagents_hosts::plugin::rpc::{Answer, Fault, Handler, Peer, RpcError, connect};
use futures_util::future::BoxFuture;
use serde_json::{
    Value, json,
    value::{RawValue, to_raw_value},
};
use tokio::{
    io::{
        AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
        duplex, split,
    },
    sync::mpsc,
    task::JoinHandle,
    time::timeout,
};

/// What a side does when it is spoken to, and tells the test.
struct Side(mpsc::UnboundedSender<String>);

/// Tells the test when it is dropped.
struct Dropped(mpsc::UnboundedSender<String>);

impl Drop for Dropped {
    fn drop(&mut self) {
        let _ = self.0.send("dropped".to_owned());
    }
}

impl Handler for Side {
    fn request(&self, method: &str, params: &RawValue) -> BoxFuture<'static, Answer> {
        let params = params.to_owned();
        match method {
            "echo" => Box::pin(async move { Ok(params) }),
            "pretty" => {
                let lines = RawValue::from_string("{\n\"a\":\n1}".to_owned());
                Box::pin(async move { lines.map_err(Fault::new) })
            }
            "hang" => {
                let _ = self.0.send("hangs".to_owned());
                let dropped = Dropped(self.0.clone());
                Box::pin(async move {
                    let _dropped = dropped;
                    pending().await
                })
            }
            "burst" => Box::pin(async { panic!("as planned") }),
            other => {
                let fault = Fault::unknown(other);
                Box::pin(async { Err(fault) })
            }
        }
    }

    fn notification(&self, method: &str, params: &RawValue) -> Option<BoxFuture<'static, ()>> {
        let (heard, said) = (self.0.clone(), format!("{method} {params}"));
        match method {
            "later" => Some(Box::pin(async move { drop(heard.send(said)) })),
            _ => {
                let _ = heard.send(said);
                None
            }
        }
    }
}

/// One side of a pipe that is served.
struct Served {
    peer: Peer,
    heard: mpsc::UnboundedReceiver<String>,
    run: JoinHandle<std::io::Result<()>>,
}

impl Served {
    fn new(pipe: DuplexStream) -> Self {
        let (reader, writer) = split(pipe);
        let (peer, line) = connect(reader, writer);
        let (said, heard) = mpsc::unbounded_channel();
        let run = tokio::spawn(line.run(Arc::new(Side(said))));
        Self { peer, heard, run }
    }

    async fn hears(&mut self) -> String {
        soon(self.heard.recv()).await.expect("something")
    }

    async fn ends(self) {
        let ended = soon(self.run).await.expect("no panic");
        ended.expect("an orderly end");
    }
}

/// The other side, by hand.
struct Hand {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    writer: WriteHalf<DuplexStream>,
}

impl Hand {
    fn served() -> (Self, Served) {
        Self::with_room(1024 * 1024)
    }

    fn with_room(bytes: usize) -> (Self, Served) {
        let (here, there) = duplex(bytes);
        let (reader, writer) = split(here);
        let lines = BufReader::new(reader).lines();
        (Self { lines, writer }, Served::new(there))
    }

    async fn write(&mut self, line: &str) {
        let line = format!("{line}\n");
        let written = soon(self.writer.write_all(line.as_bytes())).await;
        written.expect("a reader");
    }

    async fn reads(&mut self) -> Value {
        let line = soon(self.lines.next_line()).await.expect("a pipe");
        serde_json::from_str(&line.expect("a line")).expect("JSON")
    }
}

/// Fails rather than hangs.
async fn soon<T>(future: impl Future<Output = T>) -> T {
    let waited = timeout(Duration::from_secs(60), future).await;
    waited.expect("an end within a minute")
}

async fn asks(peer: &Peer, method: &str, params: Value) -> Result<Value, RpcError> {
    let answer = soon(peer.request(method, &params)).await?;
    Ok(serde_json::from_str(answer.get()).expect("JSON"))
}

/// Tells the other side something before it answers.
struct Teller(Peer);

impl Handler for Teller {
    fn request(&self, _: &str, _: &RawValue) -> BoxFuture<'static, Answer> {
        let peer = self.0.clone();
        Box::pin(async move {
            peer.notify("told", &()).map_err(Fault::new)?;
            Ok(RawValue::NULL.to_owned())
        })
    }

    fn notification(&self, _: &str, _: &RawValue) -> Option<BoxFuture<'static, ()>> {
        None
    }
}

/// A plugin that is welcomed knows by then whether it is listened to.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_told_before_an_answer_arrives_before_it() {
    let (here, there) = duplex(1024);
    let (reader, writer) = split(there);
    let (peer, line) = connect(reader, writer);
    let run = tokio::spawn(line.run(Arc::new(Teller(peer))));
    let (reader, writer) = split(here);
    let lines = BufReader::new(reader).lines();
    let mut hand = Hand { lines, writer };
    for id in 0..500 {
        let asked = json!({"id": id, "method": "ask"}).to_string();
        hand.write(&asked).await;
        assert_eq!(hand.reads().await["method"], "told", "{id}");
        assert_eq!(hand.reads().await["id"], id);
    }
    run.abort();
}

#[tokio::test]
async fn both_sides_ask_and_tell() {
    let (left, right) = duplex(1024);
    let (mut left, mut right) = (Served::new(left), Served::new(right));
    let (a, b) = (json!({"text": "é\u{2028}\n"}), json!([1, null]));
    let (from_right, from_left) = tokio::join!(
        asks(&left.peer, "echo", a.clone()),
        asks(&right.peer, "echo", b.clone()),
    );
    assert_eq!((from_right, from_left), (Ok(a), Ok(b)));
    assert_eq!(
        asks(&left.peer, "pretty", Value::Null).await,
        Ok(json!({"a": 1}))
    );
    left.peer.notify("now", &1).expect("a line");
    left.peer.notify("later", &2).expect("a line");
    right.peer.notify("now", &3).expect("a line");
    assert_eq!(right.hears().await, "now 1");
    assert_eq!(right.hears().await, "later 2");
    assert_eq!(left.hears().await, "now 3");
}

#[tokio::test]
async fn what_goes_wrong_is_said() {
    let (left, right) = duplex(1024);
    let (left, _right) = (Served::new(left), Served::new(right));
    let unknown = asks(&left.peer, "dance", Value::Null).await;
    assert_eq!(unknown, Err(RpcError::Fault(Fault::unknown("dance"))));
    let burst = asks(&left.peer, "burst", Value::Null).await;
    assert!(matches!(burst, Err(RpcError::Fault(_))), "{burst:?}");
    let echo = asks(&left.peer, "echo", json!("still there")).await;
    assert_eq!(echo, Ok(json!("still there")));
}

#[tokio::test]
async fn a_slow_answer_holds_nobody_up() {
    let (mut hand, mut served) = Hand::served();
    hand.write(r#"{"id":1,"method":"hang"}"#).await;
    assert_eq!(served.hears().await, "hangs");
    hand.write(r#"{"id":"two","method":"echo","params":[2]}"#)
        .await;
    let answer = hand.reads().await;
    assert_eq!(
        answer,
        json!({"jsonrpc": "2.0", "id": "two", "result": [2]})
    );
}

#[tokio::test]
async fn a_cancelled_request_is_dropped_and_not_answered() {
    let (mut hand, mut served) = Hand::served();
    for id in ["1", "\"1\""] {
        hand.write(&format!(r#"{{"id":{id},"method":"hang"}}"#))
            .await;
        assert_eq!(served.hears().await, "hangs");
    }
    hand.write(r#"{"method":"cancel","params":{"id":1}}"#).await;
    assert_eq!(served.hears().await, "dropped");
    // Neither a cancel for nobody nor one without a name does any harm.
    hand.write(r#"{"method":"cancel","params":{"id":99}}"#)
        .await;
    hand.write(r#"{"method":"cancel"}"#).await;
    hand.write(r#"{"id":3,"method":"echo","params":3}"#).await;
    assert_eq!(hand.reads().await["id"], 3);
}

#[tokio::test]
async fn a_line_that_makes_no_sense_costs_only_itself() {
    let (mut hand, _served) = Hand::served();
    let lines = [
        "",
        "hello",
        "[1,2]",
        "{}",
        "{\"method\":7}",
        "{\"id\":99,\"result\":1}",
        "\r",
    ];
    for line in lines {
        hand.write(line).await;
    }
    hand.writer.write_all(&[0xff, b'\n']).await.expect("a pipe");
    // A byte longer than a line may be.
    let long = format!(
        r#"{{"id":1,"method":"echo","params":"{}"}}"#,
        "x".repeat(64 << 20)
    );
    hand.write(&long).await;
    hand.write(r#"{"id":2,"method":"echo"}"#).await;
    assert_eq!(hand.reads().await["id"], 2);
}

#[tokio::test]
async fn a_long_line_is_read() {
    let (left, right) = duplex(64 * 1024);
    let (left, _right) = (Served::new(left), Served::new(right));
    let text = Value::from("y".repeat(5 << 20));
    assert_eq!(asks(&left.peer, "echo", text.clone()).await, Ok(text));
}

#[tokio::test]
async fn who_waits_at_the_end_is_told_so() {
    let (mut hand, mut served) = Hand::served();
    let peer = served.peer.clone();
    let asking = tokio::spawn(async move { asks(&peer, "anything", Value::Null).await });
    assert_eq!(hand.reads().await["method"], "anything");
    hand.write(r#"{"id":1,"method":"hang"}"#).await;
    assert_eq!(served.hears().await, "hangs");
    drop(hand);
    assert_eq!(soon(asking).await.expect("no panic"), Err(RpcError::Gone));
    assert_eq!(served.hears().await, "dropped");
    let peer = served.peer.clone();
    served.ends().await;
    assert_eq!(asks(&peer, "late", Value::Null).await, Err(RpcError::Gone));
    assert_eq!(peer.notify("late", &()), Err(RpcError::Gone));
}

#[tokio::test]
async fn who_waits_is_told_when_the_line_itself_is_dropped() {
    let (mut hand, served) = Hand::served();
    let peer = served.peer.clone();
    let asking = tokio::spawn(async move { asks(&peer, "anything", Value::Null).await });
    hand.reads().await;
    served.run.abort();
    assert_eq!(soon(asking).await.expect("no panic"), Err(RpcError::Gone));
}

#[tokio::test]
async fn one_that_does_not_listen_is_still_heard() {
    let (mut hand, mut served) = Hand::with_room(256);
    let big = to_raw_value(&"z".repeat(100_000)).expect("JSON");
    served.peer.notify("big", &big).expect("a line");
    for number in 0..100 {
        hand.write(&format!(r#"{{"method":"now","params":{number}}}"#))
            .await;
        assert_eq!(served.hears().await, format!("now {number}"));
    }
}
