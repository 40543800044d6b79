//! What an agent reaches of the network: one port.

use std::{
    io::Read,
    net::{TcpListener, TcpStream, UdpSocket},
    time::Duration,
};

use asyncagents_tools::{AgentFiles, AgentLimits, AgentNetwork};

use super::started::{Site, only};
use crate::workbench::{HELPER, can_sandbox};

fn listener() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("it does not wait");
    let port = listener.local_addr().expect("its port").port();
    (listener, port)
}

fn heard(listener: &TcpListener) -> String {
    let mut heard = String::new();
    let accepted = listener.accept();
    let Ok((stream, _)): std::io::Result<(TcpStream, _)> = accepted else {
        return heard;
    };
    stream.set_nonblocking(false).expect("it waits");
    stream
        .set_read_timeout(Some(Duration::from_secs(5)))
        .expect("not for ever");
    let mut stream = stream;
    // What was said before a connection broke was said.
    let _ = stream.read_to_string(&mut heard);
    heard
}

#[tokio::test]
async fn it_connects_to_the_port_of_its_proxy_and_to_no_other() {
    if !can_sandbox() {
        return;
    }
    let site = Site::new();
    let ((proxy, port), (other, other_port)) = (listener(), listener());
    let limits = || site.limits(&AgentFiles::default(), only(port));
    let (address, other_address) = (
        format!("127.0.0.1:{port}"),
        format!("127.0.0.1:{other_port}"),
    );
    let (_, complained, ended) = site
        .run(Some(limits()), &[HELPER, "tcp", &address, "hello"])
        .await;
    assert_eq!(ended, "exited with code 0", "{complained}");
    assert_eq!(heard(&proxy), "hello");
    for how in ["tcp", "mptcp", "fast-open"] {
        let words = [HELPER, how, other_address.as_str(), how];
        let (_, complained, ended) = site.run(Some(limits()), &words).await;
        assert_eq!(ended, "exited with code 1", "{how}");
        assert!(complained.contains("ermi"), "{how}: {complained}");
        assert_eq!(heard(&other), "", "{how}");
        // Without the sandbox it is a way out, where this machine has it.
        let (_, complained, ended) = site.run(None, &words).await;
        match ended.as_str() {
            "exited with code 0" => assert_eq!(heard(&other), how),
            _ => println!("skipped: {how}: {complained}"),
        }
    }
}

#[tokio::test]
async fn nothing_but_tcp_is_there_and_nobody_can_come() {
    if !can_sandbox() {
        return;
    }
    let site = Site::new();
    let udp = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let address = udp.local_addr().expect("its port").to_string();
    let unix = site.workspace.join("socket");
    let _listens = std::os::unix::net::UnixListener::bind(&unix).expect("a socket");
    let unix = unix.display().to_string();
    for words in [
        &["udp", &address, "hello"][..],
        &["stream", &unix, "hello"],
        &["bind", "127.0.0.1:0"],
        &["listen"],
    ] {
        let words: Vec<&str> = [&[HELPER], words].concat();
        let (_, complained, ended) = site.run(None, &words).await;
        assert_eq!(
            ended, "exited with code 0",
            "{words:?} without: {complained}"
        );
        let (_, _, ended) = site.run(Some(site.usual_limits()), &words).await;
        assert_eq!(ended, "exited with code 1", "{words:?}");
    }
}

#[tokio::test]
async fn it_listens_on_the_port_that_it_is_given() {
    if !can_sandbox() {
        return;
    }
    let site = Site::new();
    let [(first, free), (second, other)] = [listener(), listener()];
    drop((first, second));
    let network = AgentNetwork::Only {
        port: 1,
        listens: Some(free),
    };
    let limits = |network| -> AgentLimits { site.limits(&AgentFiles::default(), network) };
    for (port, code) in [(free, 0), (other, 1)] {
        let address = format!("127.0.0.1:{port}");
        let words = [HELPER, "bind", &address];
        let (_, complained, ended) = site.run(Some(limits(network)), &words).await;
        assert_eq!(ended, format!("exited with code {code}"), "{complained}");
    }
}
