//! Servers that do not behave as the books say.

use std::time::{Duration, Instant};

use asyncagents_models::{KeySource, Model, Models, Provider, Settings, Wire};
use rstest::rstest;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

use super::{ask, said, soon};

/// Something a server does with a connection.
#[derive(Clone, Copy)]
enum Does {
    Write(&'static str),
    Pause(Duration),
    /// So many bytes without a line break.
    Flood(usize),
}

use Does::{Flood, Pause, Write};

/// Does these things, one list per request, and gives back how many requests came.
async fn serving(lists: Vec<Vec<Does>>) -> (String, JoinHandle<usize>) {
    let socket = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", socket.local_addr().expect("an address"));
    let served = tokio::spawn(async move {
        let mut served = 0;
        for list in lists {
            let (mut connection, _) = socket.accept().await.expect("a connection");
            read_request(&mut connection).await;
            served += 1;
            for thing in list {
                match thing {
                    Write(text) => connection.write_all(text.as_bytes()).await.unwrap_or(()),
                    Pause(pause) => tokio::time::sleep(pause).await,
                    Flood(bytes) => {
                        let flood = vec![b' '; bytes];
                        connection.write_all(&flood).await.unwrap_or(());
                    }
                }
            }
        }
        served
    });
    (url, served)
}

async fn read_request(connection: &mut TcpStream) {
    let mut request = Vec::new();
    while !request.ends_with(b"}") {
        let read = connection.read_buf(&mut request).await.expect("a request");
        assert_ne!(read, 0, "a whole request");
    }
}

fn model(url: &str) -> Model {
    speaking(Wire::Chat, url, IDLE)
}

/// Long enough for a busy machine.
const IDLE: Duration = Duration::from_secs(1);

fn speaking(wire: Wire, url: &str, idle_timeout: Duration) -> Model {
    let mut settings = Settings {
        idle_timeout,
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
    models.resolve("house/llama").expect("a model")
}

const STREAM: Does =
    Write("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n");
const HELLO: Does = Write(
    "data: {\"choices\":[{\"delta\":{\"content\":\"hello\"},\"finish_reason\":\"stop\"}]}\n\n",
);
const COMMENT: Does = Write(": still there\n\n");
/// Four of these are longer than [`IDLE`].
const SHORT: Does = Pause(Duration::from_millis(300));

#[rstest]
#[case::no_done(vec![vec![STREAM, HELLO]])]
#[case::comments_are_signs_of_life(vec![vec![STREAM, SHORT, COMMENT, SHORT, COMMENT, SHORT, COMMENT, SHORT, HELLO]])]
#[case::no_content_type(vec![vec![Write("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n"), HELLO]])]
#[case::a_byte_order_mark_and_other_line_ends(vec![vec![STREAM, Write("\u{feff}: hi\r\n\r\nevent: x\r\ndata: {}\r\n\r\n"), HELLO]])]
#[case::left_open_after_the_end(vec![vec![STREAM, HELLO, Write("data: [DONE]\n\n"), Pause(Duration::from_secs(60))]])]
#[case::cut_first(vec![vec![STREAM, Write("data: {\"choi")], vec![STREAM, HELLO]])]
#[case::nothing_first(vec![vec![STREAM], vec![STREAM, HELLO]])]
#[tokio::test]
async fn an_answer_is_an_answer(#[case] lists: Vec<Vec<Does>>) {
    let (url, served) = serving(lists).await;
    let answer = soon(ask(&model(&url), &[said("hi")])).await;
    assert_eq!(answer.expect("an answer").text(), "hello");
    served.abort();
}

#[rstest]
#[case(Wire::Anthropic, concat!(
    "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"name\":\"run\",\"input\":{}}}\n\n",
    "data: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"run\",\"input\":{}}}\n\n",
    "data: {\"type\":\"content_block_start\",\"index\":2,\"content_block\":{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"run\",\"input\":{}}}\n\n",
    "data: {\"type\":\"message_stop\"}\n\n",
))]
#[case(Wire::Responses, concat!(
    "data: {\"type\":\"response.completed\",\"response\":{\"output\":[",
    "{\"type\":\"function_call\",\"name\":\"run\",\"arguments\":\"{}\"},",
    "{\"type\":\"function_call\",\"call_id\":\"a\",\"name\":\"run\",\"arguments\":\"{}\"},",
    "{\"type\":\"function_call\",\"call_id\":\"a\",\"name\":\"run\",\"arguments\":\"{}\"}]}}\n\n",
))]
#[case(Wire::Chat, concat!(
    "data: {\"choices\":[{\"delta\":{\"tool_calls\":[",
    "{\"index\":0,\"function\":{\"name\":\"run\",\"arguments\":\"{}\"}},",
    "{\"index\":1,\"id\":\"a\",\"function\":{\"name\":\"run\",\"arguments\":\"{}\"}},",
    "{\"index\":2,\"id\":\"a\",\"function\":{\"name\":\"run\",\"arguments\":\"{}\"}}]}}]}\n\n",
    "data: [DONE]\n\n",
))]
#[tokio::test]
async fn calls_can_always_be_told_apart(#[case] wire: Wire, #[case] stream: &'static str) {
    let (url, _served) = serving(vec![vec![STREAM, Write(stream)]]).await;
    let answer = soon(ask(&speaking(wire, &url, IDLE), &[said("hi")])).await;
    let answer = answer.expect("an answer");
    let ids: Vec<&str> = answer.calls().map(|call| call.id.as_str()).collect();
    assert_eq!(ids, ["call_1_1", "a", "call_1_3"]);
}

#[tokio::test]
async fn a_line_without_end_is_not_kept() {
    let endless = vec![
        STREAM,
        Write(":"),
        Flood(40 * 1024 * 1024),
        Write("\n\n"),
        HELLO,
    ];
    let (url, served) = serving(vec![endless, vec![STREAM, HELLO]]).await;
    // So many bytes take their time; how long is not what this is about.
    let model = speaking(Wire::Chat, &url, Duration::from_secs(60));
    let answer = soon(ask(&model, &[said("hi")])).await;
    assert_eq!(answer.expect("an answer").text(), "hello");
    assert_eq!(soon(served).await.ok(), Some(2), "it is asked again");
}

#[tokio::test]
async fn a_wait_in_milliseconds_is_kept() {
    let (url, served) = serving(vec![
        vec![Write("HTTP/1.1 429 Too Many Requests\r\nretry-after: 60\r\nretry-after-ms: 700\r\ncontent-length: 0\r\n\r\n")],
        vec![STREAM, HELLO],
    ])
    .await;
    let start = Instant::now();
    soon(ask(&model(&url), &[said("hi")]))
        .await
        .expect("an answer");
    assert!(start.elapsed() >= Duration::from_millis(700));
    assert_eq!(served.await.ok(), Some(2));
}

#[rstest]
#[case(
    vec![vec![Write("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\n\r\n<html>Log in")]],
    "house refuses (200): it answers with text/html, not with a stream of events; is URL the right address?"
)]
#[case(
    vec![vec![Write("HTTP/1.1 307 Temporary Redirect\r\nlocation: http://127.0.0.1:9/\r\ncontent-length: 0\r\n\r\n")]],
    "house refuses (307): no reason given; is URL the right address?"
)]
#[case(
    vec![vec![Write("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n{\"error\":{\"code\":400,\"message\":\"no such model\"}}")]],
    "house refuses (400): no such model"
)]
#[tokio::test]
async fn a_page_is_no_answer(#[case] lists: Vec<Vec<Does>>, #[case] text: &str) {
    let (url, served) = serving(lists).await;
    let error = soon(ask(&model(&url), &[said("hi")]))
        .await
        .expect_err("an error");
    assert_eq!(error.to_string(), text.replace("URL", &url));
    assert_eq!(served.await.ok(), Some(1));
}
