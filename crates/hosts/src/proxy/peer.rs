//! Whose a connection is, as Linux tells it. Other systems do not.

use std::{fs, net::SocketAddr};

use rustix::process::geteuid;

use crate::opencode2::ports::address;

/// Whether a connection comes from a process of another user of this machine: those could hold all that
/// there are, without the login.
pub(super) fn is_another_users(peer: SocketAddr) -> bool {
    let table = fs::read_to_string("/proc/net/tcp").unwrap_or_default();
    let user = table.lines().find_map(|line| user_of(line, peer));
    user.is_some_and(|user| user != geteuid().as_raw())
}

/// Who has the socket of a line of `/proc/net/tcp`, if it is at this address.
fn user_of(line: &str, at: SocketAddr) -> Option<u32> {
    let mut fields = line.split_whitespace();
    let (ip, port) = fields.nth(1)?.split_once(':')?;
    let is_it = u16::from_str_radix(port, 16) == Ok(at.port()) && address(ip) == Some(at.ip());
    let user = fields.nth(5)?;
    is_it.then(|| user.parse().ok()).flatten()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_connection_of_ours_is_no_other_users() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let at = listener.local_addr().expect("bound");
        let ours = TcpStream::connect(at).expect("it listens");
        let ours = ours.local_addr().expect("connected");
        let table = fs::read_to_string("/proc/net/tcp").expect("read");
        let user = table.lines().find_map(|line| user_of(line, ours));
        assert_eq!(user, Some(geteuid().as_raw()));
        assert!(!is_another_users(ours));
    }
}
