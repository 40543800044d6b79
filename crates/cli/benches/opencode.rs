//! What tasks cost inside the real OpenCode: how long a tool call takes, and a fork of a long
//! session step by step.
//!
//! `cargo bench -p asyncagents --bench opencode` prints what is in `docs/benchmarks.md`.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a benchmark talks to a person and has nobody to hand an error to"
)]

#[path = "../tests/opencode/harness/mod.rs"]
#[allow(dead_code, unused_imports, reason = "the stories use more of it")]
mod harness;

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    process::{Command, Stdio},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use asyncagents_scripted_model::{Recorded, Reply};
use harness::{Opencode, Serve, Session, Setup, asked, child, forked, launch, story};
use serde_json::{Value, json};

const CALLS: usize = 100;
const MESSAGES: usize = 2_000;
const FORKS: usize = 10;

fn main() {
    bridge();
    for opencode in [Opencode::V1, Opencode::V2Background] {
        println!("\n{opencode:?}");
        calls(opencode);
        forks(opencode);
    }
}

/// From a line on the bridge's stdin to the answer on its stdout, without OpenCode.
fn bridge() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut bridge = Command::new(env!("CARGO_BIN_EXE_asyncagents"))
        .arg("opencode-bridge")
        .env("ASYNCAGENTS_DB", folder.path().join("db"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("starts");
    let mut input = bridge.stdin.take().expect("a pipe");
    let mut lines = BufReader::new(bridge.stdout.take().expect("a pipe")).lines();
    let mut ask = |id: usize, method: &str, params: Value| {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        writeln!(input, "{request}").expect("written");
        loop {
            let line = lines.next().expect("a line").expect("a line");
            let line: Value = serde_json::from_str(&line).expect("JSON");
            if line["id"] == id && line["method"].is_null() {
                return;
            }
        }
    };
    let hello = json!({"directory": "/", "pid": std::process::id(), "opencode_plugin": 1});
    ask(1_000_000, "hello", hello);
    let mut times = Vec::new();
    for number in 0..4_000 {
        let call =
            json!({"directory": "/", "sessionID": "ses_a", "tool": "asyncagents_list", "args": {}});
        let begun = Instant::now();
        ask(2_000_000 + number, "call", call);
        times.push(begun.elapsed());
    }
    times.sort();
    println!(
        "the bridge alone, `asyncagents_list`: median {:.2} ms, 99 % within {:.2} ms\n",
        milliseconds(times[times.len() / 2]),
        milliseconds(times[times.len() * 99 / 100]),
    );
    drop(input);
    bridge.wait().expect("ends");
}

/// A plugin with a tool that does nothing but wait for a line from another process: what a tool
/// call costs in OpenCode, whoever answers it.
const ECHO: &str = r#"
import { spawn } from "node:child_process"
const cat = spawn("cat")
const description = "Says hello."
const say = () => {
  const said = new Promise((resolve) => cat.stdout.once("data", (line) => resolve(String(line))))
  cat.stdin.write("hello\n")
  return said
}
export default {
  id: "bench.echo",
  server: async () => ({ tool: { echo: { description, args: {}, execute: say } } }),
  setup: async (ctx) => {
    if (!ctx.tool?.transform || !ctx.session?.prompt) return
    const input = { type: "object", properties: {} }
    const execute = async () => ({ content: await say() })
    await ctx.tool.transform((tools) =>
      tools.add({ name: "echo", description, input, options: { codemode: false }, execute }),
    )
  },
}
"#;

/// From OpenCode's call of the tool to its answer, as OpenCode itself writes both down.
fn calls(opencode: Opencode) {
    let script = story()
        .rule(child("Nothing to do"), Reply::text("Nothing."))
        .rule(
            asked("Please use echo with"),
            Reply::call("echo", json!({})),
        );
    let world = Setup::new(opencode, script).world();
    let plugins = world.project(".opencode/plugin");
    fs::create_dir_all(&plugins).expect("made");
    fs::write(plugins.join("echo.js"), ECHO).expect("written");
    let server = world.serve();
    let parent = server.session();
    // The first call waits for the bridge, and OpenCode for a model.
    parent.uses("asyncagents_task", launch("first", "Nothing to do"));
    parent.until_told(1);
    let tools = ["echo", "asyncagents_list"];
    let before = tools.map(|tool| took(&parent, tool).len());
    // In turns, so that whatever else the machine does slows all of them down.
    for _ in 0..CALLS {
        tools.iter().for_each(|tool| {
            parent.uses(tool, json!({}));
        });
    }
    println!("| tool | calls | median | 99 % within | longest |");
    println!("|---|---|---|---|---|");
    for (tool, before) in tools.iter().zip(before) {
        let mut times = took(&parent, tool).split_off(before);
        times.sort();
        println!(
            "| `{tool}` | {} | {:.0} ms | {:.0} ms | {:.0} ms |",
            times.len(),
            milliseconds(times[times.len() / 2]),
            milliseconds(times[times.len() * 99 / 100]),
            milliseconds(times[times.len() - 1]),
        );
    }
}

/// How long each use of a tool took.
fn took(session: &Session, tool: &str) -> Vec<Duration> {
    let uses = uses(session, tool).into_iter();
    uses.map(|(began, ended)| Duration::from_millis(ended - began))
        .collect()
}

/// When each use of a tool began and ended, in milliseconds since 1970.
fn uses(session: &Session, tool: &str) -> Vec<(u64, u64)> {
    let messages = session.messages();
    let calls = messages.iter().flat_map(|message| &message.calls);
    let calls = calls.filter(|call| call.tool == tool);
    calls
        .filter_map(|call| Some((call.began?, call.ended?)))
        .collect()
}

/// From the call that launches a forked task to its child's first request.
fn forks(opencode: Opencode) {
    let script = story().rule(child("Use what you know"), Reply::text("Used."));
    let world = Setup::new(opencode, script).world();
    let server = world.serve();
    let parent = long_session(&server);
    let mut steps: Vec<Vec<f64>> = Vec::new();
    for number in 1..=FORKS {
        parent.uses("asyncagents_task", forked("fork", "Use what you know"));
        parent.until_told(number);
        let mut requests = world.requests_with("Use what you know");
        requests.retain(|request| session_of(request) != Some(&parent.id));
        let request = requests.get(number - 1).expect("a request of the child");
        let launched = started(&parent, "asyncagents_task");
        let log = fs::read_to_string(world.log()).expect("a log");
        let inside = ["read", "cut", "created", "injected"].map(|step| last_time(&log, step));
        let whole = unix_millis(request.at) - launched;
        let rest = whole - inside.iter().sum::<f64>();
        steps.push([&inside[..], &[rest, whole]].concat());
    }
    println!("\na fork by transcript of a session of {MESSAGES} messages, {FORKS} times, medians:");
    let names = [
        "reading the parent's newest messages",
        "cutting and counting",
        "making the session",
        "passing the context on",
        "the call itself, the prompt, and OpenCode until it asks its model",
        "launch to the child's first request",
    ];
    for (at, name) in names.iter().enumerate() {
        let mut times: Vec<f64> = steps.iter().map(|step| step[at]).collect();
        times.sort_by(f64::total_cmp);
        println!("  {name}: {:.0} ms", times[times.len() / 2]);
    }
}

/// A session with many messages.
fn long_session<'s>(server: &'s Serve<'_>) -> Session<'s> {
    let said = |number: usize| format!("Note {number}. {}", "What was found out there. ".repeat(4));
    if !server.world().opencode.is_v2() {
        let parent = server.session();
        let path = format!("/session/{}/message", parent.id);
        for number in 0..MESSAGES {
            let parts = json!([{"type": "text", "text": said(number)}]);
            let body = json!({"noReply": true, "parts": parts});
            assert_eq!(server.post(&path, body).status, 200);
        }
        return parent;
    }
    let empty = server
        .get(&format!("/api/session/{}", server.session().id))
        .body;
    let mut info = empty["data"].clone();
    info["id"] = json!("ses_long");
    let now = info["time"]["created"].clone();
    let message = |number: usize| {
        json!({
            "id": format!("msg_long_{number:05}"),
            "type": "user",
            "text": said(number),
            "time": {"created": now},
        })
    };
    let messages: Vec<Value> = (0..MESSAGES).map(message).collect();
    let whole = json!({"info": info, "messages": messages, "location": info["location"]});
    let imported = server.post("/api/session/import", whole);
    assert_eq!(imported.status, 200, "{imported:?}");
    server.session_of("ses_long")
}

/// The session that a request of the model is of.
fn session_of(request: &Recorded) -> Option<&str> {
    let mut headers = request.headers.iter();
    let (_, session) = headers.find(|(name, _)| name == "x-session-id")?;
    Some(session)
}

/// A moment of this process in milliseconds since 1970.
fn unix_millis(at: Instant) -> f64 {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("after 1970");
    milliseconds(now - at.elapsed())
}

/// When a tool was last called, in milliseconds since 1970.
fn started(session: &Session, tool: &str) -> f64 {
    let last = uses(session, tool).pop().expect("a call");
    milliseconds(Duration::from_millis(last.0))
}

/// The newest time of a step in the log: `read=12.5ms`.
fn last_time(log: &str, step: &str) -> f64 {
    let named = format!(" {step}=");
    let at = log.rfind(&named).map(|at| &log[at + named.len()..]);
    let text = at
        .and_then(|text| text.split_whitespace().next())
        .expect("a time");
    let number = |unit: &str| {
        text.strip_suffix(unit)
            .and_then(|text| text.parse::<f64>().ok())
    };
    let micros = number("µs").map(|micros| micros / 1e3);
    let millis = number("ms").or(micros);
    millis
        .or_else(|| number("s").map(|seconds| seconds * 1e3))
        .expect("a duration")
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
