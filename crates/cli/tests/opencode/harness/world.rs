//! A home, a project and a model of a test's own.

use std::{
    env,
    ffi::OsString,
    fmt::Write as _,
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use asyncagents_scripted_model::{ModelServer, Recorded, Script};
use reqwest::{Client, Url};
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::{
    api::config,
    opencode::Opencode,
    playbook::{TASKS_MODEL, are_childs, finished},
    processes::{self, Pid},
    run::Run,
    serve::{Serve, free_port},
    spy,
    traces::{OURSELVES, Traces},
    tui::Tui,
    turns::Turn,
};

/// How long anything may take that a test waits for. Generous: OpenCode starts slowly, and
/// more slowly while other tests run.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);

/// Everything around one OpenCode. When it goes, all its processes go; a request to the model
/// that the test did not foresee fails the test then.
pub(crate) struct World {
    pub(crate) opencode: Opencode,
    folder: TempDir,
    pub(crate) model: ModelServer,
    pub(super) runtime: Runtime,
    pub(super) client: Client,
    /// If it is spied on, and OpenCode tells by itself.
    traces: Option<Traces>,
    // Last, so that the next test begins when this one is gone.
    _turn: Turn,
}

/// How OpenCode has our tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Door {
    None,
    Plugin,
    /// As any MCP client has them, by an entry in its configuration.
    Mcp,
}

/// A world to be made.
pub(crate) struct Setup {
    opencode: Opencode,
    script: Script,
    door: Door,
    spied: bool,
    agents: Map<String, Value>,
    settings: String,
    own_settings: String,
}

impl Setup {
    /// A world with this model and with the plugin.
    pub(crate) fn new(opencode: Opencode, script: Script) -> Self {
        Self {
            opencode,
            script: finished(script),
            door: Door::Plugin,
            spied: false,
            agents: Map::new(),
            settings: String::new(),
            own_settings: String::new(),
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

    /// The same with an `asyncagents.toml` of the user's own.
    pub(crate) fn own_settings(mut self, toml: &str) -> Self {
        toml.clone_into(&mut self.own_settings);
        self
    }

    /// The same, with every API request that is not the test's own written down: see
    /// [`World::api_requests`].
    pub(crate) fn spied(mut self) -> Self {
        self.spied = true;
        self
    }

    /// The same without our plugin.
    pub(crate) fn without_plugin(mut self) -> Self {
        self.door = Door::None;
        self
    }

    /// The same with our MCP server in the plugin's place. Tasks run on the built-in agent then, with
    /// the model that [`tasks_model`](super::playbook::tasks_model) is about.
    pub(crate) fn with_mcp_server(mut self) -> Self {
        self.door = Door::Mcp;
        self
    }

    pub(crate) fn world(self) -> World {
        let turn = Turn::take();
        let runtime = Runtime::new().expect("a runtime");
        processes::hear_ctrl_c(&runtime);
        let model = runtime.block_on(ModelServer::start(self.script));
        let here = Url::parse("http://localhost").expect("a URL");
        let client = asyncagents_http::builder(&here).user_agent(OURSELVES);
        let client = client.timeout(PATIENCE).build();
        let traced = self.spied && self.opencode.is_v2();
        let world = World {
            opencode: self.opencode,
            folder: tempfile::tempdir().expect("a folder"),
            model: model.expect("a port"),
            client: client.expect("a client"),
            traces: traced.then(|| Traces::collect(&runtime)),
            runtime,
            _turn: turn,
        };
        for name in ["home", "tmp", "project"] {
            fs::create_dir(world.path(name)).expect("made");
        }
        let mut config = config(&world.model.url(), self.agents);
        let mut own_settings = self.own_settings;
        if self.door == Door::Mcp {
            let command = [env!("CARGO_BIN_EXE_asyncagents"), "mcp"];
            config["mcp"] = json!({"asyncagents": {"type": "local", "command": command}});
            own_settings += &built_in_agent(&world.model.url());
        }
        fs::write(world.project("opencode.json"), config.to_string()).expect("written");
        fs::write(world.project("asyncagents.toml"), self.settings).expect("written");
        let own = world.path("home/.config/asyncagents");
        fs::create_dir_all(&own).expect("made");
        fs::write(own.join("asyncagents.toml"), own_settings).expect("written");
        world.git(&["init", "--quiet"]);
        world.git(&["add", "."]);
        world.git(&["commit", "--quiet", "--message", "begin"]);
        if self.door == Door::Plugin {
            world.asyncagents(&["setup", "opencode", "--project"]);
        }
        if self.spied && !self.opencode.is_v2() {
            spy::install(&world.project(""), &world.api_log());
        }
        world.prepare_home();
        world
    }
}

impl World {
    /// Claude Code and Codex, as the user has them: on the PATH, and with the scripted model. False if
    /// they cannot be had here.
    pub(crate) fn install_agents(&self) -> bool {
        let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
        let programs = [
            ("claude", "agents-for-tests/claude"),
            ("codex-acp", "acp-for-tests/codex-acp"),
            ("node", "acp-for-tests/node"),
        ];
        fs::create_dir(self.path("bin")).expect("made");
        for (name, program) in programs {
            let Ok(program) = target.join(program).canonicalize() else {
                return false;
            };
            symlink(program, self.path("bin").join(name)).expect("linked");
        }
        let codex = self.path("home/.codex");
        fs::create_dir_all(&codex).expect("made");
        let url = self.model.url();
        let settings = format!(
            "model = \"gpt-5.5\"\nmodel_provider = \"scripted\"\n\
             [model_providers.scripted]\nname = \"scripted\"\nbase_url = \"{url}/v1\"\n\
             env_key = \"CODEX_KEY\"\nwire_api = \"responses\"\nsupports_websockets = false\n\
             [analytics]\nenabled = false\n"
        );
        fs::write(codex.join("config.toml"), settings).expect("written");
        true
    }

    /// A world with this model and with the plugin.
    pub(crate) fn new(opencode: Opencode, script: Script) -> Self {
        Setup::new(opencode, script).world()
    }

    /// Starts a server.
    pub(crate) fn serve(&self) -> Serve<'_> {
        Serve::start(self)
    }

    /// The server that has the sessions of clients which have ended: of OpenCode 2 it may be one
    /// in the background that lives on.
    pub(crate) fn serve_afterwards(&self) -> Serve<'_> {
        if self.opencode == Opencode::V2Background {
            Serve::in_background(self)
        } else {
            Serve::start(self)
        }
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

    /// The same, by a person at a terminal. The arguments are plain words.
    pub(crate) fn typed(&self, args: &[&str]) -> String {
        let program = env!("CARGO_BIN_EXE_asyncagents");
        let line = format!("'{program}' -c worker.autostart=false {}", args.join(" "));
        let mut command = Command::new("script");
        self.dress(&mut command);
        command.args(["-qec", &line, "/dev/null"]);
        answer(command.stdin(Stdio::null()))
    }

    /// The same, as people type it: a worker is started if there is work.
    pub(crate) fn shell(&self, args: &[&str]) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_asyncagents"));
        answer(self.dress(&mut command).args(args))
    }

    /// The same, for one who knows the password of a server.
    pub(crate) fn shell_for(&self, server: &Serve<'_>, args: &[&str]) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_asyncagents"));
        self.dress(&mut command);
        if let Some(password) = server.password() {
            command.env("OPENCODE_SERVER_PASSWORD", password);
        }
        answer(command.args(args))
    }

    /// Has OpenCode 1 take over a session that was exported.
    #[allow(dead_code, reason = "only the benchmark imports")]
    pub(crate) fn imports(&self, export: &str) {
        let file = self.path("export.json");
        fs::write(&file, export).expect("written");
        answer(self.opencode().arg("import").arg(file));
    }

    /// A command of OpenCode, in the project.
    pub(super) fn opencode(&self) -> Command {
        let mut command = Command::new(self.opencode.program());
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
        // Programs of the world come first, if it has some.
        let path = env::var_os("PATH").unwrap_or_default();
        let folders = [self.path("bin")]
            .into_iter()
            .chain(env::split_paths(&path));
        set("PATH", env::join_paths(folders).expect("folders"));
        if self.path("bin").exists() {
            set("ANTHROPIC_BASE_URL", self.model.url().into());
            set("ANTHROPIC_API_KEY", "a-key".into());
            set("CODEX_KEY", "a-key".into());
        }
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
        if self.opencode.is_v2() {
            // Otherwise the TUI takes a free model of a vendor.
            set("OPENCODE_MODELS_PATH", self.path("models.json").into());
        }
        if let Some(traces) = &self.traces {
            set("OTEL_EXPORTER_OTLP_ENDPOINT", traces.url().into());
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

    /// What an OpenCode has to find at home so that it neither waits for the network nor wants
    /// what another world has.
    fn prepare_home(&self) {
        let home = self.path("home/.config/opencode");
        if self.opencode.is_v2() {
            fs::create_dir_all(&home).expect("made");
            let port = json!({"port": free_port()});
            fs::write(home.join("service.json"), port.to_string()).expect("written");
            fs::write(self.path("models.json"), "{}").expect("written");
            return;
        }
        // With any plugin OpenCode 1 installs a package of its own into every folder of
        // configuration, and waits for it for a minute where there is no network. This lets it
        // believe that it is there.
        let lock = json!({"lockfileVersion": 3, "packages": {"": {"dependencies": {"@opencode-ai/plugin": "*"}}}});
        for folder in [self.project(".opencode"), home] {
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

    /// The API requests that others have made so far, as `GET /session/status`.
    pub(crate) fn api_requests(&self) -> Vec<String> {
        if let Some(traces) = &self.traces {
            return traces.requests();
        }
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
            requests.find(is_childs)
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

/// The settings that let tasks run without OpenCode.
fn built_in_agent(model_url: &str) -> String {
    format!(
        "model = \"scripted/{TASKS_MODEL}\"\n\
         [providers.scripted]\nbase_url = \"{model_url}\"\nwire = \"anthropic\"\n"
    )
}

/// What a command prints; it must succeed.
fn answer(command: &mut Command) -> String {
    let output = command.output().expect("runs");
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Whether a request is of a session below another.
pub(super) fn is_childs(request: &Recorded) -> bool {
    are_childs(&request.headers)
}

/// A header of a request.
pub(super) fn header<'r>(request: &'r Recorded, name: &str) -> Option<&'r str> {
    let found = request.headers.iter().find(|(known, _)| known == name)?;
    Some(&found.1)
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
