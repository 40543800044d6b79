//! What an agent must not reach, however it says it, and clients that mean no good.

use std::process::Stdio;

use asyncagents_hosts::proxy::AllowedHosts;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    process::Command,
    task::JoinSet,
};

use crate::world::{Echo, connect, exactly, head, login, proxy, rest, say, status, tunnel};

/// Ways to name a server of this machine. `PORT` is where it listens.
const NAMES: [&str; 18] = [
    "127.0.0.1:PORT",
    "127.0.0.2:PORT",
    "localhost:PORT",
    "LOCALHOST.:PORT",
    "[::1]:PORT",
    "[::ffff:127.0.0.1]:PORT",
    "[::ffff:7f00:1]:PORT",
    "0.0.0.0:PORT",
    "2130706433:PORT",
    "0x7f000001:PORT",
    "0x7f.0.0.1:PORT",
    "0177.0.0.1:PORT",
    "127.1:PORT",
    "allowed.example.evil.example:PORT",
    "evilallowed.example:PORT",
    "allowed.example@127.0.0.1:PORT",
    "127.0.0.1:PORT#.allowed.example",
    "asyncagents.tools:PORT",
];

/// Hosts on the port of the server, so that only their names keep others from it.
fn allowed(server: &Echo) -> AllowedHosts {
    let port = server.port;
    let allowed = AllowedHosts::new().host(&format!("allowed.example:{port}"));
    let allowed = allowed.expect("a host");
    let below = allowed.host(&format!("*.allowed.example:{port}"));
    below.expect("hosts")
}

#[tokio::test]
async fn nothing_else_is_reached_by_a_tunnel() {
    let server = Echo::new().await;
    for name in NAMES {
        let proxy = proxy(allowed(&server));
        let name = name.replace("PORT", &server.port.to_string());
        let (_, answer) = tunnel(&proxy, &name).await;
        // What is no address at all is refused as that.
        assert!(
            ["403", "400"].contains(&status(&answer)),
            "{name}: {answer}"
        );
    }
    assert_eq!(server.visits(), 0);
}

#[tokio::test]
async fn nothing_else_is_reached_by_a_request() {
    let server = Echo::new().await;
    for name in NAMES {
        let proxy = proxy(allowed(&server));
        let name = name.replace("PORT", &server.port.to_string());
        let request = format!(
            "GET http://{name}/ HTTP/1.1\r\nHost: allowed.example\r\n{}Connection: close\r\n\r\n",
            login(&proxy)
        );
        let answer = say(&proxy, &request).await;
        assert!(
            ["403", "400"].contains(&status(&answer)),
            "{name}: {answer}"
        );
    }
    assert_eq!(server.visits(), 0);
}

/// A name that its owner has lead here.
#[tokio::test]
async fn a_name_that_leads_to_this_machine_is_refused_unless_the_user_has_named_it() {
    let server = Echo::new().await;
    let name = format!("localhost:{}", server.port);
    let careful = proxy(AllowedHosts::new().host(&name).expect("a host"));
    let (mut stream, answer) = tunnel(&careful, &name).await;
    assert_eq!(status(&answer), "403", "{answer}");
    stream.shutdown().await.expect("said all");
    let why = rest(&mut stream).await;
    assert!(why.contains("leads to this machine"), "{why}");
    assert_eq!(
        (server.visits(), careful.refused()),
        (0, vec![name.clone()])
    );

    let own = proxy(AllowedHosts::new().own_server(&name).expect("a server"));
    let (_, answer) = tunnel(&own, &name).await;
    assert_eq!(status(&answer), "200", "{answer}");
}

#[tokio::test]
async fn who_has_not_the_password_gets_nothing() {
    let server = Echo::new().await;
    let address = format!("127.0.0.1:{}", server.port);
    let own = proxy(AllowedHosts::new().own_server(&address).expect("a server"));
    let other = login(&proxy(AllowedHosts::new()));
    for login in [
        "",
        "Proxy-Authorization: Basic YXN5bmNhZ2VudHM6\r\n",
        &other,
    ] {
        for request in [
            format!("CONNECT {address} HTTP/1.1\r\nHost: {address}\r\n{login}\r\n"),
            format!(
                "GET http://{address}/ HTTP/1.1\r\nHost: a\r\n{login}Connection: close\r\n\r\n"
            ),
            format!("CONNECT asyncagents.tools:1 HTTP/1.1\r\nHost: a\r\n{login}\r\n"),
        ] {
            let mut stream = connect(&own).await;
            stream.write_all(request.as_bytes()).await.expect("sent");
            let answer = head(&mut stream).await;
            assert_eq!(status(&answer), "407", "{request}");
        }
    }
    assert_eq!(server.visits(), 0);
}

/// Each request is looked at, also on a connection that was used for another server.
#[tokio::test]
async fn a_second_request_on_the_same_connection_is_checked_too() {
    let [model, other] = [Echo::new().await, Echo::new().await];
    let address = format!("http://127.0.0.1:{}", model.port);
    let proxy = proxy(AllowedHosts::new().own_server(&address).expect("a server"));
    let login = login(&proxy);
    // The first is answered by what it says itself, which is no answer.
    let both = format!(
        "GET {address}/ HTTP/1.1\r\nHost: a\r\n{login}\r\n\
         GET http://127.0.0.1:{}/ HTTP/1.1\r\nHost: a\r\n{login}Connection: close\r\n\r\n",
        other.port
    );
    let answers = say(&proxy, &both).await;
    assert_eq!(status(&answers), "502", "{answers}");
    assert!(answers.contains("HTTP/1.1 403 "), "{answers}");
    assert_eq!((model.visits(), other.visits()), (1, 0));
}

#[tokio::test]
async fn a_request_in_the_body_of_another_stays_a_body() {
    let [model, other] = [Echo::new().await, Echo::new().await];
    let address = format!("http://127.0.0.1:{}", model.port);
    let proxy = proxy(AllowedHosts::new().own_server(&address).expect("a server"));
    let inner = format!(
        "GET http://127.0.0.1:{}/ HTTP/1.1\r\nHost: a\r\n\r\n",
        other.port
    );
    let request = format!(
        "POST {address}/ HTTP/1.1\r\nHost: a\r\n{}Content-Length: {}\r\nTransfer-Encoding: chunked\r\n\
         Connection: close\r\n\r\n0\r\n\r\n{inner}",
        login(&proxy),
        inner.len()
    );
    say(&proxy, &request).await;
    assert_eq!(other.visits(), 0);
}

#[tokio::test]
async fn a_head_without_end_is_cut_off() {
    let proxy = proxy(AllowedHosts::new());
    let mut stream = connect(&proxy).await;
    stream
        .write_all(b"GET http://a/ HTTP/1.1\r\n")
        .await
        .expect("sent");
    let line = format!("X-Long: {}\r\n", "x".repeat(1_000));
    for _ in 0..200 {
        // The proxy may have closed it.
        if stream.write_all(line.as_bytes()).await.is_err() {
            break;
        }
    }
    let answer = rest(&mut stream).await;
    assert!(answer.is_empty() || status(&answer) == "431", "{answer}");
}

/// Those who connect and say nothing do not keep others out for ever.
#[tokio::test(start_paused = true)]
async fn connections_that_say_nothing_are_closed() {
    let server = Echo::new().await;
    let address = format!("127.0.0.1:{}", server.port);
    let proxy = proxy(AllowedHosts::new().own_server(&address).expect("a server"));
    let mut silent = JoinSet::new();
    // More than there may be at once.
    for number in 0..300 {
        let mut stream = connect(&proxy).await;
        if number % 2 == 0 {
            stream.write_all(b"CONNECT a:1 HT").await.expect("sent");
        }
        silent.spawn(async move { rest(&mut stream).await });
    }
    let (mut stream, answer) = tunnel(&proxy, &address).await;
    assert_eq!(status(&answer), "200", "{answer}");
    stream.write_all(b"hello").await.expect("sent");
    assert_eq!(exactly(&mut stream, 5).await, "hello");
}

#[tokio::test]
async fn what_it_tried_to_reach_is_known_the_newest_last() {
    let proxy = proxy(AllowedHosts::new());
    for number in 0..12 {
        tunnel(&proxy, &format!("host{number}.example:443")).await;
    }
    tunnel(&proxy, "host9.example:443").await;
    let refused = proxy.refused();
    assert_eq!(refused.len(), 8, "{refused:?}");
    assert_eq!(
        refused.last().map(String::as_str),
        Some("host9.example:443")
    );
    assert_eq!(
        refused.first().map(String::as_str),
        Some("host4.example:443")
    );
}

#[tokio::test]
async fn it_has_no_pages_and_passes_on_nothing_but_http() {
    let proxy = proxy(AllowedHosts::new().host("a").expect("a host"));
    let login = login(&proxy);
    for target in ["/", "https://a/", "ftp://a/", "*"] {
        let request =
            format!("GET {target} HTTP/1.1\r\nHost: a\r\n{login}Connection: close\r\n\r\n");
        let answer = say(&proxy, &request).await;
        assert_eq!(status(&answer), "400", "{target}: {answer}");
    }
}

/// Another user can connect, too, and needs no login for that.
#[tokio::test]
async fn another_user_does_not_keep_the_agent_from_its_model() {
    let server = Echo::new().await;
    let address = format!("127.0.0.1:{}", server.port);
    let proxy = proxy(AllowedHosts::new().own_server(&address).expect("a server"));
    let hold = format!(
        "for i in $(seq 100); do exec {{fd}}<>/dev/tcp/127.0.0.1/{}; done; echo held; exec sleep 1000",
        proxy.port()
    );
    let mut other = Command::new("setpriv");
    other
        .args([
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            "bash",
            "-c",
            &hold,
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    let mut other = other.spawn().expect("util-linux is there");
    let mut said = String::new();
    let mut output = BufReader::new(other.stdout.take().expect("a pipe"));
    output.read_line(&mut said).await.expect("read");
    if said.is_empty() {
        // Only who is root can be somebody else.
        let line =
            "\nskipped: hostile::another_user_does_not_keep_the_agent_from_its_model: no root\n";
        let _ = std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes());
        return;
    }
    for _ in 0..3 {
        let (_, answer) = tunnel(&proxy, &address).await;
        assert_eq!(status(&answer), "200", "{answer}");
    }
}
