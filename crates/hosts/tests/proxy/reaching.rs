//! What an agent reaches: its model's servers, with and without TLS.

use asyncagents_hosts::proxy::AllowedHosts;
use tokio::{
    io::AsyncWriteExt,
    net::{TcpListener, TcpStream},
};

use crate::world::{Echo, connect, exactly, head, login, proxy, rest, status, tunnel};

#[tokio::test]
async fn a_tunnel_carries_bytes_both_ways_and_its_end() {
    let server = Echo::new().await;
    let address = format!("127.0.0.1:{}", server.port);
    let proxy = proxy(AllowedHosts::new().own_server(&address).expect("a server"));
    let (mut stream, answer) = tunnel(&proxy, &address).await;
    assert_eq!(status(&answer), "200", "{answer}");
    stream.write_all(b"hello").await.expect("sent");
    assert_eq!(exactly(&mut stream, 5).await, "hello");
    stream.write_all(b"bye").await.expect("sent");
    // What was said is still answered.
    stream.shutdown().await.expect("said all");
    assert_eq!(rest(&mut stream).await, "bye");
    assert_eq!(proxy.refused(), [""; 0]);
}

/// A model's answer is shown while it is written.
#[tokio::test]
async fn pieces_of_a_request_and_of_its_answer_are_passed_on_as_they_come() {
    let server = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = server.local_addr().expect("its port").port();
    let address = format!("http://127.0.0.1:{port}");
    let proxy = proxy(AllowedHosts::new().own_server(&address).expect("a server"));

    let mut agent = connect(&proxy).await;
    let request = format!(
        "POST {address}/v1/messages?beta=true HTTP/1.1\r\nHost: other.example\r\n{}\
         Connection: keep-alive, x-private\r\nX-Private: 1\r\nX-Api-Key: key\r\n\
         Transfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n",
        login(&proxy)
    );
    agent.write_all(request.as_bytes()).await.expect("sent");
    let (mut model, _) = server.accept().await.expect("the proxy comes");
    let asked = head(&mut model).await.to_ascii_lowercase();
    assert!(
        asked.starts_with("post /v1/messages?beta=true http/1.1\r\n"),
        "{asked}"
    );
    assert!(
        asked.contains(&format!("\r\nhost: 127.0.0.1:{port}\r\n")),
        "{asked}"
    );
    assert!(asked.contains("\r\nx-api-key: key\r\n"), "{asked}");
    for of_neighbours in ["proxy-authorization", "x-private", "other.example"] {
        assert!(!asked.contains(of_neighbours), "{asked}");
    }
    // The request is not whole yet.
    assert_eq!(exactly(&mut model, 10).await, "5\r\nfirst\r\n");
    agent.write_all(b"0\r\n\r\n").await.expect("sent");
    assert_eq!(exactly(&mut model, 5).await, "0\r\n\r\n");

    let begun =
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    model.write_all(begun.as_bytes()).await.expect("sent");
    let answer = head(&mut agent).await;
    assert_eq!(status(&answer), "200");
    for event in ["data: one\n\n", "data: two\n\n"] {
        let piece = format!("{:X}\r\n{event}\r\n", event.len());
        model.write_all(piece.as_bytes()).await.expect("sent");
        assert_eq!(
            exactly(&mut agent, piece.len()).await,
            piece,
            "not kept back"
        );
    }
}

/// An agent that is stopped does not go on asking.
#[tokio::test]
async fn a_model_is_left_when_the_agent_goes() {
    let server = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = server.local_addr().expect("its port").port();
    let address = format!("http://127.0.0.1:{port}");
    let proxy = proxy(AllowedHosts::new().own_server(&address).expect("a server"));
    let mut agent: TcpStream = connect(&proxy).await;
    let request = format!(
        "GET {address}/ HTTP/1.1\r\nHost: a\r\n{}\r\n",
        login(&proxy)
    );
    agent.write_all(request.as_bytes()).await.expect("sent");
    let (mut model, _) = server.accept().await.expect("the proxy comes");
    head(&mut model).await;
    drop(agent);
    assert_eq!(rest(&mut model).await, "", "closed");
}

#[tokio::test]
async fn a_server_that_is_down_is_said_so() {
    let gone = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = gone.local_addr().expect("its port").to_string();
    drop(gone);
    let proxy = proxy(AllowedHosts::new().own_server(&address).expect("a server"));
    let (mut stream, answer) = tunnel(&proxy, &address).await;
    assert_eq!(status(&answer), "502", "{answer}");
    stream.shutdown().await.expect("said all");
    let why = rest(&mut stream).await;
    assert!(why.contains(&address) && why.contains("refused"), "{why}");
    assert_eq!(proxy.refused(), [""; 0], "it is allowed");
}
