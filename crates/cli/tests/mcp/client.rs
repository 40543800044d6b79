//! A client that speaks JSON-RPC over pipes, in each era of the protocol.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::PathBuf,
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
    time::{Duration, Instant},
};

use asyncagents_scripted_model::{ModelServer, Recorded, Script};
use serde_json::{Value, json};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(30);

/// Versions that begin with `initialize`.
pub(crate) const OLDER: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// The version without a handshake: every request says what the client is.
pub(crate) const STATELESS: &str = "2026-07-28";

/// A home and a folder of its own, and a model that plays a script.
pub(crate) struct Home {
    folder: TempDir,
    model: ModelServer,
    runtime: tokio::runtime::Runtime,
}

impl Home {
    pub(crate) fn new(script: Script) -> Self {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let model = runtime
            .block_on(ModelServer::start(script))
            .expect("a port");
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["work", "home"] {
            fs::create_dir(folder.path().join(name)).expect("made");
        }
        Self {
            folder,
            model,
            runtime,
        }
    }

    /// A path below the folder that the server is started in.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("work").join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, text).expect("written");
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_asyncagents"));
        let config = format!("providers.test.base_url={}", self.model.url());
        command
            .current_dir(self.folder.path().join("work"))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.folder.path().join("home"))
            .env("ASYNCAGENTS_MODEL", "test/model")
            .env("ASYNCAGENTS_PERMISSIONS_MODE", "yolo")
            .env("ASYNCAGENTS_WORKER_LEASE", "600ms")
            .env("ASYNCAGENTS_WORKER_IDLE", "1s")
            .args(["-c", &config, "-c", "providers.test.wire=anthropic"])
            .args(args);
        command
    }

    /// A client that has connected as older ones do.
    pub(crate) fn client(&self) -> Client {
        self.client_of("2025-11-25", &[])
    }

    /// A client that has connected by this version of the protocol.
    pub(crate) fn client_of(&self, version: &str, args: &[&str]) -> Client {
        self.client_with(version, args, &[])
    }

    /// A client that has connected, and knows these extensions of the protocol.
    pub(crate) fn client_with(&self, version: &str, args: &[&str], extensions: &[&str]) -> Client {
        let args = [&["mcp"], args].concat();
        let mut client = Client::start(self.command(&args), version);
        for extension in extensions {
            client.capabilities["extensions"][extension] = json!({});
        }
        client.connect();
        client
    }

    /// Runs something on the runtime that the model is served by.
    pub(crate) fn block_on<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    /// Waits until the model has got such requests.
    pub(crate) fn wait_for(&self, what: impl Fn(&[Recorded]) -> bool) {
        let waited = async { tokio::time::timeout(PATIENCE, self.model.wait_for(what)).await };
        let waited = self.runtime.block_on(waited);
        waited.expect("the model never gets that request");
    }

    /// The command lines of the processes that run in this home's folder.
    pub(crate) fn processes(&self) -> Vec<String> {
        let processes = fs::read_dir("/proc").expect("processes").flatten();
        let ours = processes.filter(|process| {
            let environment = fs::read(process.path().join("environ")).unwrap_or_default();
            let home = format!("HOME={}", self.folder.path().join("home").display());
            String::from_utf8_lossy(&environment).contains(&home)
        });
        let lines = ours.map(|process| {
            let line = fs::read(process.path().join("cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).replace('\0', " ")
        });
        lines.filter(|line| !line.is_empty()).collect()
    }

    /// `text` without what differs from one test to the next.
    pub(crate) fn plain(&self, text: &str) -> String {
        let replace = |text: String, pattern: &str, with: &str| {
            let pattern = regex::Regex::new(pattern).expect("a pattern");
            pattern.replace_all(&text, with).into_owned()
        };
        let text = text.replace(&self.folder.path().display().to_string(), "HOME");
        let text = replace(text, r"task_[0-9a-f]+", "task_ID");
        let text = replace(
            text,
            r"\[asyncagents notice [^\]]+\]",
            "[asyncagents notice ID]",
        );
        let text = replace(text, r"\b[0-9.]+ ?m?s\b", "TIME");
        replace(text, r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UUID")
    }
}

/// Waits until something is so, looking again and again.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "never: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// What a tool answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) text: String,
    pub(crate) is_error: bool,
}

impl Answer {
    /// The ID of the task that it names first.
    pub(crate) fn task(&self) -> String {
        let found = regex::Regex::new("task_[0-9a-f]+").expect("a pattern");
        let found = found.find(&self.text);
        found.expect("a task's ID").as_str().to_owned()
    }
}

/// One connection.
pub(crate) struct Client {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Value>,
    version: String,
    /// What it says that it can do.
    capabilities: Value,
    requests: u64,
    /// Answers that came before somebody waited for them.
    answered: Vec<Value>,
    /// What the server sent unasked, in order.
    pub(crate) notified: Vec<Value>,
}

impl Client {
    pub(crate) fn start(mut command: Command, version: &str) -> Self {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::piped()).spawn().expect("starts");
        let (sender, lines) = channel();
        let output = BufReader::new(child.stdout.take().expect("an output"));
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let line = serde_json::from_str(&line).expect("only JSON is printed");
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self {
            input: child.stdin.take(),
            child,
            lines,
            version: version.to_owned(),
            capabilities: json!({}),
            requests: 0,
            answered: Vec::new(),
            notified: Vec::new(),
        }
    }

    /// Says who it is, as its version of the protocol wants it; returns what the server says of itself.
    pub(crate) fn connect(&mut self) -> Value {
        if self.version == STATELESS {
            return self.ask("server/discover", json!({}));
        }
        let hello = json!({
            "protocolVersion": self.version,
            "capabilities": self.capabilities,
            "clientInfo": {"name": "stories", "version": "1"},
        });
        let said = self.ask("initialize", hello);
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        said
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.send_line(&message.to_string());
    }

    pub(crate) fn send_line(&mut self, line: &str) {
        let input = self.input.as_mut().expect("the input is open");
        writeln!(input, "{line}").expect("sent");
        input.flush().expect("sent");
    }

    /// Sends a request; returns its ID.
    pub(crate) fn begin(&mut self, method: &str, mut params: Value) -> u64 {
        self.requests += 1;
        if self.version == STATELESS {
            params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(self.version);
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
                self.capabilities.clone();
            params["_meta"]["io.modelcontextprotocol/clientInfo"] =
                json!({"name": "stories", "version": "1"});
        }
        let id = self.requests;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// The next message, whatever it is.
    pub(crate) fn next(&mut self) -> Value {
        let next = self.lines.recv_timeout(PATIENCE);
        next.expect("the server says nothing")
    }

    /// The response to a request.
    pub(crate) fn response(&mut self, id: u64) -> Value {
        let is_it = |answer: &Value| answer["id"] == json!(id);
        if let Some(found) = self.answered.iter().position(is_it) {
            return self.answered.remove(found);
        }
        loop {
            let next = self.next();
            if is_it(&next) {
                return next;
            }
            if next.get("method").is_some() {
                self.notified.push(next);
            } else {
                self.answered.push(next);
            }
        }
    }

    /// Waits for something that the server says unasked.
    pub(crate) fn notification(&mut self, method: &str) -> Value {
        let is_it = |message: &Value| message["method"] == json!(method);
        if let Some(found) = self.notified.iter().position(is_it) {
            return self.notified.remove(found);
        }
        loop {
            let next = self.next();
            if is_it(&next) {
                return next;
            }
            self.answered.push(next);
        }
    }

    /// The responses that nobody has waited for.
    pub(crate) fn answered(&self) -> &[Value] {
        &self.answered
    }

    /// The whole response to a request: a result or an error.
    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        self.response(id)
    }

    /// The result of a request that must succeed.
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        let mut response = self.request(method, params);
        assert!(response.get("error").is_none(), "{method}: {response}");
        response["result"].take()
    }

    /// Calls a tool, whatever comes of it.
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Answer {
        let result = self.ask("tools/call", json!({"name": tool, "arguments": arguments}));
        answer(&result)
    }

    /// Calls a tool, which must succeed; returns what it says.
    pub(crate) fn done(&mut self, tool: &str, arguments: Value) -> Answer {
        let answer = self.call(tool, arguments);
        assert!(!answer.is_error, "{tool}: {}", answer.text);
        answer
    }

    /// Launches a task; returns what is said of it.
    pub(crate) fn launch(&mut self, description: &str, prompt: &str) -> Answer {
        let arguments = json!({"description": description, "prompt": prompt, "agent": "general"});
        self.done("task", arguments)
    }

    /// Calls a tool until what it says has this in it; returns that.
    pub(crate) fn call_until(&mut self, tool: &str, arguments: &Value, has: &str) -> String {
        let mut said = String::new();
        until(has, || {
            said = self.done(tool, arguments.clone()).text;
            said.contains(has)
        });
        said
    }

    /// Closes the connection; returns how the process ended.
    pub(crate) fn close(&mut self) -> ExitStatus {
        drop(self.input.take());
        let mut status = None;
        until("the server ends", || {
            status = self.child.try_wait().expect("asked");
            status.is_some()
        });
        status.expect("ended")
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a tool said, from the result of its call.
pub(crate) fn answer(result: &Value) -> Answer {
    let parts = result["content"].as_array().expect("content");
    let texts = parts.iter().filter_map(|part| part["text"].as_str());
    assert!(
        result.get("structuredContent").is_none(),
        "it would hide the text"
    );
    Answer {
        text: texts.collect::<Vec<_>>().join("\n"),
        is_error: result["isError"].as_bool().unwrap_or(false),
    }
}

/// JSON as people read it.
pub(crate) fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).expect("JSON")
}
