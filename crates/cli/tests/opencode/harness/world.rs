//! A home, a project and a model of a test's own.

use std::{
    env,
    ffi::OsString,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::Once,
    time::{Duration, Instant},
};

use asyncagents_scripted_model::{ModelServer, Recorded, Script};
use reqwest::Client;
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::{
    playbook::{FIRST_MODEL, SECOND_MODEL, finished},
    processes::{self, Pid},
    run::Run,
    serve::Serve,
    spy,
    tui::Tui,
    turns::Turn,
};

/// How long anything may take that a test waits for. Generous: OpenCode starts slowly, and
/// more slowly while other tests run.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);

/// Everything around one OpenCode. When it goes, all its processes go; a request to the model
/// that the test did not foresee fails the test then.
pub(crate) struct World {
    folder: TempDir,
    pub(crate) model: ModelServer,
    pub(super) runtime: Runtime,
    pub(super) client: Client,
    // Last, so that the next test begins when this one is gone.
    _turn: Turn,
}

/// A world to be made.
pub(crate) struct Setup {
    script: Script,
    plugin: bool,
    spied: bool,
    agents: Map<String, Value>,
    settings: String,
}

impl Setup {
    /// A world with this model and with the plugin.
    pub(crate) fn new(script: Script) -> Self {
        Self {
            script: finished(script),
            plugin: true,
            spied: false,
            agents: Map::new(),
            settings: String::new(),
        }
    }

    /// The same with one more agent in OpenCode.
    pub(crate) fn agent(mut self, name: &str, agent: Value) -> Self {
        self.agents.insert(name.to_owned(), agent);
        self
    }

    /// The same with an `asyncagents.toml` in the project.
    pub(crate) fn settings(mut self, toml: &str) -> Self {
        toml.clone_into(&mut self.settings);
        self
    }

    /// The same, with every API request of plugins written down: see [`World::api_requests`].
    pub(crate) fn spied(mut self) -> Self {
        self.spied = true;
        self
    }

    /// The same without our plugin.
    pub(crate) fn without_plugin(mut self) -> Self {
        self.plugin = false;
        self
    }

    pub(crate) fn world(self) -> World {
        install_opencode();
        let turn = Turn::take();
        let runtime = Runtime::new().expect("a runtime");
        let model = runtime.block_on(ModelServer::start(self.script));
        let client = Client::builder().no_proxy().timeout(PATIENCE).build();
        let world = World {
            folder: tempfile::tempdir().expect("a folder"),
            model: model.expect("a port"),
            client: client.expect("a client"),
            runtime,
            _turn: turn,
        };
        for name in ["home", "tmp", "project"] {
            fs::create_dir(world.path(name)).expect("made");
        }
        let config = opencode_config(&world.model.url(), self.agents);
        fs::write(world.project("opencode.json"), config.to_string()).expect("written");
        fs::write(world.project("asyncagents.toml"), self.settings).expect("written");
        world.git(&["init", "--quiet"]);
        world.git(&["add", "."]);
        world.git(&["commit", "--quiet", "--message", "begin"]);
        if self.plugin {
            world.asyncagents(&["setup", "opencode", "--project"]);
        }
        if self.spied {
            spy::install(&world.project(""), &world.api_log());
        }
        world.spare_opencode_its_npm_install();
        world
    }
}

impl World {
    /// A world with this model and with the plugin.
    pub(crate) fn new(script: Script) -> Self {
        Setup::new(script).world()
    }

    /// Starts `opencode serve`.
    pub(crate) fn serve(&self) -> Serve<'_> {
        Serve::start(self)
    }

    /// Lets `opencode run` answer one prompt.
    pub(crate) fn run(&self, prompt: &str) -> Run {
        Run::of(self, prompt)
    }

    /// Starts OpenCode's terminal interface.
    pub(crate) fn tui(&self) -> Tui<'_> {
        Tui::start(self)
    }

    /// A path in the project.
    pub(crate) fn project(&self, name: &str) -> PathBuf {
        self.path("project").join(name)
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs our program in the project; it must succeed. Returns what it answers.
    pub(crate) fn asyncagents(&self, args: &[&str]) -> String {
        // What runs tasks here is the bridge, never a worker of a command.
        let quietly = ["-c", "worker.autostart=false"];
        self.shell(&[&quietly[..], args].concat())
    }

    /// The same, as people type it: a worker is started if there is work.
    pub(crate) fn shell(&self, args: &[&str]) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_asyncagents"));
        self.dress(&mut command).args(args);
        let output = command.output().expect("runs");
        assert!(output.status.success(), "asyncagents {args:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// A command of OpenCode, in the project.
    pub(super) fn opencode(&self) -> Command {
        let mut command = Command::new(opencode_program());
        self.dress(&mut command);
        command
    }

    /// The project as working folder, and an environment that leads nowhere else.
    pub(super) fn dress<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        command
            .current_dir(self.project(""))
            .env_clear()
            .envs(self.environment())
            .stdin(Stdio::null())
    }

    fn environment(&self) -> Vec<(String, OsString)> {
        let mut all: Vec<(String, OsString)> = Vec::new();
        let mut set = |name: &str, value: OsString| all.push((name.to_owned(), value));
        set("PATH", env::var_os("PATH").unwrap_or_default());
        set("TERM", "xterm-256color".into());
        set("LANG", "C.UTF-8".into());
        for (name, folder) in [
            ("HOME", "home"),
            ("XDG_CONFIG_HOME", "home/.config"),
            ("XDG_DATA_HOME", "home/.local/share"),
            ("XDG_STATE_HOME", "home/.local/state"),
            ("XDG_CACHE_HOME", "home/.cache"),
            // OpenCode unpacks megabytes there at every start, and leaves them.
            ("TMPDIR", "tmp"),
            ("ASYNCAGENTS_DB", "asyncagents.db"),
        ] {
            set(name, self.path(folder).into());
        }
        set("ASYNCAGENTS_LOG_FILE", self.log().into());
        set("ASYNCAGENTS_LOG_LEVEL", "debug".into());
        // What is dead is known to be dead after this.
        set("ASYNCAGENTS_WORKER_LEASE", "2s".into());
        for what in [
            "MODELS_FETCH",
            "AUTOUPDATE",
            "SHARE",
            "LSP_DOWNLOAD",
            "DEFAULT_PLUGINS",
            "CLAUDE_CODE",
        ] {
            set(&format!("OPENCODE_DISABLE_{what}"), "1".into());
        }
        all
    }

    fn git(&self, args: &[&str]) {
        let mut command = Command::new("git");
        let name = ["-c", "user.name=Test", "-c", "user.email=test@localhost"];
        let done = self.dress(command.args(name)).args(args).output();
        let done = done.expect("git runs");
        assert!(done.status.success(), "git {args:?}: {done:?}");
    }

    /// With any plugin OpenCode installs a package of its own into every folder of
    /// configuration, and waits for it for a minute where there is no network. This lets it
    /// believe that it is there.
    fn spare_opencode_its_npm_install(&self) {
        let lock = json!({"lockfileVersion": 3, "packages": {"": {"dependencies": {"@opencode-ai/plugin": "*"}}}});
        for folder in [
            self.project(".opencode"),
            self.path("home/.config/opencode"),
        ] {
            fs::create_dir_all(folder.join("node_modules")).expect("made");
            fs::write(folder.join("package-lock.json"), lock.to_string()).expect("written");
        }
    }

    /// The bridge's process, if it lives.
    pub(crate) fn bridge(&self) -> Option<Pid> {
        self.bridges().into_iter().next()
    }

    /// The bridges of all OpenCodes.
    pub(super) fn bridges(&self) -> Vec<Pid> {
        let mut all = self.processes();
        all.retain(|pid| processes::command_line(*pid).contains(" opencode-bridge"));
        all
    }

    /// All processes of this world.
    pub(crate) fn processes(&self) -> Vec<Pid> {
        processes::of(self.folder.path())
    }

    /// Ends the bridge as no process can prevent. Returns which it was.
    pub(crate) fn kill_bridge(&self) -> Pid {
        let bridge = self.bridge().expect("a bridge");
        processes::kill(bridge);
        self.until("the bridge is gone", || {
            (!self.processes().contains(&bridge)).then_some(())
        });
        bridge
    }

    /// What asyncagents has written down about itself.
    pub(crate) fn log(&self) -> PathBuf {
        self.path("asyncagents.log")
    }

    /// The API requests of all plugins so far, as `GET /session/status`.
    pub(crate) fn api_requests(&self) -> Vec<String> {
        let log = fs::read_to_string(self.api_log()).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }

    fn api_log(&self) -> PathBuf {
        self.path("api.log")
    }

    /// The model's requests of sessions whose prompt contains this.
    pub(crate) fn requests_with(&self, words: &str) -> Vec<Recorded> {
        let mut requests = self.model.requests();
        requests.retain(|request| request.last().contains(words));
        requests
    }

    /// Waits until the model has got such a request of a child, and returns it.
    pub(crate) fn until_child_asks(&self, words: &str) -> Recorded {
        self.until(&format!("a child asks the model: {words}"), || {
            let mut requests = self.requests_with(words).into_iter();
            requests.find(|request| header(request, "x-parent-session-id").is_some())
        })
    }

    /// Waits until there is an answer.
    pub(crate) fn until<T>(&self, what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
        let begun = Instant::now();
        loop {
            if let Some(answer) = ask() {
                return answer;
            }
            assert!(
                begun.elapsed() < PATIENCE,
                "waited {PATIENCE:?} in vain until {what}"
            );
            std::thread::sleep(Duration::from_millis(25));
        }
    }

    /// Watches for a while that something stays as it is: longer than it would take for
    /// something to be said a second time.
    pub(crate) fn stays(&self, what: &str, mut is_so: impl FnMut() -> bool) {
        const WATCHED: Duration = Duration::from_secs(4);
        let begun = Instant::now();
        while begun.elapsed() < WATCHED {
            assert!(is_so(), "no more: {what}");
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// What happened, for whoever has to find out why a test failed.
    fn report(&self) -> String {
        let mut report = String::from("\n== requests to the model\n");
        for request in self.model.requests() {
            let last = request.last();
            let newest: String = last.chars().take(300).collect();
            // Writing into a string cannot fail.
            let _ = writeln!(
                report,
                "{} {} turn {} model {} tools {}: {}",
                header(&request, "x-session-id").unwrap_or("-"),
                request.status,
                request.turn(),
                request.model(),
                request.tool_names().len(),
                newest.replace('\n', "\\n"),
            );
        }
        let mut files: Vec<PathBuf> = Vec::new();
        for folder in [
            self.path(""),
            self.path("home/.local/share/opencode/log"),
            self.path("home/.local/share/asyncagents"),
        ] {
            files.extend(logs_in(&folder));
        }
        for file in files {
            let _ = writeln!(report, "== {}\n{}", file.display(), end_of(&file));
        }
        let _ = writeln!(report, "== processes");
        for pid in self.processes() {
            let _ = writeln!(report, "{pid} {}", processes::command_line(pid));
        }
        report
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let failing = std::thread::panicking();
        if failing {
            eprintln!("{}", self.report());
        }
        // One that is about to start another may be faster than this; then once more.
        let begun = Instant::now();
        loop {
            let left = self.processes();
            if left.is_empty() || begun.elapsed() > PATIENCE {
                break;
            }
            left.into_iter().for_each(processes::kill);
            std::thread::sleep(Duration::from_millis(5));
        }
        let unexpected = self.model.unanswered();
        if !failing && !unexpected.is_empty() {
            panic!("the model was asked unexpectedly:\n{}", self.report());
        }
    }
}

/// A header of a request.
pub(super) fn header<'r>(request: &'r Recorded, name: &str) -> Option<&'r str> {
    let found = request.headers.iter().find(|(known, _)| known == name)?;
    Some(&found.1)
}

fn opencode_config(model_url: &str, agents: Map<String, Value>) -> Value {
    let model = |name: &str| {
        json!({
            "name": name,
            "tool_call": true,
            "reasoning": true,
            "limit": {"context": 128_000, "output": 8192},
        })
    };
    let first = format!("scripted/{FIRST_MODEL}");
    json!({
        "autoupdate": false,
        "share": "disabled",
        "enabled_providers": ["scripted"],
        "model": first,
        "small_model": first,
        "agent": agents,
        "provider": {"scripted": {
            "npm": "@ai-sdk/openai-compatible",
            "name": "Scripted",
            "options": {"baseURL": format!("{model_url}/v1"), "apiKey": "none"},
            "models": {FIRST_MODEL: model(FIRST_MODEL), SECOND_MODEL: model(SECOND_MODEL)},
        }},
    })
}

fn logs_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let mut logs: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|kind| kind == "log"))
        .collect();
    logs.sort();
    logs
}

fn end_of(file: &Path) -> String {
    const LINES: usize = 80;
    let text = fs::read(file).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    let end = &lines[lines.len().saturating_sub(LINES)..];
    let shortened = end.iter().map(|line| line.chars().take(500).collect());
    shortened.collect::<Vec<String>>().join("\n")
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn opencode_program() -> PathBuf {
    repository().join("target/opencode-for-tests/opencode")
}

/// The first test installs it if it is missing.
fn install_opencode() {
    static INSTALL: Once = Once::new();
    INSTALL.call_once_force(|_| {
        let script = repository().join("scripts/opencode-for-tests");
        let Output { status, stderr, .. } = Command::new(script).output().expect("runs");
        let said = String::from_utf8_lossy(&stderr);
        assert!(status.success(), "{said}");
    });
}
