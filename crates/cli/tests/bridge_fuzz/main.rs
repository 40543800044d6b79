//! The bridge to OpenCode, told nonsense behind a valid hello while tasks run. The other end is a
//! small OpenCode whose answers are right most of the time; the rest come late, twice, never,
//! broken, or to nobody. Whatever is said, the bridge goes on answering, stays small and ends
//! when its input does; and afterwards an honest OpenCode brings every task to an end.
//!
//! `cargo test` runs it in small. `BRIDGE_FUZZ_LINES=300000` makes it longer, and
//! `BRIDGE_FUZZ_SEED` repeats the lines of a run, though not its timing.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test talks to a person and may panic"
)]

mod lines;
mod opencode;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    env, fs,
    fs::File,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    thread,
    time::{Duration, Instant},
};

use fastrand::Rng;
use lines::{damage, event, garbage, odd, one, warp};
use opencode::OpenCode;
use serde_json::{Value, json};
use tempfile::TempDir;

/// How many lines are said in all, without those that are answers.
const LINES: usize = 4_000;
/// How many of them one bridge hears.
const LINES_OF_A_BRIDGE: usize = 1_000;
/// After so many lines a sensible call must be answered.
const PROBED: usize = 100;
/// How long is waited for the bridge after each line, so that tasks come to run.
const BREATH: Duration = Duration::from_millis(2);
/// How long anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a bridge may take to end. It waits two seconds to see whether OpenCode ends too.
const END: Duration = Duration::from_secs(15);
/// What a bridge may take in memory, in kilobytes. A line of 64 MB may be read.
const MEMORY: u64 = 400 * 1024;

#[test]
fn nonsense_behind_a_valid_hello() {
    let number = |name: &str| env::var(name).ok().and_then(|text| text.parse().ok());
    let seed = number("BRIDGE_FUZZ_SEED").unwrap_or_else(|| u64::from(fastrand::u32(..)));
    let lines = number("BRIDGE_FUZZ_LINES").map_or(LINES, |lines| {
        usize::try_from(lines).expect("a number of lines")
    });
    println!("bridge: seed {seed}, {lines} lines");
    let mut fuzz = Fuzz::new(seed);
    while fuzz.figures.lines < lines {
        fuzz.session();
    }
    fuzz.settle();
    fuzz.print();
}

/// What is counted, for people.
#[derive(Default)]
struct Figures {
    lines: usize,
    bridges: usize,
    requests: usize,
    spoiled: usize,
    calls: usize,
    answered: usize,
    probes: usize,
    most_memory: u64,
    longest_end: Duration,
}

struct Fuzz {
    rng: Rng,
    folder: TempDir,
    project: String,
    opencode: OpenCode,
    parent: String,
    /// The process that OpenCode is, as far as the bridge can see.
    process: Child,
    bridge: Option<Bridge>,
    /// The calls that were made and not answered, and whether they launch something.
    open: HashMap<u64, bool>,
    called: u64,
    launched: BTreeSet<String>,
    /// Answers that come later.
    late: Vec<Value>,
    /// Whether everything is answered as it should be.
    honest: bool,
    figures: Figures,
}

impl Drop for Fuzz {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// A bridge, and what it says.
struct Bridge {
    child: Child,
    stdin: ChildStdin,
    lines: Receiver<String>,
    errors: PathBuf,
}

impl Fuzz {
    fn new(seed: u64) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let project = folder.path().join("project");
        fs::create_dir_all(&project).expect("a folder");
        fs::create_dir_all(folder.path().join("home")).expect("a folder");
        let project = project.display().to_string();
        let mut opencode = OpenCode::new(&project);
        let parent = opencode.parent();
        Self {
            rng: Rng::with_seed(seed),
            folder,
            project,
            opencode,
            parent,
            process: process(),
            bridge: None,
            open: HashMap::new(),
            called: 0,
            launched: BTreeSet::new(),
            late: Vec::new(),
            honest: false,
            figures: Figures::default(),
        }
    }

    /// One bridge from its hello to its end.
    fn session(&mut self) {
        self.begin();
        for n in 0..LINES_OF_A_BRIDGE {
            if n % PROBED == 0 {
                self.probe();
            }
            self.speak();
            self.hear(BREATH);
            if self.rng.bool() {
                self.opencode.work();
            }
        }
        self.probe();
        self.end();
    }

    /// Afterwards everything is answered as it should be, until no task is unfinished.
    fn settle(&mut self) {
        self.honest = true;
        self.begin();
        let until = Instant::now() + PATIENCE * 2;
        loop {
            let tasks = self.tasks();
            let live =
                |status: &&String| matches!(status.as_str(), "queued" | "running" | "resumed");
            let unfinished = tasks.values().filter(live).count();
            if unfinished == 0 {
                break;
            }
            assert!(Instant::now() < until, "{unfinished} tasks do not end");
            for _ in 0..50 {
                self.opencode.work();
                self.hear(Duration::from_millis(10));
            }
        }
        self.probe();
        self.end();
        let tasks = self.tasks();
        let lost: Vec<_> = self
            .launched
            .iter()
            .filter(|short| !tasks.keys().any(|id| id.starts_with(*short)))
            .collect();
        assert!(
            lost.is_empty(),
            "these were launched and are not listed: {lost:?}"
        );
        assert!(self.launched.len() > 10, "hardly any task was launched");
    }

    /// Every task, with its status.
    fn tasks(&self) -> BTreeMap<String, String> {
        let listed = self
            .command(&["list", "--all", "--json"])
            .output()
            .expect("a list");
        let tasks: Value = serde_json::from_slice(&listed.stdout)
            .unwrap_or_else(|error| panic!("{error}: {listed:?}"));
        let word = |task: &Value, key: &str| task[key].as_str().expect("a word").to_owned();
        let tasks = tasks.as_array().expect("tasks").iter();
        tasks
            .map(|task| (word(task, "id"), word(task, "status")))
            .collect()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_asyncagents"));
        command
            .args(arguments)
            .args(["-c", "limits.spawns=100000", "-c", "worker.autostart=false"])
            .current_dir(&self.project)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.folder.path().join("home"));
        command
    }

    /// A bridge is started and greeted.
    fn begin(&mut self) {
        self.figures.bridges += 1;
        let errors = self
            .folder
            .path()
            .join(format!("errors-{}", self.figures.bridges));
        let mut child = self
            .command(&["opencode-bridge"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(&errors).expect("a file"))
            .spawn()
            .expect("a bridge");
        let stdin = child.stdin.take().expect("its input");
        let stdout = BufReader::new(child.stdout.take().expect("its output"));
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        self.bridge = Some(Bridge {
            child,
            stdin,
            lines,
            errors,
        });
        self.open.clear();
        self.late.clear();
        let hello = self.hello();
        let id = self.call(hello, false);
        self.wait_for(id, "the hello");
    }

    /// The input ends, sometimes within a line, and sometimes OpenCode with it.
    fn end(&mut self) {
        let mut bridge = self.bridge.take().expect("a bridge");
        let status = fs::read_to_string(format!("/proc/{}/status", bridge.child.id()));
        let memory = most_memory(&status.unwrap_or_default());
        self.figures.most_memory = self.figures.most_memory.max(memory);
        assert!(memory < MEMORY, "{memory} kB of memory");
        if self.rng.bool() && !self.honest {
            bridge.stdin.write_all(b"{\"id\":1,\"meth").ok();
        }
        if self.rng.u8(..4) == 0 {
            self.process.kill().expect("it is ours");
            self.process.wait().expect("it ended");
            self.process = process();
        }
        let since = Instant::now();
        drop(bridge.stdin);
        let status = loop {
            if let Some(status) = bridge.child.try_wait().expect("a child") {
                break status;
            }
            assert!(since.elapsed() < END, "the bridge does not end");
            // It must not wait for somebody to read.
            if let Err(RecvTimeoutError::Disconnected) =
                bridge.lines.recv_timeout(Duration::from_millis(5))
            {
                thread::yield_now();
            }
        };
        self.figures.longest_end = self.figures.longest_end.max(since.elapsed());
        assert_eq!(status.code(), Some(0), "{}", said(&bridge.errors));
        let said = said(&bridge.errors);
        assert!(!said.contains("panicked"), "{said}");
    }

    /// Says one line, of whatever kind.
    fn speak(&mut self) {
        self.figures.lines += 1;
        let sessions = self.opencode.sessions();
        match self.rng.u8(..100) {
            0..18 => {
                let (call, launches) = self.sensible();
                self.call(call, launches);
            }
            18..35 => {
                let event = event(&mut self.rng, &self.project, &sessions);
                self.say(&event);
            }
            35..40 => {
                let greeting = self.greeting();
                self.call(greeting, false);
            }
            40..44 => {
                let id = if self.rng.bool() {
                    json!(self.called)
                } else {
                    odd(&mut self.rng)
                };
                self.say(&json!({"method": "cancel", "params": {"id": id}}));
            }
            // An answer that nobody asked for, or not like this.
            44..52 => {
                let id = if self.rng.bool() {
                    json!(self.rng.u64(..2_000))
                } else {
                    odd(&mut self.rng)
                };
                let result = odd(&mut self.rng);
                self.say(&json!({"id": id, "result": result}));
            }
            52..75 => {
                let mut line = self.something(&sessions);
                warp(&mut self.rng, &mut line);
                self.say(&line);
            }
            75..90 => {
                let line = self.something(&sessions);
                let mut line = line.to_string().into_bytes();
                damage(&mut self.rng, &mut line);
                self.write(&line);
            }
            90..98 => {
                let garbage = garbage(&mut self.rng);
                self.write(&garbage);
            }
            98 => {
                for _ in 0..300 {
                    let event = event(&mut self.rng, &self.project, &sessions);
                    self.say(&event);
                }
                self.figures.lines += 299;
            }
            _ => self.speak_long(),
        }
    }

    /// A line of megabytes, that means something or not; seldom one that is too long to be read.
    fn speak_long(&mut self) {
        let length = match self.rng.u8(..20) {
            0 => 65 << 20,
            _ => self.rng.usize(..4 << 20),
        };
        let filler = "x".repeat(length);
        let line = if self.rng.bool() {
            json!({"method": "event", "params": {"directory": self.project, "event": filler}})
        } else {
            json!({"id": 7_777_777, "result": filler})
        };
        self.say(&line);
    }

    /// A line that would make sense.
    fn something(&mut self, sessions: &[String]) -> Value {
        match self.rng.u8(..4) {
            0 => event(&mut self.rng, &self.project, sessions),
            1 => {
                let mut greeting = self.greeting();
                greeting["id"] = json!(1_000_000);
                greeting
            }
            _ => {
                let (mut call, _) = self.sensible();
                call["id"] = json!(1_000_001);
                call
            }
        }
    }

    fn hello(&self) -> Value {
        let params = json!({
            "directory": self.project, "pid": self.process.id(), "began": 5, "opencode_plugin": 1,
        });
        json!({"method": "hello", "params": params})
    }

    fn greeting(&mut self) -> Value {
        let about = json!({"directory": self.project});
        match self.rng.u8(..4) {
            0 => self.hello(),
            1 => json!({"method": "goodbye", "params": about}),
            2 => json!({"method": "unheard_of", "params": about}),
            _ => json!({"method": "tools", "params": about}),
        }
    }

    /// A call of a tool, and whether it launches something.
    fn sensible(&mut self) -> (Value, bool) {
        let some = self
            .launched
            .iter()
            .nth(self.rng.usize(..=self.launched.len()));
        let some = some.cloned().unwrap_or_else(|| "task_0".to_owned());
        let (tool, args) = match self.rng.u8(..10) {
            0..4 => (
                "task",
                json!({
                    "description": "look", "prompt": "count the files", "agent": "general",
                    "fork": self.rng.u8(..4) == 0,
                }),
            ),
            4 => (
                "task",
                json!({
                    "description": "again", "prompt": "go on", "agent": "general", "resume": some,
                }),
            ),
            5 => (
                "output",
                json!({"task_id": some, "block": self.rng.bool(), "timeout": 1}),
            ),
            6 => ("output", json!({"task_id": some, "full_session": true})),
            7 => ("cancel", json!({"task_id": some})),
            8 => (
                "skill",
                json!({"name": one(&mut self.rng, &["none", "../x", ""])}),
            ),
            _ => ("list", json!({})),
        };
        (self.tool(tool, args), tool == "task")
    }

    fn tool(&self, tool: &str, args: Value) -> Value {
        let params = json!({
            "directory": self.project, "sessionID": self.parent, "messageID": "msg_000000000002",
            "callID": "call_1", "agent": "build", "tool": format!("asyncagents_{tool}"), "args": args,
        });
        json!({"method": "call", "params": params})
    }

    /// A call that makes sense, which is answered whatever was said before.
    fn probe(&mut self) {
        let list = self.tool("list", json!({}));
        let id = self.call(list, false);
        self.wait_for(id, "a sensible call");
        self.figures.probes += 1;
    }

    fn wait_for(&mut self, id: u64, what: &str) {
        let until = Instant::now() + PATIENCE;
        while self.open.contains_key(&id) {
            assert!(Instant::now() < until, "{what} is not answered");
            self.hear(Duration::from_millis(5));
        }
    }

    /// Asks something under a new number.
    fn call(&mut self, mut call: Value, launches: bool) -> u64 {
        self.called += 1;
        self.figures.calls += 1;
        // Numbers that the bridge gives its own requests are others.
        let id = 2_000_000 + self.called;
        call["id"] = json!(id);
        self.open.insert(id, launches);
        self.say(&call);
        id
    }

    fn say(&mut self, message: &Value) {
        self.write(message.to_string().as_bytes());
    }

    fn write(&mut self, line: &[u8]) {
        let bridge = self.bridge.as_mut().expect("a bridge");
        let written = bridge.stdin.write_all(line);
        let written = written.and_then(|()| bridge.stdin.write_all(b"\n"));
        if let Err(error) = written {
            panic!(
                "the bridge hears nothing: {error}: {}",
                said(&bridge.errors)
            );
        }
    }

    /// Hears what the bridge has to say, and waits for the first of it.
    fn hear(&mut self, wait: Duration) {
        for event in self.opencode.events() {
            let happened = json!({"directory": self.project, "event": event});
            self.say(&json!({"method": "event", "params": happened}));
        }
        if self.honest || self.rng.u8(..20) == 0 {
            for answer in std::mem::take(&mut self.late) {
                self.say(&answer);
            }
        }
        let mut wait = wait;
        loop {
            let bridge = self.bridge.as_ref().expect("a bridge");
            let Ok(line) = bridge.lines.recv_timeout(wait) else {
                return;
            };
            wait = Duration::ZERO;
            let message: Value = serde_json::from_str(&line).expect("the bridge speaks JSON");
            match (message["method"].as_str(), message["id"].as_u64()) {
                (Some("api"), Some(id)) => {
                    self.figures.requests += 1;
                    let result = self.opencode.answer(&message["params"]);
                    self.reply(id, result);
                }
                (Some(_), _) => {}
                (None, Some(id)) => self.answered(id, &message),
                // It was asked under a name that is no number.
                (None, None) => {}
            }
        }
    }

    fn answered(&mut self, id: u64, message: &Value) {
        let why = message["error"]["message"].as_str().unwrap_or_default();
        assert!(!why.contains("is a bug"), "{message}");
        let Some(launches) = self.open.remove(&id) else {
            return;
        };
        self.figures.answered += 1;
        let output = message["result"]["output"].as_str().unwrap_or_default();
        let is_id = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let mut words = output.split(|c| !is_id(c));
        if let Some(task) = words
            .find(|word| word.starts_with("task_"))
            .filter(|_| launches)
        {
            self.launched.insert(task.to_owned());
        }
    }

    /// Answers the bridge, or does something else.
    fn reply(&mut self, id: u64, result: Value) {
        let mut answer = json!({"id": id, "result": result});
        let how = if self.honest { 0 } else { self.rng.u8(..100) };
        self.figures.spoiled += usize::from(how >= 80);
        match how {
            0..80 => self.say(&answer),
            80..84 => {
                self.say(&answer);
                self.say(&answer);
            }
            84..89 => self.late.push(answer),
            89..91 => {
                self.say(&json!({"id": id + 1, "result": {}}));
                self.say(&answer);
            }
            91..93 => {
                self.say(&json!({"id": id, "error": {"code": 1, "message": "socket hang up"}}))
            }
            93..95 => {
                answer["result"]["status"] = json!(one(&mut self.rng, &[&404, &409, &413, &500]));
                self.say(&answer);
            }
            95..97 => {
                warp(&mut self.rng, &mut answer["result"]);
                self.say(&answer);
            }
            97..99 => {
                let body = answer["result"]["body"]
                    .as_str()
                    .and_then(|b| serde_json::from_str(b).ok());
                let mut body: Value = body.unwrap_or_default();
                warp(&mut self.rng, &mut body);
                answer["result"]["body"] = json!(body.to_string());
                self.say(&answer);
            }
            // Never.
            _ => {}
        }
    }

    fn print(&self) {
        let figures = &self.figures;
        let mut ends: BTreeMap<String, usize> = BTreeMap::new();
        for status in self.tasks().into_values() {
            *ends.entry(status).or_default() += 1;
        }
        println!("  {} lines to {} bridges", figures.lines, figures.bridges);
        println!(
            "  {} requests of the bridge, {} not answered as they should be",
            figures.requests, figures.spoiled
        );
        println!(
            "  {} calls, {} answered; {} probes, all answered",
            figures.calls, figures.answered, figures.probes
        );
        println!(
            "  {} launches answered; tasks: {ends:?}",
            self.launched.len()
        );
        println!(
            "  most memory {} MB, longest end {:.1} s",
            figures.most_memory / 1024,
            figures.longest_end.as_secs_f64()
        );
    }
}

/// A process that stands for OpenCode's.
fn process() -> Child {
    let process = Command::new("sleep").arg("100000").spawn();
    process.expect("a process")
}

/// The most that a process has taken, in kilobytes.
fn most_memory(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// What a bridge said beside its lines, or what it said of a panic and what follows.
fn said(errors: &Path) -> String {
    let said = fs::read(errors).unwrap_or_default();
    let said = String::from_utf8_lossy(&said);
    let from = said
        .find("panicked")
        .unwrap_or(said.len().saturating_sub(4_000));
    said.chars()
        .skip(said.get(..from).map_or(0, |before| before.chars().count()))
        .take(4_000)
        .collect()
}
