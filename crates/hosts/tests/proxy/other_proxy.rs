//! A user who has a proxy already.

use asyncagents_hosts::proxy::{AllowedHosts, WayOut};
use tokio::{io::AsyncWriteExt, net::TcpListener};

use crate::world::{Echo, exactly, head, rest, status, tunnel, with};

fn through(address: &str) -> WayOut {
    let address = address.to_owned();
    WayOut::from_variables(move |name| match name {
        "https_proxy" => Some(address.clone()),
        "NO_PROXY" => Some("intern.example".to_owned()),
        _ => None,
    })
}

#[tokio::test]
async fn servers_are_reached_through_the_users_own_proxy() {
    let other = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = other.local_addr().expect("its port").port();
    let way_out = through(&format!("http://me:secret@127.0.0.1:{port}"));
    let allowed = AllowedHosts::new().host("model.example").expect("a host");
    let proxy = with(allowed, None, way_out);
    let asked = tokio::spawn(async move {
        let (mut stream, _) = other.accept().await.expect("it is asked");
        let asked = head(&mut stream).await;
        stream
            .write_all(b"HTTP/1.1 200 OK\r\n\r\n")
            .await
            .expect("sent");
        stream.write_all(b"from the model").await.expect("sent");
        (asked, stream)
    });
    let (mut stream, answer) = tunnel(&proxy, "model.example:443").await;
    assert_eq!(status(&answer), "200", "{answer}");
    assert_eq!(exactly(&mut stream, 14).await, "from the model");
    let (asked, _held) = asked.await.expect("it was asked");
    let asked = asked.to_ascii_lowercase();
    assert!(
        asked.starts_with("connect model.example:443 http/1.1\r\n"),
        "{asked}"
    );
    assert!(
        asked.contains("\r\nproxy-authorization: basic bwu6c2vjcmv0\r\n"),
        "{asked}"
    );

    let (_, answer) = tunnel(&proxy, "other.example:443").await;
    assert_eq!(
        status(&answer),
        "403",
        "it is not asked for others: {answer}"
    );
}

#[tokio::test]
async fn it_is_never_asked_for_this_machine() {
    let server = Echo::new().await;
    let address = format!("127.0.0.1:{}", server.port);
    let allowed = AllowedHosts::new().own_server(&address).expect("a server");
    let proxy = with(allowed, None, through("http://127.0.0.1:1"));
    let (_, answer) = tunnel(&proxy, &address).await;
    assert_eq!(status(&answer), "200", "{answer}");
}

#[tokio::test]
async fn what_kind_of_proxy_can_be_used_is_said() {
    let allowed = AllowedHosts::new().host("model.example").expect("a host");
    for address in [
        "https://me:secret@proxy.example",
        "socks5://proxy.example:1080",
    ] {
        let proxy = with(allowed.clone(), None, through(address));
        let (mut stream, answer) = tunnel(&proxy, "model.example:443").await;
        assert_eq!(status(&answer), "502", "{answer}");
        stream.shutdown().await.expect("said all");
        let why = rest(&mut stream).await;
        assert!(why.contains("agents can use http:// proxies only"), "{why}");
        assert!(!why.contains("secret"), "{why}");
    }
}
