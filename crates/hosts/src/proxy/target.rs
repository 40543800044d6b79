//! Which server a request is for. Names are read strictly: a name that one program takes for an
//! address and another for a name is none.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use super::door::Door;

/// The port under which our doors are reached.
const DOOR_PORT: u16 = 1;

/// A server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) host: HostName,
    pub(super) port: u16,
}

/// The name of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HostName {
    /// In lower case, without the dot at its end.
    Name(String),
    Address(IpAddr),
}

impl Target {
    /// Reads `host:port`. Without a port it is the usual one, if there is one.
    pub(super) fn parse(text: &str, usual_port: Option<u16>) -> Option<Self> {
        let (host, port) = match text.rsplit_once(':') {
            // The colon is within an address: `[::1]`.
            Some((_, rest)) if rest.contains(']') => (text, None),
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        };
        let port = match port {
            // No sign, as `parse` would take.
            Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => port.parse().ok()?,
            Some(_) => return None,
            None => usual_port?,
        };
        Some(Self {
            host: HostName::parse(host)?,
            port,
        })
    }

    /// The door of ours that is meant, if it is no server.
    pub(super) fn door(&self) -> Option<Door> {
        let mut doors = [Door::Tools, Door::Permissions].into_iter();
        doors.find(|door| *self == Self::of_door(*door))
    }

    pub(super) fn of_door(door: Door) -> Self {
        Self {
            host: HostName::Name(door.host().to_owned()),
            port: DOOR_PORT,
        }
    }
}

impl Door {
    /// The name under which it is reached. It is no host: nothing is looked up.
    fn host(self) -> &'static str {
        match self {
            Door::Tools => "asyncagents.tools",
            Door::Permissions => "asyncagents.permissions",
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl HostName {
    /// Reads a name, an IPv4 address in its one usual form, or an IPv6 address in brackets.
    pub(super) fn parse(text: &str) -> Option<Self> {
        if let Some(address) = text.strip_prefix('[') {
            let address: Ipv6Addr = address.strip_suffix(']')?.parse().ok()?;
            return Some(Self::Address(address.to_canonical()));
        }
        if let Ok(address) = text.parse::<Ipv4Addr>() {
            return Some(Self::Address(address.into()));
        }
        let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
        is_name(&name).then_some(Self::Name(name))
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HostName::Name(name) => f.write_str(name),
            HostName::Address(IpAddr::V4(address)) => address.fmt(f),
            HostName::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

fn is_name(name: &str) -> bool {
    let is_label = |label: &str| {
        let known = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        !label.is_empty() && label.len() <= 63 && label.bytes().all(known)
    };
    // `127.1`, `2130706433` and `0x7f000001` are addresses to the C library.
    let last = name.rsplit('.').next().unwrap_or_default();
    let is_number = last.bytes().all(|byte| byte.is_ascii_digit()) || last.starts_with("0x");
    name.len() <= 253 && name.split('.').all(is_label) && !is_number
}

/// Whether an address is one of the internet: not of this machine, nor of a network around it.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [first, second, ..] = address.octets();
    let is_shared = first == 100 && (64..128).contains(&second);
    let is_local = address.is_private() || address.is_loopback() || address.is_link_local();
    // From 224 on: for many at once, and for nobody.
    !(is_local || is_shared || first == 0 || first >= 224)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [first, second, third, .., seventh, eighth] = address.segments();
    let v4 = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        Ipv4Addr::new(a, b, c, d)
    };
    match (first, second) {
        // IPv4 in other clothes: translated, and 6to4.
        (0x64, 0xff9b) => is_public_v4(v4(seventh, eighth)),
        (0x2002, _) => is_public_v4(v4(second, third)),
        // What is given out at all.
        _ => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::{Target, is_public};

    /// What is shown as one server is asked for as that server.
    #[test]
    fn servers_are_read_strictly() {
        for (text, read) in [
            ("api.example.com:443", Some("api.example.com:443")),
            ("API.Example.COM.:8443", Some("api.example.com:8443")),
            ("127.0.0.1:80", Some("127.0.0.1:80")),
            ("[::1]:80", Some("[::1]:80")),
            ("[::ffff:127.0.0.1]:80", Some("127.0.0.1:80")),
            ("host", Some("host:443")),
            ("[::1]", Some("[::1]:443")),
            ("2130706433:80", None),
            ("0x7f000001:80", None),
            ("0x7f.1:80", None),
            ("127.1:80", None),
            ("127.0.0.01:80", None),
            ("0177.0.0.1:80", None),
            ("api.example.com@evil.com:443", None),
            ("evil.com#.example.com:443", None),
            ("evil.com/.example.com:443", None),
            ("evil.com\0.example.com:443", None),
            ("evil.com%00.example.com:443", None),
            ("exa mple.com:443", None),
            ("éxample.com:443", None),
            ("a..b:443", None),
            (".example.com:443", None),
            (":443", None),
            ("", None),
            ("host:+443", None),
            ("host:", None),
            ("host:65536", None),
            ("::1:80", None),
            ("[fe80::1%eth0]:80", None),
        ] {
            let parsed = Target::parse(text, Some(443)).map(|target| target.to_string());
            assert_eq!(parsed.as_deref(), read, "{text}");
        }
        assert_eq!(Target::parse("host", None), None);
    }

    #[test]
    fn addresses_of_the_internet_and_others() {
        let public = [
            "1.1.1.1",
            "160.79.104.10",
            "2606:4700::1",
            "64:ff9b::101:101",
        ];
        for address in public {
            assert!(is_public(address.parse().expect("an address")), "{address}");
        }
        let others = [
            "127.0.0.1",
            "127.8.8.8",
            "0.0.0.0",
            "10.0.0.1",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:10.0.0.1",
            "::7f00:1",
            "fd00::1",
            "fe80::1",
            "ff02::1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
        ];
        for address in others {
            assert!(
                !is_public(address.parse().expect("an address")),
                "{address}"
            );
        }
    }
}
