//! A user with one agent, asyncagents, and a model that both ask.

use std::{
    fs,
    io::{self, Write as _},
    os::unix::fs::symlink,
    process::{Output, Stdio},
    time::{Duration, Instant},
};

use asyncagents_scripted_model::{ModelServer, Recorded, Reply, Script, When};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::{agent::Agent, home::Home, processes};

/// How long anything may take that a story waits for.
const PATIENCE: Duration = Duration::from_secs(60);

/// A user, an agent and a model. When it goes, all its processes go.
pub(crate) struct World {
    pub(crate) agent: Agent,
    pub(crate) home: Home,
    pub(crate) model: ModelServer,
    _runtime: Runtime,
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) printed: String,
    /// Only for failures.
    #[allow(dead_code, reason = "it is printed")]
    remarks: String,
}

impl World {
    /// A world in which the models say this. Nothing if the agent cannot be had here.
    pub(crate) fn new(agent: Agent, script: impl FnOnce(&Home) -> Script) -> Option<Self> {
        let Some(command) = agent.command() else {
            let test = std::thread::current();
            let test = test.name().unwrap_or_default();
            // Past the test's own capture, so that `scripts/test` counts it, and on a line of its own.
            let line = format!("\nskipped: {test}: there is no {agent:?} here\n");
            let _ = io::stderr().write_all(line.as_bytes());
            return None;
        };
        let home = Home::new();
        // What an agent asks beside the story: titles, and whatever else.
        let beside = Reply::text("Very well.").usage(0, 0, 0);
        let script = script(&home).rule(When::always(), beside);
        let runtime = Runtime::new().expect("a runtime");
        let model = runtime.block_on(ModelServer::start(script));
        let model = model.expect("a port");
        home.ask_at(&model.url());
        home.write(
            "home/.config/asyncagents/asyncagents.toml",
            &format!(
                "model = \"test/parent\"\n[worker]\nidle = \"2s\"\n[providers.test]\n\
                 base_url = \"{}\"\nwire = \"anthropic\"\n\
                 [permissions]\nallow = [\"bash(cat *)\"]\n",
                model.url()
            ),
        );
        home.write("bin/.keep", "");
        let ours = env!("CARGO_BIN_EXE_asyncagents").to_owned();
        let (program, name) = (
            command.iter().rfind(|word| word.starts_with('/')),
            agent.program(),
        );
        let links = [
            ("asyncagents", Some(&ours)),
            (name, program),
            // Where it is run by Node.js.
            (
                "node",
                command
                    .first()
                    .filter(|_| command.len() > 1 && name != "opencode"),
            ),
        ];
        for (name, program) in links {
            if let Some(program) = program {
                symlink(program, home.path("bin").join(name)).expect("a link");
            }
        }
        Some(Self {
            agent,
            home,
            model,
            _runtime: runtime,
        })
    }

    /// One with a child that may do anything, and a command of it that nobody ends.
    pub(crate) fn at_work_for_ever(agent: Agent, extra: Script) -> Option<(Self, String)> {
        let script = move |_: &_| {
            let command = "echo begun >> begun.txt; until [ -e never ]; do sleep 0.1; done";
            let runs = agent.runs_in_our_sandbox(command);
            extra.rule(asked("Work for ever"), runs)
        };
        let world = Self::new(agent, script)?;
        let id = world.launch_free("Work for ever");
        let begun = world.home.path("project/begun.txt");
        world.until("the command runs", || begun.exists().then_some(()));
        Some((world, id))
    }

    /// Says more in the user's settings.
    pub(crate) fn set(&self, settings: &str) {
        let name = "home/.config/asyncagents/asyncagents.toml";
        let known = fs::read_to_string(self.home.path(name)).expect("settings");
        self.home.write(name, &format!("{known}{settings}"));
    }

    pub(crate) fn asyncagents(&self, args: &[&str]) -> Ended {
        let mut command = self.home.command(&self.program());
        let done = command.args(args).stdin(Stdio::null()).output();
        Ended::of(&done.expect("runs"))
    }

    /// What a command prints as JSON.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let done = self.asyncagents(args);
        serde_json::from_str(&done.printed).unwrap_or_else(|_| unreachable!("{done:?}"))
    }

    fn program(&self) -> String {
        self.home.path("bin/asyncagents").display().to_string()
    }

    /// Begins a conversation with the built-in agent, and says what it is called.
    pub(crate) fn conversation(&self, prompt: &str) -> String {
        let done = self.asyncagents(&["run", prompt]);
        assert_eq!(done.code, Some(0), "{done:?}");
        let sessions = self.json(&["sessions", "--json"]);
        sessions[0]["id"].as_str().expect("an ID").to_owned()
    }

    /// Launches a task in the agent, and says what it is called.
    pub(crate) fn launch(&self, prompt: &str) -> String {
        self.launch_with(prompt, "ask")
    }

    /// The same for a task that asks for no permission.
    pub(crate) fn launch_free(&self, prompt: &str) -> String {
        self.launch_with(prompt, "yolo")
    }

    fn launch_with(&self, prompt: &str, permission: &str) -> String {
        self.launched(&["--permission", permission, prompt])
    }

    /// Launches a task in the agent with these arguments.
    pub(crate) fn launched(&self, arguments: &[&str]) -> String {
        let options = ["task", "--json", "--host", self.agent.name()];
        let done = self.asyncagents(&[&options[..], arguments].concat());
        assert_eq!(done.code, Some(0), "{done:?}");
        let task: Value = serde_json::from_str(&done.printed).expect("json");
        task["id"].as_str().expect("an ID").to_owned()
    }

    /// The question of a task.
    pub(crate) fn question(&self, id: &str) -> String {
        self.until("it asks", || self.questions(id).into_iter().next())
    }

    /// All its questions.
    pub(crate) fn questions(&self, id: &str) -> Vec<String> {
        let task = self.task(id);
        let open = task["progress"]["questions"]
            .as_array()
            .into_iter()
            .flatten();
        open.filter_map(|question| question["id"].as_str().map(str::to_owned))
            .collect()
    }

    /// Refuses what is asked.
    pub(crate) fn reject(&self, id: &str, question: &str) {
        let done = self.asyncagents(&["answer", id, "reject", "--question", question]);
        assert!(matches!(done.code, Some(0 | 3)), "{done:?}");
    }

    /// Grants a permission once.
    pub(crate) fn permit(&self, id: &str, question: &str) {
        self.answer(id, question, "once");
    }

    /// Answers a question, which a person does at a terminal.
    pub(crate) fn answer(&self, id: &str, question: &str, answer: &str) {
        let program = self.program();
        let line = format!("{program} answer {id} {answer} --question {question}");
        let mut command = self.home.command("/usr/bin/script");
        command
            .args(["-qec", &line, "/dev/null"])
            .stdin(Stdio::null());
        let done = Ended::of(&command.output().expect("runs"));
        assert!(matches!(done.code, Some(0 | 3)), "{done:?}");
    }

    /// The task, as `output` shows it.
    pub(crate) fn task(&self, id: &str) -> Value {
        self.json(&["output", id, "--json"])
    }

    /// Waits until a task has ended.
    pub(crate) fn ended(&self, id: &str) -> Value {
        self.until(&format!("{id} has ended"), || {
            let task = self.task(id);
            let is_over = !matches!(
                task["status"].as_str(),
                Some("queued" | "running" | "resumed")
            );
            is_over.then_some(task)
        })
    }

    /// The result of a task that has to succeed.
    pub(crate) fn result(&self, id: &str) -> String {
        let task = self.ended(id);
        assert_eq!(task["status"], "completed", "{task}\n{}", self.told());
        task["answer"].as_str().unwrap_or_default().to_owned()
    }

    /// Waits until the agent's model is asked something with these words in what is new.
    pub(crate) fn until_asked(&self, words: &str) -> Recorded {
        self.until(&format!("the model is asked: {words}"), || {
            self.requests()
                .into_iter()
                .find(|request| request.last().contains(words))
        })
    }

    /// The requests of the agent, but for those about titles and the like.
    pub(crate) fn requests(&self) -> Vec<Recorded> {
        let mut requests = self.model.requests();
        requests.retain(|request| request.model() != "parent" && !request.tool_names().is_empty());
        requests
    }

    /// How often the agent's model was newly asked something with these words.
    pub(crate) fn times_asked(&self, words: &str) -> usize {
        let requests = self.requests();
        requests
            .iter()
            .filter(|request| request.last().contains(words))
            .count()
    }

    /// Waits until this gives something.
    pub(crate) fn until<T>(&self, what: &str, mut found: impl FnMut() -> Option<T>) -> T {
        let begun = Instant::now();
        loop {
            if let Some(found) = found() {
                return found;
            }
            assert!(begun.elapsed() < PATIENCE, "never: {what}\n{}", self.told());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The processes whose command lines have this in them.
    pub(crate) fn processes(&self, words: &str) -> Vec<Pid> {
        let folder = self.home.path("");
        let all = processes::all_with(folder.to_str().expect("text").trim_end_matches('/'));
        let is_one = |pid: &Pid| processes::command_line(*pid).contains(words);
        all.into_iter().filter(is_one).collect()
    }

    /// Ends processes by their command lines, as no process can prevent.
    pub(crate) fn kill(&self, words: &str) {
        for pid in self.signal(words, Signal::KILL) {
            self.until("it is gone", || {
                processes::command_line(pid).is_empty().then_some(())
            });
        }
    }

    /// Sends a signal to processes by their command lines.
    pub(crate) fn signal(&self, words: &str, signal: Signal) -> Vec<Pid> {
        let found = self.processes(words);
        assert!(!found.is_empty(), "no process {words:?}");
        for pid in &found {
            let _ = kill_process(*pid, signal);
        }
        found
    }

    /// Waits until no process has this in its command line.
    pub(crate) fn until_gone(&self, words: &str) {
        self.until(&format!("{words} is gone"), || {
            self.processes(words).is_empty().then_some(())
        });
    }

    /// What the models were asked last, and what the tasks have come to, for a failure.
    fn told(&self) -> String {
        let requests = self.model.requests();
        let told = requests.iter().map(|request| {
            let last: Vec<char> = request.last().chars().collect();
            let end: String = last[last.len().saturating_sub(400)..].iter().collect();
            format!("-- {} (turn {}): {end}", request.model(), request.turn())
        });
        let tasks = self.asyncagents(&["list", "--all", "--json"]).printed;
        told.chain([tasks]).collect::<Vec<_>>().join("\n")
    }
}

/// When the agent's own model is asked this.
pub(crate) fn asked(words: &str) -> When {
    When::always().tools(true).last(words)
}

/// When the agent's own model is shown what a command printed.
pub(crate) fn printed(words: &str) -> When {
    asked(words)
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
