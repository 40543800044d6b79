//! Nobody outside is reached: not by network, and not by a socket of this machine, with a name in
//! a folder or without one. Each trick says its name to somebody who listens.

use std::{
    fs, io,
    io::Read,
    net::{TcpListener, TcpStream, UdpSocket},
    os::{
        linux::net::SocketAddrExt,
        unix::{
            fs::PermissionsExt,
            net::{SocketAddr, UnixDatagram, UnixListener, UnixStream},
        },
    },
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use tempfile::TempDir;

use super::tricks::{Goal, Left, Trick, Who, are_stopped};

/// Those who listen outside.
struct Listeners {
    tcp: TcpListener,
    tcp6: Option<TcpListener>,
    udp: UdpSocket,
    stream: UnixListener,
    datagram: UnixDatagram,
    unnamed: UnixListener,
    unnamed_datagram: UnixDatagram,
}

impl Listeners {
    /// Sockets without a name in a folder are named after those with one.
    fn new(folder: &Path) -> io::Result<Self> {
        let path = |name: &str| folder.join(name);
        let unnamed = |name: &str| {
            let name = path(name).display().to_string();
            SocketAddr::from_abstract_name(name)
        };
        let all = Self {
            tcp: TcpListener::bind("127.0.0.1:0")?,
            tcp6: TcpListener::bind("[::1]:0").ok(),
            udp: UdpSocket::bind("127.0.0.1:0")?,
            stream: UnixListener::bind(path("stream"))?,
            datagram: UnixDatagram::bind(path("datagram"))?,
            unnamed: UnixListener::bind_addr(&unnamed("stream")?)?,
            unnamed_datagram: UnixDatagram::bind_addr(&unnamed("datagram")?)?,
        };
        // Whoever tries it may be another user.
        for name in ["", "stream", "datagram"] {
            fs::set_permissions(path(name), fs::Permissions::from_mode(0o777))?;
        }
        all.tcp.set_nonblocking(true)?;
        all.tcp6
            .iter()
            .try_for_each(|tcp6| tcp6.set_nonblocking(true))?;
        all.udp.set_nonblocking(true)?;
        all.stream.set_nonblocking(true)?;
        all.datagram.set_nonblocking(true)?;
        all.unnamed.set_nonblocking(true)?;
        all.unnamed_datagram.set_nonblocking(true)?;
        Ok(all)
    }

    /// What came since it was last asked.
    fn heard(&self) -> String {
        let mut heard = String::new();
        let mut bytes = [0; 4096];
        let tcp6 = self.tcp6.iter().flat_map(TcpListener::incoming);
        for stream in self.tcp.incoming().map_while(Result::ok) {
            heard.push_str(&first_words(stream));
        }
        for stream in tcp6.map_while(Result::ok) {
            heard.push_str(&first_words(stream));
        }
        let streams = self.stream.incoming().map_while(Result::ok);
        for stream in streams.chain(self.unnamed.incoming().map_while(Result::ok)) {
            heard.push_str(&first_words(stream));
        }
        while let Ok(length) = self
            .udp
            .recv(&mut bytes)
            .or_else(|_| self.datagram.recv(&mut bytes))
            .or_else(|_| self.unnamed_datagram.recv(&mut bytes))
        {
            let said = bytes.get(..length).unwrap_or_default();
            heard.push_str(&format!("{}\n", String::from_utf8_lossy(said)));
        }
        heard
    }
}

trait Patient: Read {
    fn wait_at_most(&self, time: Duration) -> io::Result<()>;
}

impl Patient for TcpStream {
    fn wait_at_most(&self, time: Duration) -> io::Result<()> {
        self.set_nonblocking(false)?;
        self.set_read_timeout(Some(time))
    }
}

impl Patient for UnixStream {
    fn wait_at_most(&self, time: Duration) -> io::Result<()> {
        self.set_nonblocking(false)?;
        self.set_read_timeout(Some(time))
    }
}

/// What one who has connected says first. Then nobody listens any more, so that it does not wait.
fn first_words(mut stream: impl Patient) -> String {
    let mut bytes = [0; 4096];
    stream.wait_at_most(Duration::from_secs(5)).expect("a time");
    let length = stream.read(&mut bytes).unwrap_or(0);
    let said = bytes.get(..length).unwrap_or_default();
    format!("{}\n", String::from_utf8_lossy(said))
}

/// What those outside have heard when all tricks have run.
struct Heard {
    folder: TempDir,
    ports: [u16; 3],
    over: Arc<AtomicBool>,
    listening: Option<JoinHandle<String>>,
    said: String,
}

impl Heard {
    fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        let listeners = Listeners::new(folder.path()).expect("sockets");
        let port = |listener: &TcpListener| listener.local_addr().expect("its port").port();
        let ports = [
            port(&listeners.tcp),
            listeners.tcp6.as_ref().map_or(0, port),
            listeners.udp.local_addr().expect("its port").port(),
        ];
        let over = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&over);
        let listening = thread::spawn(move || {
            let mut said = String::new();
            // Asked before listening, so that nothing said before the end is missed.
            while !is_over.load(Ordering::Acquire) {
                said.push_str(&listeners.heard());
                thread::sleep(Duration::from_millis(2));
            }
            said + &listeners.heard()
        });
        Self {
            folder,
            ports,
            over,
            listening: Some(listening),
            said: String::new(),
        }
    }

    fn stop(&mut self) {
        self.over.store(true, Ordering::Release);
        if let Some(listening) = self.listening.take() {
            self.said = listening.join().unwrap_or_default();
        }
    }
}

impl Drop for Heard {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Goal for Heard {
    fn prepare(&mut self, name: &str, command: &str, _: Who) -> String {
        let folder = self.folder.path().display();
        let [tcp, tcp6, udp] = self.ports.map(|port| port.to_string());
        let filled = [
            ("{name}", name.to_owned()),
            ("{tcp}", tcp),
            ("{tcp6}", tcp6),
            ("{udp}", udp),
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
        self.stop();
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
    ("curl", "curl", "curl -sm 9 http://127.0.0.1:{tcp}/{name}; true"),
    ("curl_local", "curl", "curl -sm 9 --unix-socket {stream} http://x/{name}; true"),
    ("curl_unnamed", "curl", "curl -sm 9 --abstract-unix-socket {stream} http://x/{name}; true"),
    ("curl_gopher", "curl maybe", "curl -sm 9 gopher://127.0.0.1:{tcp}/1{name}; true"),
    ("curl_tftp", "curl maybe", "curl -sm 1 tftp://127.0.0.1:{udp}/{name}; true"),
    ("git_clone", "git", "timeout 9 git clone -q git://127.0.0.1:{tcp}/{name}; true"),
    ("openssl", "openssl", "timeout 9 openssl s_client -connect 127.0.0.1:{tcp} -servername {name}; true"),
    ("logger_udp", "logger", "logger -d -n 127.0.0.1 -P {udp} '{name}'"),
    ("logger_local", "logger", "logger -d -u {datagram} '{name}'"),
    ("wget", "wget", "wget -q -T 9 -t 1 -O - http://127.0.0.1:{tcp}/{name}; true"),
    ("netcat", "nc", "echo '{name}' | timeout 9 nc 127.0.0.1 {tcp}; true"),
    ("socat", "socat", "echo '{name}' | socat - UNIX-CONNECT:{stream}"),
    ("network_of_another", "root nsenter maybe", "nsenter -t 1 -n bash -c 'echo \"{name}\" > /dev/tcp/127.0.0.1/{tcp}'"),
];
