//! What is left of a proxy that was dropped: nothing.

use asyncagents_hosts::proxy::AllowedHosts;
use tokio::{io::AsyncWriteExt, net::TcpStream, time::timeout};

use crate::world::{Echo, PATIENCE, connect, exactly, proxy, rest, tunnel};

#[tokio::test]
async fn all_connections_end_with_it() {
    let server = Echo::new().await;
    let address = format!("127.0.0.1:{}", server.port);
    let proxy = proxy(AllowedHosts::new().own_server(&address).expect("a server"));
    let (mut tunnelled, _) = tunnel(&proxy, &address).await;
    tunnelled.write_all(b"hello").await.expect("sent");
    assert_eq!(exactly(&mut tunnelled, 5).await, "hello");
    let mut silent = connect(&proxy).await;
    let port = proxy.port();
    drop(proxy);
    assert_eq!(rest(&mut tunnelled).await, "");
    assert_eq!(rest(&mut silent).await, "");
    let refused = async { while TcpStream::connect(("127.0.0.1", port)).await.is_ok() {} };
    timeout(PATIENCE, refused).await.expect("nobody listens");
}

#[tokio::test]
async fn programs_find_it_by_their_variables_also_for_this_machine() {
    let proxy = proxy(AllowedHosts::new());
    let environment = proxy.environment();
    let value = |name: &str| {
        let found = environment.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    };
    let (_, address) = proxy.doors_environment();
    assert!(address.ends_with(&format!("@127.0.0.1:{}", proxy.port())));
    for name in [
        "HTTPS_PROXY",
        "https_proxy",
        "HTTP_PROXY",
        "http_proxy",
        "ALL_PROXY",
    ] {
        assert_eq!(value(name), Some(address.as_str()), "{name}");
    }
    assert_eq!((value("NO_PROXY"), value("no_proxy")), (Some(""), Some("")));
}
