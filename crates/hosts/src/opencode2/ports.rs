//! Where a process listens, as Linux tells it. Other systems do not.

use std::{
    collections::HashSet,
    fs,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

/// The state of a socket that waits for connections.
const LISTEN: &str = "0A";

/// Whether programs on this machine reach a process at an address; nothing on a system that does
/// not say so of any process. One that Linux hides, as a process of another user or one that keeps
/// secrets, is reached nowhere.
pub(super) fn is_reached(pid: u32, at: SocketAddr) -> Option<bool> {
    match listening(pid) {
        Some(places) => Some(places.contains(&at)),
        None => sockets(std::process::id()).map(|_| false),
    }
}

/// The addresses at which programs on this machine reach a process; nothing if the system does not
/// say so.
pub fn listening(pid: u32) -> Option<Vec<SocketAddr>> {
    let sockets = sockets(pid)?;
    let mut found = Vec::new();
    for table in ["tcp", "tcp6"] {
        // Without IPv6 there is no second table.
        let lines = fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap_or_default();
        let local = lines.lines().filter_map(|line| listener(line, &sockets));
        found.extend(local.filter_map(reached_here));
    }
    Some(found)
}

/// The numbers of a process's sockets.
fn sockets(pid: u32) -> Option<HashSet<String>> {
    let files = fs::read_dir(format!("/proc/{pid}/fd")).ok()?.flatten();
    let targets = files.filter_map(|file| fs::read_link(file.path()).ok());
    let number = |target: std::path::PathBuf| {
        let text = target.to_str()?.strip_prefix("socket:[")?;
        text.strip_suffix(']').map(str::to_owned)
    };
    Some(targets.filter_map(number).collect())
}

/// The address in a line of `/proc/PID/net/tcp`, if it is one of these sockets that listens.
fn listener(line: &str, sockets: &HashSet<String>) -> Option<SocketAddr> {
    let mut fields = line.split_whitespace();
    let local = fields.nth(1)?;
    let state = fields.nth(1)?;
    let socket = fields.nth(5)?;
    if state != LISTEN || !sockets.contains(socket) {
        return None;
    }
    let (ip, port) = local.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    Some(SocketAddr::new(address(ip)?, port))
}

/// An address as the kernel prints it: words of the machine's own byte order.
pub(crate) fn address(hex: &str) -> Option<IpAddr> {
    let word = |text: &str| u32::from_str_radix(text, 16).ok().map(u32::to_ne_bytes);
    match hex.len() {
        8 => Some(Ipv4Addr::from(word(hex)?).into()),
        32 => {
            let mut bytes = [0; 16];
            for (place, start) in (0..32).step_by(8).enumerate() {
                let four = word(hex.get(start..start + 8)?)?;
                bytes[place * 4..place * 4 + 4].copy_from_slice(&four);
            }
            Some(Ipv6Addr::from(bytes).to_canonical())
        }
        _ => None,
    }
}

/// How a listener is reached from this machine without leaving it.
fn reached_here(at: SocketAddr) -> Option<SocketAddr> {
    let ip = match at.ip() {
        ip if ip.is_loopback() => ip,
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        _ => return None,
    };
    Some(SocketAddr::new(ip, at.port()))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_process_is_found_where_it_listens_and_nowhere_else() {
        let pid = std::process::id();
        let (one, two) = (
            TcpListener::bind("127.0.0.1:0").expect("a port"),
            TcpListener::bind("0.0.0.0:0").expect("a port"),
        );
        let (one, two) = (
            one.local_addr().expect("bound"),
            two.local_addr().expect("bound"),
        );
        let found = listening(pid).expect("it is our own");
        // Where others may come from, too, it is reached at this machine's own address.
        let two = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), two.port());
        assert!(found.contains(&one) && found.contains(&two), "{found:?}");
        let closed = {
            let closing = TcpListener::bind("127.0.0.1:0").expect("a port");
            closing.local_addr().expect("bound")
        };
        assert!(!listening(pid).expect("it is our own").contains(&closed));
        assert!(listening(u32::MAX).is_none());
        assert_eq!(is_reached(pid, one), Some(true));
        assert_eq!(is_reached(pid, closed), Some(false));
        // The system tells of processes, and not of this one.
        assert_eq!(is_reached(u32::MAX, one), Some(false));
    }

    #[test]
    fn addresses_are_read_as_the_kernel_prints_them() {
        let v4 = u32::from_ne_bytes([127, 0, 0, 1]);
        assert_eq!(
            address(&format!("{v4:08X}")),
            Some(Ipv4Addr::LOCALHOST.into())
        );
        let last = u32::from_ne_bytes([0, 0, 0, 1]);
        let v6 = format!("{:024X}{last:08X}", 0);
        assert_eq!(address(&v6), Some(Ipv6Addr::LOCALHOST.into()));
        for nonsense in ["", "7F", "ÄÄÄÄ", &"é".repeat(16)] {
            assert_eq!(address(nonsense), None);
        }
    }
}
