//! An agent that starts at once and asks its model one thing, the model, and a home in which it is a
//! host.

use std::{
    env, fs,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        Mutex,
        mpsc::{Receiver, channel},
    },
    thread,
    time::{Duration, Instant},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use tempfile::TempDir;

/// With this this program is the agent.
pub(crate) const WORD: &str = "play-an-agent";

/// After the commands that wait for something, before what is measured.
const PAUSE: Duration = Duration::from_millis(500);

/// A model that is asked over plain HTTP, and answers when it is told to.
pub(crate) struct FakeModel {
    address: String,
    requests: Receiver<(Instant, TcpStream)>,
    open: Mutex<Vec<TcpStream>>,
}

impl FakeModel {
    pub(crate) fn listen() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound").to_string();
        let (sender, requests) = channel();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.expect("a connection");
                let mut first = [0];
                let read = stream.read_exact(&mut first);
                if read.is_ok() && sender.send((Instant::now(), stream)).is_err() {
                    return;
                }
            }
        });
        Self {
            address,
            requests,
            open: Mutex::default(),
        }
    }

    /// When the next request comes, or has come.
    pub(crate) fn next_request(&self) -> Instant {
        let (when, stream) = self.requests.recv().expect("a request");
        self.open.lock().expect("not poisoned").push(stream);
        when
    }

    pub(crate) fn answer_all(&self) {
        for mut stream in self.open.lock().expect("not poisoned").drain(..) {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
        }
    }
}

/// The agent, outside of asyncagents.
pub(crate) fn command(model: &FakeModel) -> Command {
    let mut command = Command::new(env::current_exe().expect("a path"));
    command.args([WORD, &model.address]).env_clear();
    command
}

/// Speaks the protocol on standard input and output, until the former ends.
pub(crate) fn play(model: &str) {
    let mut output = std::io::stdout();
    for line in std::io::stdin().lock().lines() {
        let request: Value = serde_json::from_str(&line.expect("text")).expect("JSON");
        let result = match request["method"].as_str() {
            Some("initialize") => json!({"protocolVersion": 1, "agentCapabilities": {}}),
            Some("session/new") => json!({"sessionId": "one"}),
            Some("session/prompt") => {
                ask(model);
                json!({"stopReason": "end_turn"})
            }
            _ => continue,
        };
        let answer = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
        writeln!(output, "{answer}").expect("sent");
        output.flush().expect("sent");
    }
}

/// Asks the model, through the proxy where there is one, and waits for the answer.
fn ask(model: &str) {
    let proxy = env::var("HTTP_PROXY").unwrap_or_default();
    let (at, login) = match proxy
        .strip_prefix("http://")
        .and_then(|it| it.split_once('@'))
    {
        Some((login, at)) => {
            let login = STANDARD.encode(login);
            (at, format!("proxy-authorization: Basic {login}\r\n"))
        }
        None => (model, String::new()),
    };
    let mut stream = TcpStream::connect(at.trim_end_matches('/')).expect("connected");
    let head = format!(
        "POST http://{model}/ HTTP/1.1\r\nhost: {model}\r\n{login}content-length: 0\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).expect("sent");
    let mut answer = BufReader::new(stream);
    let _ = answer.read_line(&mut String::new());
}

/// A home in which the agent is a host, called `fake`.
pub(crate) struct FakeWorld(TempDir);

impl FakeWorld {
    pub(crate) fn new(model: &FakeModel, at_once: usize) -> Self {
        let world = Self(tempfile::tempdir().expect("a folder"));
        let program = env::current_exe().expect("a path");
        let address = &model.address;
        let settings = format!(
            "[limits]\nagents = {at_once}\n[worker]\nidle = \"1h\"\n[hosts.fake]\n\
             command = [{program:?}, {WORD:?}, {address:?}]\nservers = [\"http://{address}\"]\n"
        );
        let folder = world.0.path().join(".config/asyncagents");
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("asyncagents.toml"), settings).expect("written");
        fs::create_dir(world.0.path().join("project")).expect("a folder");
        world
    }

    pub(crate) fn project(&self) -> &Path {
        self.0.path()
    }

    fn asyncagents(&self, arguments: &[&str]) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_asyncagents"));
        command
            .current_dir(self.0.path().join("project"))
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", self.0.path())
            .args(arguments)
            .stdin(Stdio::null());
        let done = command.output().expect("runs");
        assert!(done.status.success(), "{done:?}");
        String::from_utf8(done.stdout).expect("text")
    }

    pub(crate) fn launch(&self, prompt: &str) {
        self.asyncagents(&["task", "--host", "fake", prompt]);
    }

    pub(crate) fn until_idle(&self) {
        let running = ["list", "--json", "--status", "running"];
        while self.asyncagents(&running).contains("\"id\"") {
            thread::sleep(Duration::from_millis(20));
        }
        // The worker hears each of these commands, and does not look for ever more often.
        thread::sleep(PAUSE);
    }

    /// The worker that the first launch has started.
    pub(crate) fn worker(&self) -> u32 {
        let data: PathBuf = self.0.path().join(".local/share/asyncagents");
        let lock = fs::read_to_string(data.join("asyncagents.db.worker.lock")).expect("a worker");
        let process = lock.split(' ').next().unwrap_or_default();
        process.parse().expect("a number")
    }
}

impl Drop for FakeWorld {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.worker().to_string()).status();
    }
}
