//! What tasks cost inside the real OpenCode: how long a tool call takes, a fork of a long session
//! step by step, and how often a parent is asked while fifty children end.
//!
//! `cargo bench -p asyncagents --bench opencode` prints what is in `docs/benchmarks.md`. With
//! `-- forks` after it, only the forks in OpenCode 1 are made; with `-- children`, only the children
//! are run.
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
    env, fs,
    io::{BufRead, BufReader, Write},
    process::{Command, Stdio},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use asyncagents_scripted_model::{Recorded, Reply};
use asyncagents_testkit::generate::{self, Shape};
use harness::{Opencode, Serve, Session, Setup, World, asked, child, forked, launch, story};
use serde_json::{Value, json};

const CALLS: usize = 100;
/// The messages of the parent that has nothing but short ones.
const NOTES: usize = 2_000;
const FORKS: usize = 10;

/// How many children a parent launches in one answer, and how many tool calls each makes.
const CHILDREN: usize = 50;
const STEPS: usize = 3;

fn main() {
    let chosen = |name: &str| env::args().any(|argument| argument == name);
    if chosen("forks") {
        return forks(Opencode::V1);
    }
    let both = [Opencode::V1, Opencode::V2Background];
    if chosen("children") {
        return both.into_iter().for_each(children);
    }
    bridge();
    for opencode in both {
        println!("\n{opencode:?}");
        calls(opencode);
        forks(opencode);
        children(opencode);
    }
}

/// From the answer that launches many children until the parent has answered to the last end.
fn children(opencode: Opencode) {
    let mut all = Reply::text("All at once.");
    let mut script = story();
    for number in 0..CHILDREN {
        let prompt = format!("Count box {number}, please");
        all = all.and_call(
            "asyncagents_task",
            launch(&format!("box {number}"), &prompt),
        );
        let of_child = |turn| child("").contains(&prompt).turn_is(turn);
        for turn in 0..STEPS {
            let look = Reply::call("asyncagents_list", json!({}));
            script = script.rule(of_child(turn), look);
        }
        let counted = format!("Box {number} has {number} things.");
        script = script.rule(of_child(STEPS), Reply::text(counted));
    }
    let script = script
        .rule(child("Nothing to do"), Reply::text("Nothing."))
        .rule(asked("Launch all"), all);
    let world = Setup::new(opencode, script).world();
    let server = world.serve();
    // The first task waits for the bridge.
    let first = server.session();
    first.uses("asyncagents_task", launch("first", "Nothing to do"));
    first.until_told(1);
    let parent = server.session();
    let begun = Instant::now();
    parent.asks("Launch all");
    let told = parent.until_told(CHILDREN).len();
    let requests = parent.requests();
    let size: usize = requests.iter().map(|request| request.body.len()).sum();
    println!(
        "{opencode:?}: {CHILDREN} children with {STEPS} tool calls each in {:.1} s; told in {told} messages; \
         {} requests of the parent, {} kB",
        begun.elapsed().as_secs_f64(),
        requests.len(),
        size / 1_000,
    );
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
    if !opencode.is_v2() {
        for (_, shape) in &generate::BENCHMARK[..2] {
            let export = export(*shape);
            let size = export.len() as f64 / 1e6;
            let title = format!(
                "{} messages with results of tools, {size:.1} MB",
                shape.turns * 2
            );
            let world = world(opencode);
            world.imports(&export);
            let server = world.serve();
            fork_of(&world, &server.session_of(IMPORTED), &title);
        }
    }
    let world = world(opencode);
    let server = world.serve();
    let parent = short_messages(&server);
    fork_of(&world, &parent, &format!("{NOTES} short messages"));
}

fn world(opencode: Opencode) -> World {
    let script = story().rule(child("Use what you know"), Reply::text("Used."));
    let world = Setup::new(opencode, script).world();
    // The whole of a long session is more than the model takes, by its own count.
    let file = world.project("opencode.json");
    let config = fs::read(&file).expect("a configuration");
    let mut config: Value = serde_json::from_slice(&config).expect("JSON");
    config["compaction"] = json!({"auto": false, "prune": false});
    fs::write(&file, config.to_string()).expect("written");
    world
}

fn fork_of(world: &World, parent: &Session<'_>, title: &str) {
    let mut steps: Vec<Vec<f64>> = Vec::new();
    // The first waits for the bridge, and for all that OpenCode loads when it is used.
    for number in 1..=FORKS + 1 {
        parent.uses("asyncagents_task", forked("fork", "Use what you know"));
        parent.until_told(number);
        let mut requests = world.requests_with("Use what you know");
        requests.retain(|request| session_of(request) != Some(&parent.id));
        let request = requests.get(number - 1).expect("a request of the child");
        let launched = started(parent, "asyncagents_task");
        let log = fs::read_to_string(world.log()).expect("a log");
        let inside = ["read", "cut", "created", "injected"].map(|step| last_time(&log, step));
        let [read, cut, created, injected] = inside;
        let whole = unix_millis(request.at) - launched;
        // The session is made while the parent is read.
        let rest = whole - (read + cut).max(created) - injected;
        steps.push([&inside[..], &[rest, whole]].concat());
    }
    steps.remove(0);
    println!("\na fork by transcript of a session of {title}, {FORKS} times, medians:");
    let names = [
        "reading the parent's newest messages",
        "cutting and counting",
        "making the session, meanwhile",
        "passing the context on",
        "the call itself, the prompt, and OpenCode until it asks its model",
        "launch to the child's first request",
    ];
    for (at, name) in names.iter().enumerate() {
        let mut times: Vec<f64> = steps.iter().map(|step| step[at]).collect();
        times.sort_by(f64::total_cmp);
        let (median, best) = (times[times.len() / 2], times[0]);
        println!("  {name}: {median:.0} ms [{best:.0}]");
    }
}

/// The session that [`export`] names.
const IMPORTED: &str = "ses_e1f89098cffeyOhXrADvh1ZfMG";

/// A session as OpenCode 1 exports it. The generator writes what a fork looks at; OpenCode wants
/// more than that.
fn export(shape: Shape) -> String {
    let now = unix_millis(Instant::now()) as u64;
    let session = generate::session(shape);
    let mut messages: Vec<Value> = serde_json::from_str(&session).expect("a list");
    let mut asked = Value::Null;
    for (number, message) in messages.iter_mut().enumerate() {
        // They are sorted by time and by name.
        let at = now - 1_000_000_000 + number as u64;
        let name = |kind: &str| json!(format!("{kind}_{number:012x}AAAAAAAAAAAAAA"));
        let info = &mut message["info"];
        info["id"] = name("msg");
        info["time"] = json!({"created": at, "completed": at});
        let model = json!({"providerID": "scripted", "modelID": harness::FIRST_MODEL});
        if info["role"] == "user" {
            asked = info["id"].clone();
            info["model"] = model;
        } else {
            info["parentID"] = asked.clone();
            info["providerID"] = model["providerID"].clone();
            info["modelID"] = model["modelID"].clone();
            info["mode"] = json!("build");
            info["cost"] = json!(0);
            info["tokens"] = tokens();
        }
        let id = info["id"].clone();
        let parts = message["parts"].as_array_mut().expect("parts");
        for (place, part) in parts.iter_mut().enumerate() {
            part["id"] = json!(format!("prt_{number:012x}AAAAAAAAAAAA{place:02}"));
            part["messageID"] = id.clone();
            part["sessionID"] = json!(IMPORTED);
            if part["type"] == "step-finish" {
                part["tokens"] = tokens();
            }
        }
    }
    let info = json!({
        "id": IMPORTED, "slug": "long", "projectID": "global", "directory": "/", "title": "Long",
        "version": "1.0.0", "time": {"created": now, "updated": now},
    });
    json!({"info": info, "messages": messages}).to_string()
}

/// Few, so that OpenCode does not want to compact the session.
fn tokens() -> Value {
    let cache = json!({"read": 0, "write": 0});
    json!({"input": 8_124, "output": 8, "reasoning": 0, "cache": cache})
}

/// A session with many short messages.
fn short_messages<'s>(server: &'s Serve<'_>) -> Session<'s> {
    let said = |number: usize| format!("Note {number}. {}", "What was found out there. ".repeat(4));
    if !server.world().opencode.is_v2() {
        let parent = server.session();
        let path = format!("/session/{}/message", parent.id);
        for number in 0..NOTES {
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
    let messages: Vec<Value> = (0..NOTES).map(message).collect();
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
