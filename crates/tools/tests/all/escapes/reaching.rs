//! Nobody outside is reached: not by network, and not by a socket of this machine, with a name in
//! a folder or without one. Each trick says its name to somebody who listens.

use std::{
    fs,
    io::Read,
    net::{TcpListener, UdpSocket},
    os::{
        linux::net::SocketAddrExt,
        unix::{
            fs::PermissionsExt,
            net::{SocketAddr, UnixDatagram, UnixListener},
        },
    },
    path::PathBuf,
    time::Duration,
};

use tempfile::TempDir;

use super::tricks::{Goal, Left, Trick, Who, are_stopped};

/// Long enough for what was sent before.
const PATIENCE: Duration = Duration::from_millis(200);

/// Those who listen outside, and what they have heard.
struct Heard {
    tcp: TcpListener,
    tcp6: Option<TcpListener>,
    udp: UdpSocket,
    stream: UnixListener,
    datagram: UnixDatagram,
    unnamed: UnixListener,
    unnamed_datagram: UnixDatagram,
    folder: TempDir,
    said: String,
}

impl Heard {
    fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        let open = |path: PathBuf| {
            fs::set_permissions(path, fs::Permissions::from_mode(0o777)).expect("ours");
        };
        let unnamed = |kind| {
            let name = format!("{}/{kind}", folder.path().display());
            SocketAddr::from_abstract_name(name).expect("a name")
        };
        let heard = Self {
            tcp: TcpListener::bind("127.0.0.1:0").expect("a port"),
            tcp6: TcpListener::bind("[::1]:0").ok(),
            udp: UdpSocket::bind("127.0.0.1:0").expect("a port"),
            stream: UnixListener::bind(path("stream")).expect("a socket"),
            datagram: UnixDatagram::bind(path("datagram")).expect("a socket"),
            unnamed: UnixListener::bind_addr(&unnamed("stream")).expect("a socket"),
            unnamed_datagram: UnixDatagram::bind_addr(&unnamed("datagram")).expect("a socket"),
            said: String::new(),
            folder,
        };
        for name in ["", "stream", "datagram"] {
            open(heard.folder.path().join(name));
        }
        heard.tcp.set_nonblocking(true).expect("nonblocking");
        if let Some(tcp6) = &heard.tcp6 {
            tcp6.set_nonblocking(true).expect("nonblocking");
        }
        heard.stream.set_nonblocking(true).expect("nonblocking");
        heard.unnamed.set_nonblocking(true).expect("nonblocking");
        heard.udp.set_nonblocking(true).expect("nonblocking");
        heard.datagram.set_nonblocking(true).expect("nonblocking");
        let quiet = heard.unnamed_datagram.set_nonblocking(true);
        quiet.expect("nonblocking");
        heard
    }

    /// Takes in all that was said until now.
    fn listen(&mut self) {
        let tcp6 = self
            .tcp6
            .iter()
            .flat_map(|tcp6| tcp6.incoming().map_while(Result::ok));
        for mut stream in self.tcp.incoming().map_while(Result::ok).chain(tcp6) {
            stream.set_nonblocking(false).expect("blocking");
            stream.set_read_timeout(Some(PATIENCE)).expect("a time");
            self.said.push_str(&all_of(&mut stream));
        }
        let streams = self.stream.incoming().map_while(Result::ok);
        for mut stream in streams.chain(self.unnamed.incoming().map_while(Result::ok)) {
            stream.set_nonblocking(false).expect("blocking");
            stream.set_read_timeout(Some(PATIENCE)).expect("a time");
            self.said.push_str(&all_of(&mut stream));
        }
        let mut bytes = [0; 4096];
        while let Ok(length) = self
            .udp
            .recv(&mut bytes)
            .or_else(|_| self.datagram.recv(&mut bytes))
            .or_else(|_| self.unnamed_datagram.recv(&mut bytes))
        {
            let said = bytes.get(..length).unwrap_or_default();
            self.said
                .push_str(&format!("{}\n", String::from_utf8_lossy(said)));
        }
    }
}

/// What comes until the end, or until nothing comes.
fn all_of(stream: &mut impl Read) -> String {
    let mut bytes = Vec::new();
    // What was read before the time was over is kept.
    stream.read_to_end(&mut bytes).ok();
    format!("{}\n", String::from_utf8_lossy(&bytes))
}

impl Goal for Heard {
    fn prepare(&mut self, name: &str, command: &str, _: Who) -> String {
        let port = |listener: &TcpListener| listener.local_addr().expect("its port").port();
        let folder = self.folder.path().display();
        let filled = [
            ("{name}", name.to_owned()),
            ("{tcp}", port(&self.tcp).to_string()),
            ("{tcp6}", self.tcp6.as_ref().map_or(0, port).to_string()),
            (
                "{udp}",
                self.udp.local_addr().expect("its port").port().to_string(),
            ),
            ("{stream}", format!("{folder}/stream")),
            ("{datagram}", format!("{folder}/datagram")),
        ];
        filled
            .iter()
            .fold(command.to_owned(), |command, (key, value)| {
                command.replace(key, value)
            })
    }

    fn got_out(&mut self, left: &Left) -> bool {
        self.listen();
        let apart = |c: char| !c.is_alphanumeric() && c != '_';
        self.said.split(apart).any(|word| word == left.name)
    }
}

#[test]
fn nobody_outside_is_reached() {
    are_stopped("reaching", TRICKS, Heard::new);
}

#[rustfmt::skip]
const TRICKS: &[Trick] = &[
    ("shell_tcp", "", "echo '{name}' > /dev/tcp/127.0.0.1/{tcp}"),
    ("shell_tcp_by_name", "maybe", "echo '{name}' > /dev/tcp/localhost/{tcp}"),
    ("shell_tcp6", "maybe", "echo '{name}' > /dev/tcp/::1/{tcp6}"),
    ("shell_udp", "", "echo '{name}' > /dev/udp/127.0.0.1/{udp}"),
    ("perl_tcp", "perl", "perl -MIO::Socket::INET -e 'print {IO::Socket::INET->new(q(127.0.0.1:{tcp}))} q({name})'"),
    ("perl_udp", "perl", "perl -MIO::Socket::INET -e 'print {IO::Socket::INET->new(PeerAddr => q(127.0.0.1:{udp}), Proto => q(udp))} q({name})'"),
    ("perl_local", "perl", "perl -MIO::Socket::UNIX -e 'print {IO::Socket::UNIX->new(q({stream}))} q({name})'"),
    ("perl_unnamed", "perl", "perl -MSocket -e 'socket S, AF_UNIX, SOCK_STREAM, 0; connect S, pack_sockaddr_un(qq(\\0{stream})); syswrite S, q({name})'"),
    ("python_tcp", "python3", "python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {tcp})).send(b\"{name}\")'"),
    ("python_all_addresses", "python3", "python3 -c 'import socket; socket.create_connection((\"0.0.0.0\", {tcp})).send(b\"{name}\")'"),
    ("python_fast_open", "python3 maybe", "python3 -c 'import socket; socket.socket().sendto(b\"{name}\", 0x20000000, (\"127.0.0.1\", {tcp}))'"),
    ("python_mapped", "python3 maybe", "python3 -c 'import socket; s = socket.socket(socket.AF_INET6); s.connect((\"::ffff:127.0.0.1\", {tcp})); s.send(b\"{name}\")'"),
    ("python_many_paths", "python3 maybe", "python3 -c 'import socket; s = socket.socket(2, 1, 262); s.connect((\"127.0.0.1\", {tcp})); s.send(b\"{name}\")'"),
    ("python_udp", "python3", "python3 -c 'import socket; socket.socket(2, 2).sendto(b\"{name}\", (\"127.0.0.1\", {udp}))'"),
    ("python_local", "python3", "python3 -c 'import socket; s = socket.socket(1); s.connect(\"{stream}\"); s.send(b\"{name}\")'"),
    ("python_unnamed", "python3", "python3 -c 'import socket; s = socket.socket(1); s.connect(\"\\0{stream}\"); s.send(b\"{name}\")'"),
    ("python_datagram", "python3", "python3 -c 'import socket; socket.socket(1, 2).sendto(b\"{name}\", \"{datagram}\")'"),
    ("python_unnamed_datagram", "python3", "python3 -c 'import socket; socket.socket(1, 2).sendto(b\"{name}\", \"\\0{datagram}\")'"),
    ("python_one_of_a_pair", "python3", "python3 -c 'import socket; socket.socketpair(1, 2)[0].sendto(b\"{name}\", \"{datagram}\")'"),
    ("python_raw_pair", "python3", "python3 -c 'import socket; socket.socketpair(1, 3)[0].sendto(b\"{name}\", \"{datagram}\")'"),
    ("python_pair_connected", "python3", "python3 -c 'import socket; s = socket.socketpair(1, 2)[0]; s.connect(\"{datagram}\"); s.send(b\"{name}\")'"),
    ("python_quiet_pair", "python3", "python3 -c 'import socket; socket.socketpair(1, 2 | 0x800 | 0x80000)[0].sendto(b\"{name}\", \"{datagram}\")'"),
    ("helper_stream", "", "{helper} stream {stream} '{name}'"),
    ("helper_datagram", "", "{helper} datagram {datagram} '{name}'"),
    ("helper_pair", "", "{helper} pair {datagram} '{name}'"),
    ("node_tcp", "node", "node -e 'net.connect({tcp}, \"127.0.0.1\").end(\"{name}\", () => process.exit())'"),
    ("node_local", "node", "node -e 'net.connect(\"{stream}\").end(\"{name}\", () => process.exit())'"),
    ("curl", "curl", "curl -sm 0.3 http://127.0.0.1:{tcp}/{name}; true"),
    ("curl_local", "curl", "curl -sm 0.3 --unix-socket {stream} http://x/{name}; true"),
    ("curl_unnamed", "curl", "curl -sm 0.3 --abstract-unix-socket {stream} http://x/{name}; true"),
    ("curl_gopher", "curl maybe", "curl -sm 0.3 gopher://127.0.0.1:{tcp}/1{name}; true"),
    ("curl_tftp", "curl maybe", "curl -sm 0.3 tftp://127.0.0.1:{udp}/{name}; true"),
    ("git_clone", "git", "timeout 0.3 git clone -q git://127.0.0.1:{tcp}/{name}; true"),
    ("openssl", "openssl", "timeout 0.3 openssl s_client -connect 127.0.0.1:{tcp} -servername {name}; true"),
    ("logger_udp", "logger", "logger -d -n 127.0.0.1 -P {udp} '{name}'"),
    ("logger_local", "logger", "logger -d -u {datagram} '{name}'"),
    ("wget", "wget", "wget -q -T 0.3 -t 1 -O - http://127.0.0.1:{tcp}/{name}; true"),
    ("netcat", "nc", "echo '{name}' | timeout 0.3 nc 127.0.0.1 {tcp}; true"),
    ("socat", "socat", "echo '{name}' | socat - UNIX-CONNECT:{stream}"),
    ("network_of_another", "root nsenter maybe", "nsenter -t 1 -n bash -c 'echo \"{name}\" > /dev/tcp/127.0.0.1/{tcp}'"),
];
