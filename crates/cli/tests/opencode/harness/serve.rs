//! `opencode serve`, its API and its events.

use std::{
    fs::{self, File},
    net::{Ipv4Addr, TcpListener},
    os::unix::process::CommandExt,
    path::Path,
    process::Child,
    time::{Duration, Instant},
};

use reqwest::{Method, RequestBuilder};
use rustix::process::{Signal, kill_process, kill_process_group};
use serde_json::Value;

use super::{
    api::text,
    events::Events,
    opencode::Opencode,
    processes::{self, Pid},
    session::Session,
    world::World,
};

/// Of a server that asks for one and is not in the background.
const PASSWORD: &str = "for tests only";

/// A server. One that was started here ends when this goes, with everything it started.
pub(crate) struct Serve<'w> {
    pub(super) world: &'w World,
    /// Nothing if a client has started it.
    process: Option<Child>,
    pid: Pid,
    url: String,
    /// What its API wants to hear, if anything.
    password: Option<String>,
    /// Nothing before it listens.
    events: Option<Events>,
}

/// What the API answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

impl Answer {
    /// The body of an answer that has to have this status.
    pub(super) fn is(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        self.body
    }
}

impl<'w> Serve<'w> {
    pub(super) fn start(world: &'w World) -> Self {
        let port = free_port();
        let log = log_file(world);
        let mut process = spawn(world, port, &log);
        // A request that comes while the socket is being opened is never answered.
        world.until("opencode serve listens", || {
            let ended = process.try_wait().expect("its status");
            assert!(ended.is_none(), "opencode serve ended: {ended:?}");
            let said = fs::read_to_string(&log).unwrap_or_default();
            said.contains("server listening on").then_some(())
        });
        let pid = Pid::from_child(&process);
        if world.opencode == Opencode::V2Background {
            let service = Service::until_of(world, pid);
            return Self::listened_to(world, Some(process), pid, service);
        }
        let service = Service {
            url: format!("http://127.0.0.1:{port}"),
            password: world.opencode.is_v2().then(|| PASSWORD.to_owned()),
        };
        Self::listened_to(world, Some(process), pid, service)
    }

    /// The server in the background that a client has started.
    pub(super) fn in_background(world: &'w World) -> Self {
        let pid = world.until("there is a server in the background", || {
            Service::pid_in(world)
        });
        let service = Service::until_of(world, pid);
        Self::listened_to(world, None, pid, service)
    }

    fn listened_to(world: &'w World, process: Option<Child>, pid: Pid, service: Service) -> Self {
        let Service { url, password } = service;
        let mut serve = Self {
            world,
            process,
            pid,
            url,
            password,
            events: None,
        };
        serve.events = Some(Events::from(&serve));
        world.until("events arrive", || {
            serve.has_said("server.connected", |_| true).then_some(())
        });
        world.opencode.api().open(&serve);
        serve
    }

    /// Where it is.
    pub(crate) fn world(&self) -> &'w World {
        self.world
    }

    /// What its API wants to hear, if anything.
    pub(super) fn password(&self) -> Option<&str> {
        self.password.as_deref()
    }

    /// Its address.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// A session without a parent.
    pub(crate) fn session(&self) -> Session<'_> {
        Session::new(self, &self.world.opencode.api().create(self))
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
        let mut request = self.request(method, path);
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

    /// A request as the API wants it.
    pub(super) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let url = format!("{}{path}", self.url);
        let request = self.world.client.request(method, url);
        match &self.password {
            Some(password) => request.basic_auth("opencode", Some(password)),
            None => request,
        }
    }

    /// What all events of this type so far tell.
    pub(crate) fn events(&self, kind: &str) -> Vec<Value> {
        let Some(events) = &self.events else {
            return Vec::new();
        };
        let seen = events.seen();
        let wanted = seen.iter().filter(|event| event["type"] == kind);
        let told = self.world.opencode.api().event_data();
        wanted.map(|event| event[told].clone()).collect()
    }

    /// Whether there was such an event.
    pub(crate) fn has_said(&self, kind: &str, is_it: impl Fn(&Value) -> bool) -> bool {
        self.events(kind).iter().any(is_it)
    }

    /// Ends it as no process can prevent. The bridge has to notice by itself.
    pub(crate) fn kill(self) {
        let (world, itself) = (self.world, self.pid);
        let mut bridges = world.bridges();
        bridges.retain(|bridge| processes::parent(*bridge) == Some(itself));
        self.kill_at_once();
        world.until("the bridge ends with OpenCode", || {
            let left = world.processes();
            let gone = bridges.iter().all(|bridge| !left.contains(bridge));
            gone.then_some(())
        });
    }

    /// The same, and does not wait for the bridge.
    pub(crate) fn kill_at_once(mut self) {
        processes::kill(self.pid);
        self.wait();
    }

    /// Asks it to end, as a user does with Ctrl-C, and waits until it has.
    pub(crate) fn stop(mut self) {
        let _ = kill_process_group(self.pid, Signal::INT);
        self.wait();
    }

    /// Asks it alone to end, as a supervisor does. Returns how long it took.
    pub(crate) fn terminate(mut self) -> Duration {
        let begun = Instant::now();
        let _ = kill_process(self.pid, Signal::TERM);
        self.wait();
        begun.elapsed()
    }

    /// Waits until it has ended.
    fn wait(&mut self) {
        let (world, itself) = (self.world, self.pid);
        world.until("the server ends", || {
            if let Some(process) = &mut self.process {
                process.try_wait().expect("its status").map(|_| ())
            } else {
                (!world.processes().contains(&itself)).then_some(())
            }
        });
        // Its number may be another's from now on.
        self.process = None;
    }
}

impl Drop for Serve<'_> {
    fn drop(&mut self) {
        if std::thread::panicking()
            && let Some(events) = &self.events
        {
            report(&events.seen());
        }
        if let Some(process) = &mut self.process {
            let _ = kill_process_group(self.pid, Signal::KILL);
            let _ = process.wait();
        }
    }
}

/// Where a server is, and what it wants to hear.
struct Service {
    url: String,
    password: Option<String>,
}

impl Service {
    /// The process that says that it is the server in the background.
    fn pid_in(world: &World) -> Option<Pid> {
        let pid = i32::try_from(service_file(world)?["pid"].as_i64()?).ok()?;
        Pid::from_raw(pid).filter(|pid| world.processes().contains(pid))
    }

    /// Waits until that process has written down where it is.
    fn until_of(world: &World, pid: Pid) -> Self {
        world.until("the server has said where it is", || {
            let file = service_file(world)?;
            (Self::pid_in(world)? == pid).then(|| Self {
                url: text(&file["url"]),
                password: Some(text(&file["password"])),
            })
        })
    }
}

fn service_file(world: &World) -> Option<Value> {
    let path = world.path("home/.local/state/opencode/service.json");
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

fn spawn(world: &World, port: u16, log: &Path) -> Child {
    let output = File::create(log).expect("a log");
    let mut command = world.opencode();
    let port = port.to_string();
    match world.opencode {
        Opencode::V1 => command.args(["serve", "--port", &port]),
        Opencode::V2 => command
            .args(["serve", "--hostname", "127.0.0.1", "--port", &port])
            .env("OPENCODE_PASSWORD", PASSWORD),
        // Its port is in the configuration.
        Opencode::V2Background => command.args(["serve", "--service"]),
    };
    command
        .stdout(output.try_clone().expect("twice"))
        .stderr(output)
        .process_group(0)
        .spawn()
        .expect("opencode starts")
}

/// The events that say what became of sessions and messages.
fn report(events: &[Value]) {
    const LAST: usize = 60;
    let dull = [
        "plugin.added",
        "message.part.delta",
        "session.updated",
        "session.text.delta",
        "session.usage.updated",
    ];
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

/// A port that nobody uses. `--port 0` would first try a port that everybody's OpenCode uses.
pub(super) fn free_port() -> u16 {
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
