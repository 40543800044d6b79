//! A home, a project and a model of a test's own.

use std::{
    fmt::Write as _,
    fs,
    io::{self, Write as _},
    os::unix::fs::{PermissionsExt, chown, symlink},
    path::PathBuf,
    process::{Command, Output, Stdio},
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use asyncagents_scripted_model::{ModelServer, Recorded, Reply, Script, When};
use regex::Regex;
use rustix::process::{Pid, Signal, geteuid};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::{Agent, Terminal, notices_in, processes};

/// How long anything may take that a test waits for.
const PATIENCE: Duration = Duration::from_secs(60);

/// The user that owns nothing.
const NOBODY: u32 = 65534;

/// How Codex asks for a title.
const TITLE: &str = "Generate a concise, single-line task title";

const KEY: &str = "sk-ant-scripted-0123456789-0123456789";

/// Everything around one agent. When it goes, all its processes go.
pub(crate) struct World {
    pub(crate) agent: Agent,
    folder: TempDir,
    pub(crate) model: ModelServer,
    runtime: Runtime,
    /// Codex asks once whether its user trusts the hooks.
    was_asked: AtomicBool,
    trusts_hooks: bool,
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) printed: String,
    pub(crate) remarks: String,
}

impl Ended {
    fn of(done: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self {
            code: done.status.code(),
            printed: text(&done.stdout),
            remarks: text(&done.stderr),
        }
    }
}

impl World {
    /// A world in which the agent has our plugin, by `asyncagents setup`. Nothing if the agent cannot
    /// be had here.
    pub(crate) fn new(agent: Agent, script: Script) -> Option<Self> {
        let world = Self::without_plugin(agent, script)?;
        let done = world.asyncagents(&["setup", agent.name()]);
        assert_eq!(done.code, Some(0), "{done:?}");
        Some(world)
    }

    /// The same with a user who does not trust the plugin's hooks.
    pub(crate) fn without_hooks(mut self) -> Self {
        self.trusts_hooks = false;
        self
    }

    /// A world in which the agent does not have our plugin.
    pub(crate) fn without_plugin(agent: Agent, script: Script) -> Option<Self> {
        let Some(program) = agent.program() else {
            let test = std::thread::current();
            let test = test.name().unwrap_or_default();
            // Past the test's own capture, so that `scripts/test` counts it, and on a line of its own.
            let line = format!("\nskipped: {test}: there is no {agent:?} here\n");
            let _ = io::stderr().write_all(line.as_bytes());
            return None;
        };
        // What the agent asks beside the story: titles, and whatever else.
        let titles = Script::new().rule(When::always().contains(TITLE), Reply::text("A story"));
        let script = titles.then(script);
        let script = script.rule(When::always(), Reply::text("Very well."));
        let runtime = Runtime::new().expect("a runtime");
        let model = runtime
            .block_on(ModelServer::start(script))
            .expect("a port");
        let world = Self {
            agent,
            folder: tempfile::tempdir().expect("a folder"),
            model,
            runtime,
            was_asked: AtomicBool::new(false),
            trusts_hooks: true,
        };
        fs::set_permissions(world.folder.path(), fs::Permissions::from_mode(0o755)).expect("set");
        for folder in [
            "bin",
            "home/.config/asyncagents",
            "home/.claude",
            "home/.codex",
            "project",
        ] {
            fs::create_dir_all(world.path(folder)).expect("a folder");
        }
        symlink(program, world.path("bin").join(agent.command())).expect("a link");
        let ours = env!("CARGO_BIN_EXE_asyncagents");
        symlink(ours, world.path("bin/asyncagents")).expect("a link");
        world.write_settings();
        world.hand_over();
        Some(world)
    }

    fn write_settings(&self) {
        let url = self.model.url();
        let project = self.path("project");
        let project = project.display();
        self.write(
            "home/.config/asyncagents/asyncagents.toml",
            &format!(
                "model = \"test/child\"\n[worker]\nidle = \"2s\"\n[providers.test]\n\
                 base_url = \"{url}\"\nwire = \"anthropic\"\n"
            ),
        );
        let approved = &KEY[KEY.len() - 20..];
        let claude = json!({
            "hasCompletedOnboarding": true,
            "theme": "dark",
            "customApiKeyResponses": {"approved": [approved], "rejected": []},
            "projects": {project.to_string(): {
                "hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true,
            }},
        });
        self.write("home/.claude.json", &claude.to_string());
        self.write(
            "home/.codex/config.toml",
            &format!(
                "model = \"gpt-5.5\"\nmodel_provider = \"scripted\"\n\
                 check_for_update_on_startup = false\n\
                 [model_providers.scripted]\nname = \"scripted\"\nbase_url = \"{url}/v1\"\n\
                 env_key = \"SCRIPTED_KEY\"\nwire_api = \"responses\"\nsupports_websockets = false\n\
                 [analytics]\nenabled = false\n\
                 [projects.\"{project}\"]\ntrust_level = \"trusted\"\n\
                 [tui]\nscreen_reader_detection_done = true\n\
                 [tui.model_availability_nux]\n\"gpt-6.1-sol\" = 1\n\
                 [notice.model_migrations]\n\"gpt-5.5\" = \"gpt-6-sol\"\n"
            ),
        );
    }

    /// Gives everything to the user that runs the agent.
    fn hand_over(&self) {
        if as_nobody() {
            let mut unseen = vec![self.folder.path().to_owned()];
            while let Some(path) = unseen.pop() {
                if path.is_symlink() {
                    continue;
                }
                chown(&path, Some(NOBODY), Some(NOBODY)).expect("given");
                if path.is_dir() {
                    let entries = fs::read_dir(&path).expect("a folder").flatten();
                    unseen.extend(entries.map(|entry| entry.path()));
                }
            }
        }
    }

    /// Where things of this world run that are not processes of their own.
    pub(crate) fn block_on<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        fs::write(&path, text).expect("written");
        self.hand_over();
    }

    /// A command of this world, in the project.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = if as_nobody() {
            let id = NOBODY.to_string();
            let mut command = Command::new("setpriv");
            command.args([
                "--reuid",
                &id,
                "--regid",
                &id,
                "--clear-groups",
                "--",
                program,
            ]);
            command
        } else {
            Command::new(program)
        };
        let path = format!(
            "{}:/usr/local/bin:/usr/bin:/bin",
            self.path("bin").display()
        );
        command
            .current_dir(self.path("project"))
            .env_clear()
            .env("PATH", path)
            .env("HOME", self.path("home"))
            .env("LANG", "C.UTF-8")
            .env("TERM", "xterm-256color")
            .env("SHELL", "/bin/sh")
            .env("ANTHROPIC_BASE_URL", self.model.url())
            .env("ANTHROPIC_API_KEY", KEY)
            .env("SCRIPTED_KEY", "none")
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
            .env("DISABLE_AUTOUPDATER", "1")
            .stdin(Stdio::null());
        command
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, program: &str, args: &[&str]) -> Ended {
        let mut command = self.command("timeout");
        command.arg(PATIENCE.as_secs().to_string()).arg(program);
        Ended::of(&command.args(args).output().expect("runs"))
    }

    pub(crate) fn asyncagents(&self, args: &[&str]) -> Ended {
        self.run("asyncagents", args)
    }

    /// Runs one of our hooks by hand, as an agent would: with variables, and its input.
    pub(crate) fn hook(&self, args: &[&str], variables: &[(&str, &str)], input: &Value) -> Ended {
        let mut command = self.command("asyncagents");
        command
            .args(args)
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut hook = command.spawn().expect("runs");
        let mut given = hook.stdin.take().expect("a pipe");
        write!(given, "{input}").expect("read by the hook");
        drop(given);
        Ended::of(&hook.wait_with_output().expect("ends"))
    }

    /// The agent without a window, which must succeed.
    pub(crate) fn print_mode(&self, prompt: &str, options: &[&str]) -> Ended {
        let done = match self.agent {
            Agent::ClaudeCode => {
                let base = ["-p", prompt, "--permission-mode", "default"];
                self.run("claude", &[&base[..], options].concat())
            }
            Agent::Codex => {
                let base = ["exec", "--skip-git-repo-check"];
                self.run("codex", &[&base[..], options, &[prompt]].concat())
            }
        };
        assert_eq!(done.code, Some(0), "{done:?}");
        done
    }

    /// The agent in a terminal, ready to be typed to.
    pub(crate) fn terminal(&self, name: &str, options: &[&str]) -> Terminal<'_> {
        let program = self.agent.command();
        let (base, ready): (&[&str], &str) = match self.agent {
            Agent::ClaudeCode => (&["--permission-mode", "default"], "? for shortcuts"),
            Agent::Codex => (&[], "Ask Codex to do anything"),
        };
        let line = [&[program], base, options].concat();
        let terminal = Terminal::start(self, name, &line);
        if self.agent == Agent::Codex && !self.was_asked.swap(true, Ordering::Relaxed) {
            let choice = if self.trusts_hooks { "2" } else { "3" };
            terminal.answers("Hooks need review", choice, ready);
        }
        terminal.until_shows(ready);
        terminal
    }

    /// The requests of the agent's own model, but for those that ask for a title.
    pub(crate) fn requests(&self) -> Vec<Recorded> {
        let mut requests = self.model.requests();
        requests.retain(|request| {
            let is_own = request.model().contains(self.agent.model());
            is_own && !request.tool_names().is_empty() && !request.text().contains(TITLE)
        });
        requests
    }

    /// Waits until the agent's model is asked something in whose newest part this holds.
    pub(crate) fn until_asked(&self, what: &str, is_so: impl Fn(&Recorded) -> bool) -> Recorded {
        self.until(&format!("the agent's model is asked: {what}"), || {
            self.requests().into_iter().find(|request| is_so(request))
        })
    }

    /// Waits until a task's model is asked something with these words in it.
    pub(crate) fn until_task_asks(&self, words: &str) -> Recorded {
        self.until(&format!("a task's model is asked: {words}"), || {
            let requests = self.model.requests().into_iter();
            let mut childs = requests.filter(|request| request.model().contains("child"));
            childs.find(|request| request.text().contains(words))
        })
    }

    /// Waits until this gives something.
    pub(crate) fn until<T>(&self, what: &str, mut found: impl FnMut() -> Option<T>) -> T {
        let begun = Instant::now();
        loop {
            if let Some(found) = found() {
                return found;
            }
            assert!(begun.elapsed() < PATIENCE, "never: {what}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The results that the agent's model was told in notices, by their tasks, as often as it was.
    pub(crate) fn results_told(&self) -> Vec<String> {
        let new = self.requests().into_iter().map(|request| request.last());
        let notices = new.filter(|new| !notices_in(new).is_empty());
        let result = Regex::new(
            "<result task_id=\\\\?\"(task_[0-9a-f]+)|&lt;result task_id=\"(task_[0-9a-f]+)",
        );
        let result = result.expect("a pattern");
        let results = notices.flat_map(|new| {
            let found = result.captures_iter(&new);
            let found = found.filter_map(|found| {
                found
                    .get(1)
                    .or(found.get(2))
                    .map(|id| id.as_str().to_owned())
            });
            found.collect::<Vec<_>>()
        });
        results.collect()
    }

    /// Waits until the agent's model was told so many results.
    pub(crate) fn until_told(&self, results: usize) {
        self.until(&format!("{results} results are told"), || {
            (self.results_told().len() >= results).then_some(())
        });
    }

    /// Waits until so many tasks have ended.
    pub(crate) fn until_ended(&self, tasks: usize) {
        self.until(&format!("{tasks} tasks have ended"), || {
            let listed = self.asyncagents(&["list", "--all", "--status", "completed", "--json"]);
            let listed: Value = serde_json::from_str(&listed.printed).ok()?;
            (listed.as_array()?.len() >= tasks).then_some(())
        });
    }

    /// How long after a moment the task of this number ended, as the journal says.
    #[allow(dead_code, reason = "the benchmark asks")]
    pub(crate) fn ended_after(&self, number: usize, begun: Instant) -> Duration {
        let (now, wall) = (Instant::now(), SystemTime::now());
        let begun = wall - now.duration_since(begun);
        self.until("the task has ended", || {
            let listed = self.asyncagents(&["list", "--all", "--json"]);
            let listed: Value = serde_json::from_str(&listed.printed).ok()?;
            let mut ends: Vec<&str> = listed
                .as_array()?
                .iter()
                .filter_map(|task| task["ended_at"].as_str())
                .collect();
            ends.sort_unstable();
            let end: jiff::Timestamp = ends.get(number)?.parse().ok()?;
            SystemTime::from(end).duration_since(begun).ok()
        })
    }

    /// The session of Claude Code in which this was said.
    pub(crate) fn session_with(&self, words: &str) -> String {
        let projects = fs::read_dir(self.path("home/.claude/projects")).expect("projects");
        let files = projects
            .flatten()
            .flat_map(|project| fs::read_dir(project.path()).expect("a folder"));
        let files = files
            .flatten()
            .map(|file| file.path())
            .filter(|file| file.is_file());
        let mut files =
            files.filter(|file| fs::read_to_string(file).is_ok_and(|text| text.contains(words)));
        let file = files.next().expect("a session");
        file.file_stem()
            .and_then(|name| name.to_str())
            .expect("a name")
            .to_owned()
    }

    /// The user leaves the agent when everything is told: what would be told again is seen before.
    /// Nothing of ours stays.
    pub(crate) fn leave(&self, terminal: &Terminal<'_>) {
        self.until_gone(" worker");
        self.until_gone("notices wait");
        match self.agent {
            Agent::ClaudeCode => terminal.types("/exit"),
            Agent::Codex => {
                terminal.types("/quit");
                // One runs for all windows of a user.
                self.run("codex", &["app-server", "daemon", "stop"]);
            }
        }
        self.until_gone("asyncagents");
    }

    /// The processes of this world whose command lines have this in them, without the shells that
    /// wait for them.
    pub(crate) fn processes(&self, words: &str) -> Vec<Pid> {
        let mut all = processes::of(self.folder.path());
        all.retain(|pid| {
            let line = processes::command_line(*pid);
            line.contains(words) && !line.contains("tmux") && !line.contains("sh -c ")
        });
        all
    }

    /// Ends processes as no process can prevent.
    pub(crate) fn kill(&self, words: &str) {
        self.signal(words, Signal::KILL);
    }

    /// Stops processes as no process can prevent: they are there and do nothing.
    pub(crate) fn freeze(&self, words: &str) {
        self.signal(words, Signal::STOP);
    }

    /// Lets processes go on that were stopped.
    pub(crate) fn thaw(&self, words: &str) {
        self.signal(words, Signal::CONT);
    }

    fn signal(&self, words: &str, signal: Signal) {
        let found = self.processes(words);
        assert!(!found.is_empty(), "no process {words:?}");
        found
            .into_iter()
            .for_each(|pid| processes::signal(pid, signal));
    }

    /// Waits until nothing runs whose command line has this in it.
    pub(crate) fn until_gone(&self, words: &str) {
        self.until(&format!("{words} has ended"), || {
            self.processes(words).is_empty().then_some(())
        });
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("== what the models were asked\n{}", self.story());
        }
        // What is ended may just have started something.
        while {
            let left = processes::of(self.folder.path());
            left.iter()
                .for_each(|pid| processes::signal(*pid, Signal::KILL));
            !left.is_empty()
        } {}
        let _ = &self.runtime;
    }
}

impl World {
    fn story(&self) -> String {
        let mut story = String::new();
        for request in self.model.requests() {
            let last: String = request.last().chars().rev().take(900).collect();
            let last: String = last.chars().rev().collect();
            let _ = writeln!(
                story,
                "-- {} (turn {}): {last}",
                request.model(),
                request.turn()
            );
        }
        for log in ["asyncagents.db.mcp.log", "asyncagents.db.worker.log"] {
            let file = self.path("home/.local/share/asyncagents").join(log);
            let text = fs::read_to_string(file).unwrap_or_default();
            let _ = writeln!(story, "-- {log}\n{text}");
        }
        story
    }
}

/// Whether stories run as nobody: the tests are root's, and nobody may run the program.
fn as_nobody() -> bool {
    static NOBODY_CAN: OnceLock<bool> = OnceLock::new();
    *NOBODY_CAN.get_or_init(|| {
        if !geteuid().is_root() {
            return false;
        }
        let id = NOBODY.to_string();
        let mut command = Command::new("setpriv");
        command.args(["--reuid", &id, "--regid", &id, "--clear-groups", "--"]);
        let tried = command
            .args([env!("CARGO_BIN_EXE_asyncagents"), "--version"])
            .current_dir("/")
            .output();
        let can = tried.is_ok_and(|tried| tried.status.success());
        if !can {
            eprintln!(
                "these stories run as root: another user may not run the program where it is"
            );
        }
        can
    })
}
