//! `opencode serve`, its API and its events.

use std::{
    fs::{self, File},
    net::{Ipv4Addr, TcpListener},
    os::unix::process::CommandExt,
    process::Child,
    time::{Duration, Instant},
};

use reqwest::Method;
use rustix::process::{Signal, kill_process, kill_process_group};
use serde_json::{Value, json};

use super::{
    events::Events,
    processes::{self, Pid},
    session::Session,
    world::World,
};

/// A server; it ends when this goes, with everything it started.
pub(crate) struct Serve<'w> {
    pub(super) world: &'w World,
    process: Child,
    url: String,
    /// Nothing before it listens.
    events: Option<Events>,
}

/// What the API answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

impl<'w> Serve<'w> {
    pub(super) fn start(world: &'w World) -> Self {
        let port = free_port();
        let log = log_file(world);
        let output = File::create(&log).expect("a log");
        let process = world
            .opencode()
            .args(["serve", "--port", &port.to_string()])
            .stdout(output.try_clone().expect("twice"))
            .stderr(output)
            .process_group(0)
            .spawn()
            .expect("opencode starts");
        let mut serve = Self {
            world,
            process,
            url: format!("http://127.0.0.1:{port}"),
            events: None,
        };
        // A request that comes while the socket is being opened is never answered.
        world.until("opencode serve listens", || {
            let ended = serve.process.try_wait().expect("its status");
            assert!(ended.is_none(), "opencode serve ended: {ended:?}");
            let said = fs::read_to_string(&log).unwrap_or_default();
            said.contains("opencode server listening on").then_some(())
        });
        serve.events = Some(Events::from(&serve.url, world));
        world.until("events arrive", || {
            serve.has_said("server.connected", |_| true).then_some(())
        });
        serve
    }

    /// Its address.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// A session without a parent. It has a title, so that none is made up for it.
    pub(crate) fn session(&self) -> Session<'_> {
        let session = self.post("/session", json!({"title": "A parent"}));
        let id = session.body["id"].as_str().expect("an ID");
        Session::new(self, id)
    }

    /// A session that exists.
    pub(crate) fn session_of(&self, id: &str) -> Session<'_> {
        Session::new(self, id)
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.ask(Method::GET, path, None)
    }

    pub(crate) fn post(&self, path: &str, body: Value) -> Answer {
        self.ask(Method::POST, path, Some(body))
    }

    pub(crate) fn delete(&self, path: &str) -> Answer {
        self.ask(Method::DELETE, path, None)
    }

    fn ask(&self, method: Method, path: &str, body: Option<Value>) -> Answer {
        let url = format!("{}{path}", self.url);
        let mut request = self.world.client.request(method, url);
        if let Some(body) = body {
            let kind = ("content-type", "application/json");
            request = request.header(kind.0, kind.1).body(body.to_string());
        }
        self.world.runtime.block_on(async {
            let response = request.send().await;
            let response = response.unwrap_or_else(|error| panic!("{path}: {error:?}"));
            let status = response.status().as_u16();
            let text = response.text().await.expect("a body");
            let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
            Answer { status, body }
        })
    }

    /// The properties of all events of this type so far.
    pub(crate) fn events(&self, kind: &str) -> Vec<Value> {
        let Some(events) = &self.events else {
            return Vec::new();
        };
        let seen = events.seen();
        let wanted = seen.iter().filter(|event| event["type"] == kind);
        wanted.map(|event| event["properties"].clone()).collect()
    }

    /// Whether there was such an event.
    pub(crate) fn has_said(&self, kind: &str, is_it: impl Fn(&Value) -> bool) -> bool {
        self.events(kind).iter().any(is_it)
    }

    /// Ends it as no process can prevent. The bridge has to notice by itself.
    pub(crate) fn kill(mut self) {
        let (world, itself) = (self.world, self.pid());
        let mut bridges = world.bridges();
        bridges.retain(|bridge| processes::parent(*bridge) == Some(itself));
        self.process.kill().expect("killed");
        self.process.wait().expect("gone");
        world.until("the bridge ends with OpenCode", || {
            let left = world.processes();
            let gone = bridges.iter().all(|bridge| !left.contains(bridge));
            gone.then_some(())
        });
    }

    /// Asks it to end, as a user does with Ctrl-C, and waits until it has.
    pub(crate) fn stop(mut self) {
        let _ = kill_process_group(self.pid(), Signal::INT);
        let world = self.world;
        world.until("opencode serve ends", || {
            self.process.try_wait().expect("its status")
        });
    }

    /// Asks it alone to end, as a supervisor does. Returns how long it took.
    pub(crate) fn terminate(mut self) -> Duration {
        let begun = Instant::now();
        let _ = kill_process(self.pid(), Signal::TERM);
        let world = self.world;
        world.until("opencode serve ends", || {
            self.process.try_wait().expect("its status")
        });
        begun.elapsed()
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.process)
    }
}

impl Drop for Serve<'_> {
    fn drop(&mut self) {
        if std::thread::panicking()
            && let Some(events) = &self.events
        {
            report(&events.seen());
        }
        let _ = kill_process_group(self.pid(), Signal::KILL);
        let _ = self.process.wait();
    }
}

/// The events that say what became of sessions and messages.
fn report(events: &[Value]) {
    const LAST: usize = 60;
    let dull = ["plugin.added", "message.part.delta", "session.updated"];
    let telling = events
        .iter()
        .filter(|event| dull.iter().all(|dull| event["type"] != *dull));
    let telling: Vec<&Value> = telling.collect();
    eprintln!("\n== events");
    for event in &telling[telling.len().saturating_sub(LAST)..] {
        let line: String = event.to_string().chars().take(400).collect();
        eprintln!("{line}");
    }
}

/// `--port 0` would first try a port that everybody's OpenCode uses.
fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    listener.local_addr().expect("its address").port()
}

/// One for each start.
fn log_file(world: &World) -> std::path::PathBuf {
    let mut numbers = 1..;
    let name = |number: u32| world.path(&format!("opencode-{number}.log"));
    let number = numbers.find(|number| !name(*number).exists());
    name(number.expect("endless"))
}
