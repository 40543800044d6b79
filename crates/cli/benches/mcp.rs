//! How soon `asyncagents mcp` answers after its start, and how many calls a second it answers.
//!
//! `cargo bench -p asyncagents --bench mcp` prints what is in `docs/benchmarks.md`.
#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a benchmark talks to a person and has nobody to hand an error to"
)]

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use asyncagents_scripted_model::{ModelServer, Reply, Script, When};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;

const STARTS: usize = 40;
/// Calls of each kind, and how many are under way at once.
const CALLS: usize = 20_000;
const AT_ONCE: usize = 32;
/// Tasks of the session that `list` shows.
const TASKS: usize = 20;

/// A home, and a model for the tasks.
struct Place {
    folder: TempDir,
    model: ModelServer,
}

/// A client that says which version of the protocol it speaks in every request, or has said so once.
struct Client {
    server: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    stateless: bool,
}

fn main() {
    let runtime = Runtime::new().expect("a runtime");
    let script = Script::new().rule(When::always(), Reply::text("done"));
    let model = runtime.block_on(ModelServer::start(script));
    let place = Place {
        folder: TempDir::new().expect("a folder"),
        model: model.expect("a port"),
    };
    println!("| from the start of the process | median | [best] | most |");
    println!("|---|---|---|---|");
    // The first makes the database.
    place.connect(false);
    starts(&place, "`initialize` answered", false);
    starts(&place, "`server/discover` answered", true);
    println!("\n| calls over stdio, {AT_ONCE} at once | calls/s |");
    println!("|---|---|");
    let mut client = place.connect(false);
    calls(&mut client, "`list`, no tasks", "list", &json!({}), AT_ONCE);
    let task = launch(&mut client);
    calls(
        &mut client,
        &format!("`list`, {TASKS} tasks"),
        "list",
        &json!({}),
        AT_ONCE,
    );
    let of_task = json!({"task_id": task});
    calls(
        &mut client,
        "`output` of a task",
        "output",
        &of_task,
        AT_ONCE,
    );
    calls(
        &mut client,
        "`output`, one after the other",
        "output",
        &of_task,
        1,
    );
}

impl Place {
    /// A client that has connected.
    fn connect(&self, stateless: bool) -> Client {
        self.timed(stateless).0
    }

    fn timed(&self, stateless: bool) -> (Client, Duration) {
        let base = format!("providers.test.base_url={}", self.model.url());
        let mut command = Command::new(env!("CARGO_BIN_EXE_asyncagents"));
        command
            .current_dir(self.folder.path())
            .env_clear()
            .env("HOME", self.folder.path())
            .args(["-c", &base, "-c", "providers.test.wire=anthropic"])
            .args(["-c", "model=test/model", "-c", "worker.idle=1s", "mcp"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let begun = Instant::now();
        let mut server = command.spawn().expect("starts");
        let mut client = Client {
            input: server.stdin.take().expect("an input"),
            output: BufReader::new(server.stdout.take().expect("an output")),
            server,
            stateless,
        };
        if stateless {
            client.send(0, "server/discover", json!({}));
        } else {
            let hello = json!({
                "protocolVersion": "2025-11-25", "capabilities": {},
                "clientInfo": {"name": "bench", "version": "1"},
            });
            client.send(0, "initialize", hello);
        }
        client.receive();
        let took = begun.elapsed();
        if !stateless {
            let done = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
            writeln!(client.input, "{done}").expect("sent");
        }
        (client, took)
    }
}

impl Client {
    fn send(&mut self, id: usize, method: &str, mut params: Value) {
        if self.stateless {
            let meta = &mut params["_meta"];
            meta["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
            meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
            meta["io.modelcontextprotocol/clientInfo"] = json!({"name": "bench", "version": "1"});
        }
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        writeln!(self.input, "{request}").expect("sent");
    }

    fn receive(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("an answer");
        let answer: Value = serde_json::from_str(&line).expect("JSON");
        let failed = answer.get("error").is_some() || answer["result"]["isError"] == json!(true);
        assert!(!failed, "{answer}");
        answer
    }

    fn call(&mut self, id: usize, tool: &str, arguments: &Value) {
        let call = json!({"name": tool, "arguments": arguments});
        self.send(id, "tools/call", call);
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn starts(place: &Place, what: &str, stateless: bool) {
    let mut took: Vec<Duration> = (0..STARTS).map(|_| place.timed(stateless).1).collect();
    took.sort();
    let (median, best, most) = (took[STARTS / 2], took[0], took[STARTS - 1]);
    println!("| {what} | {median:.1?} | [{best:.1?}] | {most:.1?} |");
}

/// Launches tasks and waits for their ends; returns one of them.
fn launch(client: &mut Client) -> String {
    let mut newest = String::new();
    for _ in 0..TASKS {
        let task = json!({"description": "count", "prompt": "Count", "agent": "general"});
        client.call(0, "task", &task);
        let text = client.receive().to_string();
        let (_, rest) = text.split_once("Task task_").expect("an ID");
        let digits: String = rest.chars().take_while(char::is_ascii_hexdigit).collect();
        newest = format!("task_{digits}");
        client.call(0, "output", &json!({"task_id": newest, "block": true}));
        client.receive();
    }
    newest
}

fn calls(client: &mut Client, what: &str, tool: &str, arguments: &Value, at_once: usize) {
    let begun = Instant::now();
    let mut sent = 0;
    for received in 0..CALLS {
        while sent < CALLS && sent < received + at_once {
            client.call(sent, tool, arguments);
            sent += 1;
        }
        client.receive();
    }
    let per_second = CALLS as f64 / begun.elapsed().as_secs_f64();
    println!("| {what} | {per_second:.0} |");
}
