//! Answers without end: they stop before they fill the memory, and before nobody waits any more.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use asyncagents_models::{KeySource, Model, ModelError, Models, Provider, Settings, Wire};
use rstest::rstest;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

use super::{ask, listen, said, soon};

/// How much a server sends at most, so that a client that takes it all fails and does no harm.
const MOST_SENT: usize = 40_000_000;
const MAX_ANSWER: usize = 200_000;
const MAX_ARGUMENTS: usize = 100_000;
const SILENCE: Duration = Duration::from_millis(500);

/// What a server sends: a beginning, and then the same again and again.
#[derive(Clone, Copy)]
struct Sends {
    first: &'static str,
    again: &'static str,
    /// Between two of them.
    pause: Duration,
}

const AT_ONCE: Duration = Duration::ZERO;
const NOW_AND_THEN: Duration = Duration::from_millis(20);

/// Sends without end to everybody who asks, and counts them.
async fn serving(sends: Sends) -> (String, JoinHandle<()>, Arc<AtomicU32>) {
    let socket = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", socket.local_addr().expect("an address"));
    let asked = Arc::new(AtomicU32::new(0));
    let count = asked.clone();
    let served = tokio::spawn(async move {
        loop {
            let (connection, _) = socket.accept().await.expect("a connection");
            count.fetch_add(1, Ordering::SeqCst);
            // Whoever has heard enough closes the connection.
            let _ = send(connection, sends).await;
        }
    });
    (url, served, asked)
}

async fn send(mut connection: TcpStream, sends: Sends) -> io::Result<()> {
    let mut request = Vec::new();
    while !request.ends_with(b"}") {
        if connection.read_buf(&mut request).await? == 0 {
            return Ok(());
        }
    }
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    connection.write_all(head.as_bytes()).await?;
    connection.write_all(sends.first.as_bytes()).await?;
    // Many at once, if there is no pause: a write for each would take long.
    let times = if sends.pause.is_zero() { 1_000 } else { 1 };
    let again = sends.again.repeat(times);
    let mut sent = 0;
    while sent < MOST_SENT {
        connection.write_all(again.as_bytes()).await?;
        sent += again.len();
        tokio::time::sleep(sends.pause).await;
    }
    Ok(())
}

fn model(wire: Wire, url: &str, attempts: u32) -> Model {
    patient(wire, url, attempts, SILENCE)
}

fn patient(wire: Wire, url: &str, attempts: u32, idle_timeout: Duration) -> Model {
    let mut settings = Settings {
        idle_timeout,
        attempts,
        max_answer: MAX_ANSWER,
        max_arguments: MAX_ARGUMENTS,
        ..Settings::default()
    };
    settings.providers.push(Provider {
        name: "house".to_owned(),
        wire,
        base_url: url.to_owned(),
        key: KeySource::None,
        headers: Vec::new(),
    });
    let models = Models::new(settings).expect("models");
    models.resolve("house/m").expect("a model")
}

const TOO_LONG: &str = "the answer of house was dropped: it is longer than 200000 bytes, which \
    `models.max_answer` allows";
const TOO_MANY_ARGUMENTS: &str = "the answer of house was dropped: the arguments of one call are \
    longer than 100000 bytes, which `models.max_arguments` allows";

#[rstest]
#[case::text(
    Wire::Anthropic,
    "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
    "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"on and on \"}}\n\n",
    TOO_LONG
)]
#[case::reasoning(
    Wire::Anthropic,
    "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"thinking\",\"thinking\":\"\"}}\n\n",
    "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"thinking_delta\",\"thinking\":\"on and on \"}}\n\n",
    TOO_LONG
)]
#[case::arguments(
    Wire::Anthropic,
    "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"run\",\"input\":{}}}\n\n",
    "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"on and on \"}}\n\n",
    TOO_MANY_ARGUMENTS
)]
#[case::calls(
    Wire::Anthropic,
    "",
    "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"run\",\"input\":{}}}\n\n",
    TOO_LONG
)]
#[case::text(
    Wire::Responses,
    "",
    "data: {\"type\":\"response.output_text.delta\",\"output_index\":0,\"delta\":\"on and on \"}\n\n",
    TOO_LONG
)]
#[case::reasoning(
    Wire::Responses,
    "",
    "data: {\"type\":\"response.reasoning_summary_text.delta\",\"output_index\":0,\"delta\":\"on and on \"}\n\n",
    TOO_LONG
)]
#[case::arguments(
    Wire::Responses,
    "",
    "data: {\"type\":\"response.function_call_arguments.delta\",\"output_index\":0,\"delta\":\"on and on \"}\n\n",
    TOO_MANY_ARGUMENTS
)]
#[case::calls(
    Wire::Responses,
    "",
    "data: {\"type\":\"response.output_item.done\",\"item\":{\"type\":\"function_call\",\"name\":\"run\",\"arguments\":\"{}\"}}\n\n",
    TOO_LONG
)]
#[case::text(
    Wire::Chat,
    "",
    "data: {\"choices\":[{\"delta\":{\"content\":\"on and on \"}}]}\n\n",
    TOO_LONG
)]
#[case::reasoning(
    Wire::Chat,
    "",
    "data: {\"choices\":[{\"delta\":{\"reasoning\":\"on and on \"}}]}\n\n",
    TOO_LONG
)]
#[case::arguments(
    Wire::Chat,
    "",
    "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"on and on \"}}]}}]}\n\n",
    TOO_MANY_ARGUMENTS
)]
#[case::calls(
    Wire::Chat,
    "",
    "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{\"name\":\"run\"}}]}}]}\n\n",
    TOO_LONG
)]
#[tokio::test]
async fn an_answer_without_end_is_dropped_and_not_asked_again(
    #[case] wire: Wire,
    #[case] first: &'static str,
    #[case] again: &'static str,
    #[case] text: &str,
) {
    let (url, served, asked) = serving(Sends {
        first,
        again,
        pause: AT_ONCE,
    })
    .await;
    let (answer, heard) = soon(listen(&model(wire, &url, 3), &[said("hi")])).await;
    let error = answer.expect_err("too much");
    assert_eq!(error.to_string(), text);
    assert!(matches!(error, ModelError::AnswerTooLong { .. }));
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    let heard: usize = heard.iter().map(String::len).sum();
    assert!(heard <= 2 * MAX_ANSWER, "{heard} bytes were heard");
    served.abort();
}

/// Lines of data are one event until an empty line, so each may be short.
#[tokio::test]
async fn an_event_without_end_is_not_kept() {
    let (url, served, _) = serving(Sends {
        first: "",
        again: concat!(
            "data: ",
            "                                                      ",
            "\n"
        ),
        pause: AT_ONCE,
    })
    .await;
    let error = soon(ask(
        &patient(Wire::Chat, &url, 1, Duration::from_secs(10)),
        &[said("hi")],
    ))
    .await;
    let error = error.expect_err("no end").to_string();
    let text =
        "the answer of house was broken off: an event of the stream does not end (asked once)";
    assert_eq!(error, text);
    served.abort();
}

const OPEN_TEXT: &str = "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"hm\"}}\n\n";

#[rstest]
#[case::comments(Wire::Chat, "", ": still there\n\n")]
#[case::comments_after_some_text(Wire::Anthropic, OPEN_TEXT, ": still there\n\n")]
#[case::pings(Wire::Anthropic, "", "event: ping\ndata: {\"type\":\"ping\"}\n\n")]
#[case::empty_text(
    Wire::Anthropic,
    OPEN_TEXT,
    "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"\"}}\n\n"
)]
#[case::in_progress(
    Wire::Responses,
    "",
    "data: {\"type\":\"response.in_progress\",\"response\":{}}\n\n"
)]
#[case::empty_text(
    Wire::Responses,
    "",
    "data: {\"type\":\"response.output_text.delta\",\"delta\":\"\"}\n\n"
)]
#[case::empty_deltas(
    Wire::Chat,
    "",
    "data: {\"choices\":[{\"delta\":{\"content\":\"\"}}]}\n\n"
)]
#[case::events_without_data(Wire::Chat, "", "event: message\n\n")]
#[tokio::test]
async fn keep_alives_are_heard_for_a_while_and_not_for_ever(
    #[case] wire: Wire,
    #[case] first: &'static str,
    #[case] again: &'static str,
) {
    let (url, served, asked) = serving(Sends {
        first,
        again,
        pause: NOW_AND_THEN,
    })
    .await;
    let start = Instant::now();
    let error = soon(ask(&model(wire, &url, 1), &[said("hi")])).await;
    let error = error.expect_err("no answer");
    let kept_waiting = ModelError::Broken {
        provider: "house".to_owned(),
        attempts: 1,
        why: "nothing but keep-alives came for 2 s; `models.silence` says how long that may be"
            .to_owned(),
    };
    assert_eq!(error, kept_waiting);
    let patience = SILENCE * Settings::KEEP_ALIVES;
    assert!(
        start.elapsed() >= patience,
        "it waits longer than for silence"
    );
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    served.abort();
}

#[tokio::test]
async fn an_answer_that_is_whole_is_not_kept_open_by_keep_alives() {
    let (url, served, _) = serving(Sends {
        first: "data: {\"choices\":[{\"delta\":{\"content\":\"hello\"},\"finish_reason\":\"stop\"}]}\n\n",
        again: "data: {\"choices\":[{\"delta\":{}}]}\n\n",
        pause: NOW_AND_THEN,
    })
    .await;
    let answer = soon(ask(&model(Wire::Chat, &url, 1), &[said("hi")])).await;
    assert_eq!(answer.expect("an answer").text(), "hello");
    served.abort();
}
