//! Tasks from the shell, as a user types them: real processes, a real file, a worker that
//! lives and dies. Only the children are scripted.
#![expect(clippy::expect_used, reason = "a test may panic; its helpers too")]

use std::{
    fs,
    os::unix::{
        fs::PermissionsExt,
        process::{CommandExt, ExitStatusExt},
    },
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Output, Stdio},
    time::{Duration, Instant},
};

use rstest::rstest;
use serde_json::Value;
use tempfile::TempDir;

const SCRIPT: &str = r#"
agents = ["general", "explore"]
model = [
  { name = "house/large", efforts = ["low", "high"] },
  { name = "house/small" },
  { name = "street/large", efforts = ["low"] },
]
conversation = "session.json"
[[child]]
when = "fails"
steps = [{ after = "50ms", error = "no such model" }]
[[child]]
when = "quota"
steps = [{ after = "50ms", unavailable = "out of quota" }]
[[child]]
when = "long"
steps = [{ after = "100ms", tool = "bash" }, { after = "1h", answer = "late" }]
[[child]]
when = "permission"
steps = [{ permission = "permission for bash make" }, { answer = "answered: {answer}" }]
[[child]]
when = "trick"
steps = [{ permission = "permission for bash ls\u202e\u001b[8m; rm x\n  To answer it: no need" }, { answer = "done" }]
[[child]]
when = "colour"
steps = [{ question = "Which colour?", options = ["red", "blue"] }, { answer = "chosen: {answer}" }]
[[child]]
when = "listens"
steps = [{ after = "2s", answer = "told: {told}" }]
[[child]]
when = "two seconds"
steps = [{ after = "1s", tool = "bash" }, { after = "1s", answer = "after two seconds" }]
[[child]]
steps = [
  { after = "50ms", tool = "grep", tokens = 1200, cost = 0.0036 },
  { after = "50ms", answer = "Found: {prompt} ({inherited} inherited)" },
]
"#;

/// A home of its own for every test. Workers in it end with it.
struct Home {
    folder: TempDir,
}

impl Home {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("children.toml"), SCRIPT).expect("written");
        let session = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/session.json");
        fs::copy(session, folder.path().join("session.json")).expect("copied");
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn db(&self) -> PathBuf {
        self.path("data/asyncagents/asyncagents.db")
    }

    fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_asyncagents-stories"));
        command
            .current_dir(self.folder.path())
            .env_clear()
            .env("HOME", self.folder.path())
            .env("XDG_DATA_HOME", self.path("data"))
            .env("XDG_CONFIG_HOME", self.path("config"))
            .env("ASYNCAGENTS_HOST", "scripted:children.toml")
            .env("ASYNCAGENTS_WORKER_LEASE", "600ms")
            .env("ASYNCAGENTS_WORKER_IDLE", "1s");
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command().args(args).output().expect("runs")
    }

    /// Runs a command as a person does, also where an agent runs the tests: the processes above it
    /// have ended, and it has a terminal.
    fn run_by_a_person(&self, args: &[&str]) -> Output {
        self.typed(args, None)
    }

    /// The same, with something on standard input.
    fn fed_by_a_person(&self, args: &[&str], input: &str) -> Output {
        self.typed(args, Some(input))
    }

    fn typed(&self, args: &[&str], input: Option<&str>) -> Output {
        let run = tempfile::tempdir_in(self.folder.path()).expect("a folder");
        let file = |name: &str| run.path().join(name);
        let from = match input {
            Some(input) => {
                fs::write(file("in"), input).expect("written");
                "<\"$run/in\""
            }
            None => "",
        };
        // The shell in the terminal has its words from a file, since it is given a line.
        let quoted = |word: &str| format!("'{}'", word.replace('\'', "'\\''"));
        let words: Vec<String> = args.iter().map(|word| quoted(word)).collect();
        let typed = format!(
            "run=$1; \"$2\" {} {from} >\"$run/out\" 2>\"$run/err\"",
            words.join(" ")
        );
        fs::write(file("typed"), typed).expect("written");
        let alone = "run=$1; ( while [ ! -e \"$run/go\" ]; do sleep 0.01; done; \
            script -qec \"sh '$run/typed' '$run' '$2'\" /dev/null; echo $? >\"$run/code.new\"; \
            mv \"$run/code.new\" \"$run/code\" ) >/dev/null 2>&1 </dev/null &";
        let program = self.command();
        let mut shell = Command::new("/bin/sh");
        shell.current_dir(self.folder.path()).env_clear();
        shell.env("PATH", "/usr/bin:/bin");
        for (name, value) in program.get_envs() {
            shell.env(name, value.unwrap_or_default());
        }
        shell.args(["-c", alone, "sh"]).arg(run.path());
        shell.arg(program.get_program());
        assert!(shell.status().expect("runs").success());
        fs::write(file("go"), "").expect("written");
        self.until("the command ends", || file("code").exists());
        let read = |name| fs::read(file(name)).expect("read");
        let code: i32 = text(&read("code")).parse().expect("a number");
        Output {
            status: ExitStatus::from_raw(code << 8),
            stdout: read("out"),
            stderr: read("err"),
        }
    }

    /// Runs a command that must succeed; returns what it answers.
    fn ask(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {output:?}");
        text(&output.stdout)
    }

    fn launch(&self, prompt: &str) -> String {
        self.ask(&["task", prompt])
    }

    fn json(&self, args: &[&str]) -> Value {
        let output = self.run(args);
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    fn status(&self, id: &str) -> String {
        let task = self.json(&["output", id, "--json"]);
        task["status"].as_str().expect("a status").to_owned()
    }

    fn until(&self, what: &str, mut is_so: impl FnMut() -> bool) {
        let begun = Instant::now();
        while !is_so() {
            assert!(begun.elapsed() < Duration::from_secs(30), "never: {what}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The worker's process, if it lives.
    fn worker(&self) -> Option<i32> {
        let db = self.db();
        let is_ours = |line: &str| line.contains("worker") && line.contains(&*db.to_string_lossy());
        for entry in fs::read_dir("/proc").expect("processes").flatten() {
            let pid = entry.file_name().to_string_lossy().parse::<i32>();
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            if let (Ok(pid), true) = (pid, is_ours(&line)) {
                return Some(pid);
            }
        }
        None
    }

    fn signal(&self, signal: &str) {
        let pid = self.worker().expect("a worker").to_string();
        let sent = Command::new("kill")
            .args([signal, &pid])
            .status()
            .expect("sent");
        assert!(sent.success());
    }

    /// Stops the worker, outside of a transaction.
    fn stop_worker(&self) {
        let db = rusqlite::Connection::open(self.db()).expect("opens");
        db.busy_timeout(Duration::ZERO).expect("set");
        self.until("it is stopped", || {
            self.signal("-STOP");
            let pid = self.worker().expect("a worker");
            let state = format!("/proc/{pid}/stat");
            self.until("the signal has come", || {
                fs::read_to_string(&state).is_ok_and(|stat| stat.contains(") T "))
            });
            let is_inside = db.execute_batch("BEGIN IMMEDIATE; ROLLBACK").is_err();
            if is_inside {
                self.signal("-CONT");
            }
            !is_inside
        });
    }

    /// The ends that the parent was told of, in one message or another: the line of each.
    fn told(&self) -> Vec<String> {
        let file = self.path("data/asyncagents/asyncagents.db.sessions/shell.jsonl");
        let messages = fs::read_to_string(file).unwrap_or_default();
        let ends = messages.lines().flat_map(|line| {
            let line: Value = serde_json::from_str(line).expect("JSON");
            let visible = line["visible"].as_str().expect("text").to_owned();
            let lines = visible.lines().map(str::to_owned);
            let ends = lines.filter(|line| line.starts_with(['✓', '✗', '⊘']));
            ends.collect::<Vec<_>>()
        });
        ends.collect()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if self.worker().is_some() {
            self.signal("-KILL");
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec())
        .expect("text")
        .trim_end()
        .to_owned()
}

#[test]
fn a_task_outlives_the_command_that_launched_it() {
    let home = Home::new();
    let output = home.run(&["task", "the slow query"]);
    let id = text(&output.stdout);
    assert!(
        id.starts_with("task_") && id.len() == 13,
        "only the ID: {id}"
    );
    assert!(
        text(&output.stderr).contains("--follow"),
        "the rest is beside it"
    );
    let answer = home.ask(&["output", &id, "--block"]);
    assert!(
        answer.contains("is completed: \"the slow query\" by general"),
        "{answer}"
    );
    assert!(answer.contains("1 tool call (grep 1)"), "{answer}");
    assert!(answer.contains("1,200 tokens; $0.0036"), "{answer}");
    assert!(
        answer.ends_with("Found: the slow query (0 inherited)"),
        "{answer}"
    );
    home.until("the parent is told", || !home.told().is_empty());
    assert_eq!(home.told().len(), 1);
    assert!(home.told()[0].starts_with("✓ **Agent \"the slow query\" finished in "));
}

#[test]
fn a_worker_without_work_ends_and_the_next_task_starts_another() {
    let home = Home::new();
    home.launch("one");
    home.until("a worker lives", || home.worker().is_some());
    home.until("it ends", || home.worker().is_none());
    let id = home.launch("two");
    assert!(home.ask(&["output", &id, "--block"]).contains("Found: two"));
}

#[test]
fn a_worker_that_is_killed_is_replaced_and_nothing_is_lost_or_done_twice() {
    let home = Home::new();
    let id = home.launch("two seconds");
    home.until("it runs", || home.status(&id) == "running");
    home.signal("-KILL");
    let answer = home.ask(&["output", &id, "--block"]);
    assert!(answer.contains("after two seconds"), "{answer}");
    home.until("the parent is told", || !home.told().is_empty());
    let task = home.json(&["output", &id, "--json"]);
    let session = task["session"].as_str().expect("a session").to_owned();
    let file = home.path("data/asyncagents/asyncagents.db.sessions");
    let lines = fs::read_to_string(file.join(format!("{session}.jsonl"))).expect("lines");
    assert_eq!(lines.matches("\"prompted\"").count(), 1);
    assert_eq!(home.told().len(), 1);
}

#[test]
fn a_worker_that_is_asked_to_end_does_so_within_five_seconds_and_leaves_its_tasks_resumable() {
    let home = Home::new();
    let id = home.launch("two seconds");
    home.until("it runs", || home.status(&id) == "running");
    let begun = Instant::now();
    home.signal("-TERM");
    home.until("it has ended", || home.worker().is_none());
    assert!(
        begun.elapsed() < Duration::from_secs(5),
        "{:?}",
        begun.elapsed()
    );
    let answer = home.ask(&["output", &id, "--block"]);
    assert!(
        answer.contains("after two seconds"),
        "the next one went on: {answer}"
    );
}

#[test]
fn a_worker_that_is_stopped_is_replaced_and_ends_when_it_wakes_up() {
    let home = Home::new();
    let running = home.launch("two seconds");
    home.until("it runs", || home.status(&running) == "running");
    let stopped = home.worker().expect("a worker");
    home.stop_worker();
    let new = home.launch("another");
    // Its lease runs out after 600 ms.
    home.until("the new task is done", || home.status(&new) == "completed");
    home.until("so is the old one", || home.status(&running) == "completed");
    let sent = Command::new("kill")
        .args(["-CONT", &stopped.to_string()])
        .status();
    assert!(sent.expect("sent").success());
    home.until("the stopped one has ended", || {
        !Path::new(&format!("/proc/{stopped}/exe")).exists()
    });
    home.until("both are told", || home.told().len() >= 2);
    assert_eq!(home.told().len(), 2);
}

#[test]
fn a_worker_that_is_stopped_while_it_writes_is_named() {
    let home = Home::new();
    home.launch("long");
    home.until("a worker lives", || home.worker().is_some());
    home.stop_worker();
    // Its transaction, as it were: a lock on a file is the same, whoever has it.
    let db = rusqlite::Connection::open(home.db()).expect("opens");
    db.execute_batch("BEGIN IMMEDIATE").expect("locked");
    let stopped = home.worker().expect("a worker").to_string();
    // Its name is not in the lock any more when another worker has tried to take over.
    let lock = home.path("data/asyncagents/asyncagents.db.worker.lock");
    let signed = fs::read(&lock).expect("signed");
    fs::write(&lock, "").expect("written");
    let output = home.run(&["task", "one"]);
    fs::write(&lock, signed).expect("written");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = text(&output.stderr);
    assert!(said.contains(&format!("kill -CONT {stopped}")), "{said}");
    db.execute_batch("ROLLBACK").expect("unlocked");
    home.signal("-CONT");
    home.ask(&["task", "one"]);
}

#[test]
fn a_worker_whose_database_was_deleted_does_not_keep_a_new_one_from_work() {
    let home = Home::new();
    home.launch("long");
    home.until("a worker lives", || home.worker().is_some());
    for ending in ["", "-wal", "-shm"] {
        let mut file = home.db().into_os_string();
        file.push(ending);
        fs::remove_file(file).expect("removed");
    }
    let id = home.launch("one");
    home.until("it is done", || home.status(&id) == "completed");
}

/// Also if nobody comes after it: its tasks would be paid for, and their answers lost.
#[rstest]
#[case::deleted(false)]
#[case::replaced(true)]
fn a_worker_whose_database_was_deleted_ends(#[case] replaced: bool) {
    let home = Home::new();
    home.launch("long");
    home.until("a worker lives", || home.worker().is_some());
    for ending in ["-wal", "-shm", ""] {
        let mut file = home.db().into_os_string();
        file.push(ending);
        fs::remove_file(&file).expect("removed");
        if replaced && ending.is_empty() {
            fs::write(file, "").expect("written");
        }
    }
    home.until("it has ended", || home.worker().is_none());
    let log = home.path("data/asyncagents/asyncagents.db.worker.log");
    let log = fs::read_to_string(log).expect("a log");
    assert!(
        log.contains("the database was deleted or replaced"),
        "{log}"
    );
}

#[test]
fn a_worker_of_an_older_version_is_named() {
    let home = Home::new();
    home.ask(&["-c", "worker.autostart=false", "task", "one"]);
    // It holds its lock, and has written its process there and nothing else.
    let lock = home.path("data/asyncagents/asyncagents.db.worker.lock");
    fs::write(&lock, "4242").expect("written");
    let held = fs::File::open(&lock).expect("there");
    held.lock().expect("locked");
    let said = text(&home.run(&["list"]).stderr);
    assert!(said.contains("older version, process 4242"), "{said}");
    let refused = home.run(&["worker"]);
    assert_ne!(refused.status.code(), Some(0), "{refused:?}");
}

#[test]
fn a_second_worker_is_refused() {
    let home = Home::new();
    home.launch("long");
    home.until("a worker lives", || home.worker().is_some());
    let output = home.run(&["worker"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr).contains("is running already"),
        "{output:?}"
    );
}

#[test]
fn without_autostart_a_task_waits_for_a_worker() {
    let home = Home::new();
    let id = home.ask(&["-c", "worker.autostart=false", "task", "one"]);
    let output = home.run(&["-c", "worker.autostart=false", "output", &id]);
    assert_eq!(output.status.code(), Some(3), "not yet");
    assert!(text(&output.stdout).contains("is queued"), "{output:?}");
    assert_eq!(home.worker(), None);
}

#[test]
fn a_forked_task_has_the_conversation() {
    let home = Home::new();
    let id = home.ask(&["task", "--fork", "use it"]);
    let answer = home.ask(&["output", &id, "--block"]);
    assert!(answer.contains("(forked)"), "{answer}");
    assert!(
        !answer.contains("(0 inherited)") && answer.contains("inherited)"),
        "{answer}"
    );
}

#[test]
fn a_finished_task_is_resumed_and_a_running_one_cancelled() {
    let home = Home::new();
    let id = home.launch("one");
    home.ask(&["output", &id, "--block"]);
    assert_eq!(home.ask(&["resume", &id, "two"]), id);
    let answer = home.ask(&["output", &id, "--block"]);
    assert!(
        answer.contains("(resumed)") && answer.contains("Found: two"),
        "{answer}"
    );
    let long = home.launch("long");
    home.until("it runs", || home.status(&long) == "running");
    assert_eq!(
        home.ask(&["cancel", &long[5..]]),
        format!("Cancelled {long}.")
    );
    let output = home.run(&["output", &long]);
    assert_eq!(output.status.code(), Some(4), "cancelled");
    let list = home.ask(&["list"]);
    assert!(
        list.contains("\n2 tasks: 1 completed, 1 cancelled; "),
        "{list}"
    );
    assert_eq!(
        home.ask(&["list", "--status", "running"]),
        "No background tasks found"
    );
    assert_eq!(home.ask(&["clear"]), "Cleared 2 tasks; 0 were stopped.");
    assert_eq!(home.ask(&["list"]), "No background tasks found");
}

#[test]
fn following_shows_progress_beside_the_answer() {
    let home = Home::new();
    let id = home.launch("two seconds");
    let output = home.run(&["output", &id, "--follow"]);
    assert_eq!(output.status.code(), Some(0));
    let progress = text(&output.stderr);
    assert!(progress.contains("1 tool call (bash 1)"), "{progress}");
    assert!(text(&output.stdout).ends_with("after two seconds"));
    assert!(
        !text(&output.stdout).contains("running"),
        "the answer alone"
    );
    let output = home.run(&["task", "--follow", "fails"]);
    assert_eq!(output.status.code(), Some(4), "as output says it");
    assert!(
        text(&output.stdout).contains("Error: no such model"),
        "{output:?}"
    );
    let id = home.launch("two seconds");
    let output = home.run(&["output", &id, "--follow", "--json"]);
    let lines: Vec<Value> = text(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert!(lines.len() >= 3, "{lines:?}");
    assert_eq!(lines[lines.len() - 1]["answer"], "after two seconds");
}

#[test]
fn json_has_what_a_program_needs() {
    let home = Home::new();
    let launched = home.json(&[
        "task",
        "fails",
        "--json",
        "--max-turns",
        "3",
        "--max-cost",
        "0.5",
    ]);
    assert_eq!(launched["status"], "queued");
    assert_eq!(launched["budget"]["turns"], 3);
    assert_eq!(launched["budget"]["cost_usd"], 0.5);
    assert_eq!(launched["budget"]["time_ms"], 3_600_000);
    let id = launched["short_id"].as_str().expect("an ID");
    let ended = home.json(&["output", id, "--block", "--json"]);
    assert_eq!(ended["status"], "error");
    assert_eq!(ended["error"], "no such model");
    assert!(
        ended["retrieved_at"]
            .as_str()
            .expect("a time")
            .ends_with('Z')
    );
    let list = home.json(&["list", "--json"]);
    assert_eq!(list[0]["id"], launched["id"]);
    assert_eq!(list[0]["parent_session"], "shell");
    assert_eq!(list[0]["forked"], false);
}

#[test]
fn the_childs_conversation_can_be_read() {
    let home = Home::new();
    let id = home.launch("one");
    home.ask(&["output", &id, "--block"]);
    let shown = home.ask(&["output", &id, "--full-session"]);
    assert!(
        shown.contains("\nUser: [task_") && shown.contains("]\none\n"),
        "{shown}"
    );
    assert!(
        shown.contains("[Tool: grep]") && !shown.contains("[Tool result]"),
        "{shown}"
    );
    let shown = home.ask(&["output", &id, "--full-session", "--tool-results"]);
    assert!(shown.contains("[Tool result]\n(scripted)"), "{shown}");
    let all = home.json(&["output", &id, "--full-session", "--json"]);
    let messages = all["conversation"].as_array().expect("messages");
    assert_eq!(messages.len(), 2);
    let first = messages[0]["id"].as_str().expect("an ID");
    let rest = home.json(&["output", &id, "--full-session", "--since", first, "--json"]);
    assert_eq!(rest["conversation"][0], messages[1]);
    let newest = home.json(&["output", &id, "--full-session", "--limit", "1", "--json"]);
    assert_eq!(newest["conversation"], rest["conversation"]);
    let output = home.run(&["output", &id, "--full-session", "--since", "nothing"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr).contains("has no message `nothing`"),
        "{output:?}"
    );
}

/// The setting is a person's own: a worker finds it in the file.
#[test]
fn a_task_whose_model_is_out_of_quota_goes_on_with_the_next_one_and_says_so() {
    let home = Home::new();
    fs::create_dir_all(home.path("config/asyncagents")).expect("a folder");
    let settings = "fallback_models = [\"street/large\", \"house/small\"]\n[models]\nallowed = [\"house/*\"]\n";
    fs::write(home.path("config/asyncagents/asyncagents.toml"), settings).expect("written");
    let task = home.ask(&["task", "quota", "--model", "house/large"]);
    let output = home.ask(&["output", task.trim(), "--block"]);
    assert!(
        output.contains("Found: The model that worked on this"),
        "{output}"
    );
    let json: Value =
        serde_json::from_str(&home.ask(&["output", task.trim(), "--json"])).expect("JSON");
    let progress = &json["progress"];
    assert_eq!(progress["model"], "house/small", "{json}");
    let fallback = serde_json::json!([
        {"from": "house/large", "to": "house/small", "why": "out of quota"},
    ]);
    assert_eq!(progress["fallbacks"], fallback, "{json}");
    let project = home.path("asyncagents.toml");
    fs::write(project, "fallback_models = [\"evil/model\"]\n").expect("written");
    let refused = home.run(&["list"]);
    let said = text(&refused.stderr);
    assert!(
        said.contains("`fallback_models` is not for a project to say"),
        "{said}"
    );
}

#[rstest]
#[case(&["output", "zzz"], "there is no task `zzz`; `asyncagents list` shows which there are")]
#[case(&["cancel", "task_0123"], "there is no task `task_0123`")]
#[case(&["resume", "0123", "more"], "there is no task `0123`")]
#[case(&["message", "0123", "more"], "there is no task `0123`; `asyncagents list` shows which there are")]
#[case(&["message", "0123", " "], "the message is empty; say what the task is to be told")]
#[case(&["answer", "0123", "reject"], "there is no task `0123`; `asyncagents list` shows which there are")]
#[case(&["answer", "0123", " "], "`decision` is missing; say `once`, `always` or `reject`, or answer with a text or with values")]
#[case(&["answer", "0123", "the", "blue one"], "put an answer of several words in quotes")]
#[case(&["task", "  "], "the prompt is empty")]
#[case(&["task", "x", "--agent", "wizard"], "there is no agent `wizard`; there are general and explore")]
#[case(&["task", "x", "--model", "house/larg"], "there is no model `house/larg` here; there are house/large, house/small and street/large")]
#[case(&["task", "x", "--model", "house/small", "--effort", "high"], "the model `house/small` has no effort `high`; it has none to choose from")]
#[case(&["task", "x", "--model", "street/large", "--effort", "high"], "the model `street/large` has no effort `high`; it has low")]
#[case(&["task", "x", "--model", "house/large", "--effort", "hard"], "`effort`: hard is refused; allowed: low, medium or high")]
#[case(&["-c", "models.allowed=house/*", "task", "x", "--model", "street/large"], "the model `street/large` is not among those that the setting `models.allowed` allows: house/*. Only the user's own settings can change that")]
#[case(&["task", "x", "--fork", "--resume", "0123"], "`fork` and `resume` exclude each other")]
#[case(&["task", "x", "--max-tokens", "0"], "no tokens left in its own budget")]
#[case(&["task", "x", "--host", "opencode:http://127.0.0.1:9//?x"], "it has neither ? nor #")]
#[case(&["task", "x", "--host", "magic"], "--host magic: must be engine, engine:FOLDER, opencode:URL, or another agent")]
#[case(&["task", "x", "--host", "scripted:gone.toml"], "No such file")]
#[case(&["task", "x", "--host", "scripted:session.json"], "session.json")]
#[case(&["-c", "limits.dept=1", "list"], "`limits.dept` is not a setting; did you mean `limits.depth`? `asyncagents config` lists them all")]
#[case(&["-c", "nonsense=1", "list"], "`nonsense` is not a setting; `asyncagents config` lists them all")]
#[case(&["-c", "limits.depth=-1", "list"], "limits.depth: `-1` is refused; allowed: a whole number")]
#[case(&["-c", "worker.idle=soon", "list"], "worker.idle: `soon` is refused; allowed: a duration like")]
#[case(&["-c", "fork.max_chars=5", "list"], "max_chars: `5` is refused")]
#[case(&["output", "x", "--block", "--timeout", "601"], "`timeout`: 601 is refused; allowed: 0 to 600 seconds")]
#[case(&["--db", "session.json", "list"], "session.json is not a database")]
#[case(&["--db", ".", "list"], "cannot be opened")]
fn what_cannot_be_done_is_one_clear_line_and_exit_code_2(#[case] args: &[&str], #[case] why: &str) {
    let home = Home::new();
    let output = match args {
        ["answer" | "message", ..] => home.run_by_a_person(args),
        _ => home.run(args),
    };
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert_eq!(output.stdout, b"");
    let said = text(&output.stderr);
    assert!(
        said.starts_with("asyncagents: ") && said.contains(why),
        "{said}"
    );
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[test]
fn settings_come_from_files_the_environment_and_flags_and_config_says_so() {
    let home = Home::new();
    let user = home.path("config/asyncagents");
    fs::create_dir_all(&user).expect("a folder");
    fs::write(
        user.join("asyncagents.toml"),
        "agent = \"explore\"\n[limits]\nconcurrency = 6\nspawns = 7\n[limits.per_model]\n\"a/b\" = 2\n",
    )
    .expect("written");
    fs::write(
        home.path("asyncagents.toml"),
        "[limits]\nconcurrency = 4\n[fork]\npreset = \"flat\"\nmax_tokens = 5000\n[budget]\ncost = 0.25\n",
    )
    .expect("written");
    let output = home
        .command()
        .env("ASYNCAGENTS_LIMITS_DEPTH", "1")
        .env("ASYNCAGENTS_DEV", "1")
        .args(["-c", "limits.stall=90s", "config", "--json"])
        .output()
        .expect("runs");
    let settings: Vec<Value> = serde_json::from_slice(&output.stdout).expect("JSON");
    let check = |key: &str, value: &str, source: &str| {
        let found = settings.iter().find(|setting| setting["key"] == key);
        let found = found.expect("the setting");
        assert_eq!(found["value"], value, "{key}");
        let from = found["source"].as_str().expect("a source");
        assert!(from.ends_with(source), "{key} from {from}");
        assert!(!found["about"].as_str().expect("text").is_empty());
    };
    check("agent", "explore", "config/asyncagents/asyncagents.toml");
    check("limits.spawns", "7", "config/asyncagents/asyncagents.toml");
    check(
        "limits.per_model",
        "a/b=2",
        "config/asyncagents/asyncagents.toml",
    );
    check("limits.concurrency", "4", "/asyncagents.toml");
    check("budget.cost", "$0.25", "/asyncagents.toml");
    check("limits.depth", "1", "ASYNCAGENTS_LIMITS_DEPTH");
    check("dev", "true", "ASYNCAGENTS_DEV");
    check("limits.stall", "1m 30s", "flag");
    check("limits.same_calls", "20", "default");
    check("fork.max_tokens", "5000", "/asyncagents.toml");
    check("fork.middle_result_chars", "1500", "default");
    check("db", &home.db().to_string_lossy(), "default");
    let shown = home.ask(&["config"]);
    assert!(
        shown.contains("limits.spawns = 7\n    how many tasks"),
        "{shown}"
    );
}

#[test]
fn a_broken_file_of_settings_is_named_with_its_line() {
    let home = Home::new();
    fs::write(
        home.path("asyncagents.toml"),
        "[limits]\nconcurrency = = 4\n",
    )
    .expect("written");
    let output = home.run(&["list"]);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(
        said.contains("asyncagents.toml") && said.contains("line 2"),
        "{said}"
    );
}

#[test]
fn the_log_is_never_in_the_answer() {
    let home = Home::new();
    let output = home.run(&["-c", "log.level=trace", "list"]);
    assert_eq!(text(&output.stdout), "No background tasks found");
    let output = home.run(&["-c", "worker.idle=100ms", "worker"]);
    assert_eq!(text(&output.stdout), "");
    assert!(
        text(&output.stderr).contains("worker started"),
        "{output:?}"
    );
    let mut worker = home
        .command()
        .args([
            "-c",
            "worker.idle=100ms",
            "-c",
            "log.file=worker.log",
            "worker",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a worker");
    assert!(worker.wait().expect("ends").success());
    let log = fs::read_to_string(home.path("worker.log")).expect("a log");
    assert!(
        log.contains("worker started") && log.contains("worker stopped"),
        "{log}"
    );
    let output = worker.wait_with_output().expect("output");
    assert_eq!(
        (text(&output.stdout), text(&output.stderr)),
        (String::new(), String::new())
    );
}

/// A copy of the program that any user may run.
fn copied_program(home: &Home) -> PathBuf {
    let copy = home.path("asyncagents");
    // Another process writes it: one that these tests have open for writing cannot be started.
    let mut install = Command::new("install");
    install.args(["-m", "755", env!("CARGO_BIN_EXE_asyncagents-stories")]);
    assert!(install.arg(&copy).status().expect("it runs").success());
    fs::set_permissions(home.folder.path(), fs::Permissions::from_mode(0o755)).expect("set");
    copy
}

#[test]
fn a_read_only_database_is_a_clear_error_and_stays_as_it_was() {
    let home = Home::new();
    let program = copied_program(&home);
    let folder = home.path("closed");
    fs::create_dir(&folder).expect("a folder");
    let db = folder.join("tasks.db");
    home.ask(&[
        "--db",
        &db.to_string_lossy(),
        "-c",
        "worker.autostart=false",
        "task",
        "one",
    ]);
    let before = fs::read(&db).expect("read");
    for (path, mode) in [(&db, 0o444), (&folder, 0o555)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("set");
    }
    let own = home.path("own");
    fs::create_dir(&own).expect("a folder");
    let mut command = Command::new(program);
    command
        .args(["task", "two", "--host", "scripted", "--db"])
        .arg(&db)
        .env("HOME", &own);
    // Permissions do not bind root.
    if fs::metadata("/proc/self")
        .map(|own| std::os::unix::fs::MetadataExt::uid(&own))
        .ok()
        == Some(0)
    {
        for path in [&db, &folder, &own] {
            std::os::unix::fs::chown(path, Some(65_534), None).expect("given away");
        }
        command.uid(65_534).gid(65_534);
    }
    let output = command.current_dir("/").output().expect("runs");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("tasks.db cannot be written: it is read-only; nothing was saved"),
        "{said}"
    );
    assert_eq!(fs::read(&db).expect("read"), before);
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).expect("set");
}

#[test]
fn a_disk_that_takes_no_more_is_a_clear_error_and_what_was_saved_stays() {
    let home = Home::new();
    let db = home.db();
    home.ask(&["-c", "worker.autostart=false", "task", "the first"]);
    // A prompt that does not fit into what files may have here: 400 blocks of 512 bytes.
    let prompt = "x".repeat(600_000);
    fs::write(home.path("prompt.txt"), prompt).expect("written");
    let script = format!(
        "trap '' XFSZ; ulimit -f 400; exec '{}' -c worker.autostart=false task - < prompt.txt",
        env!("CARGO_BIN_EXE_asyncagents-stories")
    );
    let mut command = home.command();
    let output = Command::new("sh")
        .args(["-c", &script])
        .current_dir(home.folder.path())
        .env_clear()
        .envs(
            command
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .output()
        .expect("runs");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("the disk failed to write") && said.contains("; nothing was saved. "),
        "{said}"
    );
    assert_eq!(text(&output.stdout), "");
    let list = text(
        &command
            .args(["-c", "worker.autostart=false", "list"])
            .output()
            .expect("runs")
            .stdout,
    );
    assert!(
        list.contains("the first") && list.ends_with("1 task: 1 queued"),
        "{list}"
    );
    assert!(db.exists());
}

#[test]
fn a_newer_and_a_damaged_database_are_clear_errors() {
    let home = Home::new();
    home.ask(&["-c", "worker.autostart=false", "task", "one"]);
    let db = home.db();
    let whole = fs::read(&db).expect("read");
    let newer = {
        let mut newer = whole.clone();
        // The format's number in the header of the file.
        newer[60..64].copy_from_slice(&99_u32.to_be_bytes());
        newer
    };
    let cases: [(&[u8], i32, &str); 2] = [
        (
            &newer,
            2,
            "has format 99, and this version knows formats up to 8; it was left alone. Update asyncagents",
        ),
        (&whole[..whole.len() / 2], 1, "is damaged"),
    ];
    for (content, code, why) in cases {
        let file = home.path("broken.db");
        fs::write(&file, content).expect("written");
        let output = home.run(&["--db", "broken.db", "list"]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains(why), "{said}");
        assert_eq!(fs::read(&file).expect("read"), content, "left alone");
    }
}

#[test]
fn a_person_may_launch_as_many_tasks_as_they_like() {
    let home = Home::new();
    for n in 0..5 {
        home.ask(&["-c", "limits.spawns=3", "task", &format!("task {n}")]);
    }
    let list = home.ask(&["list", "--session", "shell"]);
    assert!(list.contains("5 tasks: "), "{list}");
}

#[test]
fn whoever_follows_a_task_sees_its_end_though_its_worker_is_killed() {
    let home = Home::new();
    let id = home.launch("two seconds");
    home.until("it runs", || home.status(&id) == "running");
    let follower = home
        .command()
        .args(["output", &id, "--follow"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("runs");
    home.signal("-KILL");
    let output = follower.wait_with_output().expect("ends");
    assert!(
        text(&output.stdout).ends_with("after two seconds"),
        "{output:?}"
    );
}

#[test]
fn settings_before_and_after_the_verb_both_count() {
    let home = Home::new();
    let args = ["-c", "limits.depth=1", "config", "-c", "limits.spawns=7"];
    let shown = home.ask(&args);
    assert!(shown.contains("limits.depth = 1\n"), "{shown}");
    assert!(shown.contains("limits.spawns = 7\n"), "{shown}");
}

#[test]
fn one_task_that_cannot_be_cancelled_does_not_save_the_others() {
    let home = Home::new();
    let ids = [home.launch("long one"), home.launch("long two")];
    let output = home.run(&["cancel", &ids[0], "zzz", &ids[1], "yyy"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(text(&output.stdout).lines().count(), 2, "{output:?}");
    let said = text(&output.stderr);
    assert!(said.contains("`zzz`") && said.contains("`yyy`"), "{said}");
    assert_eq!(home.status(&ids[1]), "cancelled");
}

#[test]
fn without_a_home_there_is_no_guess() {
    let home = Home::new();
    let output = home
        .command()
        .env_remove("HOME")
        .env_remove("XDG_DATA_HOME")
        .arg("list")
        .output()
        .expect("runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr).contains("choose a file with --db"),
        "{output:?}"
    );
}

#[test]
fn a_link_to_the_database_is_the_database() {
    let home = Home::new();
    let id = home.launch("one");
    home.ask(&["output", &id, "--block"]);
    std::os::unix::fs::symlink(home.db(), home.path("link.db")).expect("linked");
    let resumed = home.ask(&["--db", "link.db", "resume", &id, "two"]);
    assert_eq!(resumed, id);
    assert!(home.ask(&["output", &id, "--block"]).contains("Found: two"));
    assert!(!home.path("link.db.sessions").exists());
}

#[test]
fn an_emptied_database_is_not_taken_for_a_new_one() {
    let home = Home::new();
    home.launch("one");
    home.until("the worker has ended", || home.worker().is_none());
    for name in ["asyncagents.db-wal", "asyncagents.db-shm"] {
        let _ = fs::remove_file(home.path("data/asyncagents").join(name));
    }
    fs::write(home.db(), "").expect("emptied");
    let output = home.run(&["list"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stderr).contains("is empty, though it has been in use"),
        "{output:?}"
    );
    assert_eq!(fs::read(home.db()).expect("read"), b"");
}

#[test]
fn a_worker_that_cannot_begin_is_spoken_of() {
    let home = Home::new();
    fs::create_dir_all(home.path("data/asyncagents/asyncagents.db.worker.log")).expect("a folder");
    let output = home.run(&["task", "one"]);
    assert_eq!(output.status.code(), Some(0), "it is saved");
    let said = text(&output.stderr);
    assert!(
        said.contains("no worker could be started: it ended at once"),
        "{said}"
    );
}

#[test]
fn an_edited_script_counts_from_the_next_task_on() {
    let home = Home::new();
    let id = home.launch("one");
    home.ask(&["output", &id, "--block"]);
    fs::write(
        home.path("children.toml"),
        "[[child]]\nsteps = [{ answer = \"edited\" }]\n",
    )
    .expect("written");
    let id = home.launch("two");
    assert!(home.ask(&["output", &id, "--block"]).ends_with("edited"));
}

#[test]
fn odd_names_do_no_harm() {
    let home = Home::new();
    let description = format!("a\x1b[31mred\nline {}", "long ".repeat(1_000));
    let session = "会".repeat(200);
    let args = [
        "task",
        "one",
        "--session",
        &session,
        "--description",
        &description,
    ];
    let id = home.ask(&args);
    let answer = home.ask(&["output", &id, "--block"]);
    let headline = answer.lines().next().expect("a line");
    assert!(headline.contains("\"a [31mred line long"), "{headline}");
    assert!(headline.chars().count() < 200, "{headline}");
    home.until("all is settled and the worker ends", || {
        home.worker().is_none()
    });
}

#[test]
fn the_environment_chooses_the_file() {
    let home = Home::new();
    let mut command = home.command();
    command.env("ASYNCAGENTS_DB", home.path("here.db"));
    let launched = command
        .args(["-c", "worker.autostart=false", "task", "one"])
        .output();
    assert_eq!(launched.expect("runs").status.code(), Some(0));
    assert!(home.path("here.db").exists() && !home.db().exists());
}

#[test]
fn many_commands_at_once_start_one_worker_and_lose_nothing() {
    let home = Home::new();
    let commands: Vec<_> = (0..8)
        .map(|n| {
            let mut command = home.command();
            command
                .args(["task", &format!("task {n}")])
                .stdout(Stdio::piped());
            command.stderr(Stdio::piped()).spawn().expect("runs")
        })
        .collect();
    for command in commands {
        let output = command.wait_with_output().expect("ends");
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert!(!text(&output.stderr).contains("no worker"), "{output:?}");
    }
    home.until("all are told", || home.told().len() == 8);
    let list = home.ask(&["list"]);
    assert!(list.contains("\n8 tasks: 8 completed; "), "{list}");
}

#[test]
fn the_examples_in_the_repository_work() {
    let home = Home::new();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/children.toml");
    let host = format!("scripted:{}", examples.display());
    let id = home.ask(&["task", "--fork", "Why is the login slow?", "--host", &host]);
    let answer = home.ask(&["output", &id, "--block"]);
    assert!(
        answer.contains("The login waits for the audit log."),
        "{answer}"
    );
    let usual = Home::new();
    let mut command = usual.command();
    let launched = command
        .args(["task", "anything", "--host", "scripted"])
        .output();
    let id = text(&launched.expect("runs").stdout);
    let answer = usual.ask(&["output", &id, "--block"]);
    assert!(
        answer.contains("Nothing was done: this is the scripted host"),
        "{answer}"
    );
}

#[test]
fn a_person_answers_what_a_task_asks() {
    let home = Home::new();
    let task = home.launch("permission");
    let asks = || home.json(&["output", &task, "--json"])["progress"]["questions"].is_array();
    home.until("it asks", asks);
    let list = home.ask(&["list"]);
    let how = format!("To answer it: asyncagents answer {task} once|always|reject");
    assert!(
        list.contains("running (asks)") && list.contains(&how),
        "{list}"
    );
    let output = home.run(&["output", &task]);
    assert!(text(&output.stdout).contains(&how), "{output:?}");
    let wrong = home.run_by_a_person(&["answer", &task, "yes"]);
    assert_eq!(wrong.status.code(), Some(2), "{wrong:?}");
    let said = text(&wrong.stderr);
    assert!(
        said.contains("answer `once`, `always` or `reject`"),
        "{said}"
    );
    let unknown = home.run_by_a_person(&["answer", &task, "reject", "--question", "7"]);
    let said = text(&unknown.stderr);
    let (_, code) = list.split_once("--question ").expect("its ID is shown");
    let code = code.lines().next().expect("a line").trim();
    let open = format!("open: {code}: permission for bash make");
    assert!(said.contains(&open), "{said}");
    let given = home.run_by_a_person(&["answer", &task, "once", "--question", code]);
    assert_eq!(given.status.code(), Some(0), "{given:?}");
    assert_eq!(
        text(&given.stdout),
        format!("Answered {task} (once), which asked: permission for bash make\nIt was taken.")
    );
    let answer = home.ask(&["output", &task, "--block"]);
    assert!(answer.ends_with("answered: once"), "{answer}");
    let trace = home.ask(&["trace", &task]);
    assert!(trace.contains("answered once"), "{trace}");
    let late = home.run_by_a_person(&["answer", &task, "reject"]);
    assert_eq!(late.status.code(), Some(2), "{late:?}");
    assert!(
        text(&late.stderr).contains("asks nothing that is open"),
        "{late:?}"
    );
}

#[test]
fn a_question_is_answered_with_a_text_or_with_values() {
    let home = Home::new();
    for (answer, chosen) in [
        (&["RED"][..], "chosen: red"),
        (&["--value", "choice=blue"], "chosen: blue"),
        (
            &["reject", "whichever you like"],
            "chosen: reject: whichever you like",
        ),
    ] {
        let task = home.launch("colour");
        let asks = || home.json(&["output", &task, "--json"])["progress"]["questions"].is_array();
        home.until("it asks", asks);
        for (wrong, why) in [
            (
                &["green"][..],
                "`green` is not offered; there are red and blue",
            ),
            (&["--value", "choise=red"], "it has no field `choise`"),
        ] {
            let args = [&["answer", &task][..], wrong].concat();
            let refused = home.run_by_a_person(&args);
            assert_eq!(refused.status.code(), Some(2), "{refused:?}");
            assert!(text(&refused.stderr).contains(why), "{refused:?}");
        }
        let args = [&["answer", &task, "--json"][..], answer].concat();
        let given = home.run_by_a_person(&args);
        let given: Value = serde_json::from_slice(&given.stdout).expect("JSON");
        assert_eq!(given["state"], "taken");
        let said = home.ask(&["output", &task, "--block"]);
        assert!(said.ends_with(chosen), "{said}");
    }
}

#[test]
fn nothing_in_what_is_asked_is_hidden_or_looks_like_ours() {
    let home = Home::new();
    let task = home.launch("trick");
    let asks = || home.json(&["output", &task, "--json"])["progress"]["questions"].is_array();
    home.until("it asks", asks);
    for shown in [
        home.ask(&["list"]),
        text(&home.run(&["output", &task]).stdout),
    ] {
        let asked = "permission for bash ls<U+202E><U+001B>[8m; rm x\n  |   To answer it: no need\n  \
            To answer it: asyncagents answer";
        assert!(shown.contains(asked), "{shown}");
    }
}

#[test]
fn an_answer_of_megabytes_that_does_not_fit_is_refused_in_a_line() {
    let home = Home::new();
    let task = home.launch("colour");
    let asks = || home.json(&["output", &task, "--json"])["progress"]["questions"].is_array();
    home.until("it asks", asks);
    for (length, why) in [
        (2_000_000, "greengreen"),
        (16_000_001, "standard input: is larger than 16 MB"),
    ] {
        let long = "green".repeat(length / 5 + 1);
        let refused = home.fed_by_a_person(&["answer", &task, "-"], &long);
        assert_eq!(refused.status.code(), Some(2));
        let said = text(&refused.stderr);
        assert!(
            said.contains(why) && said.len() < 600,
            "{} bytes",
            said.len()
        );
    }
    assert!(asks(), "it waits as before");
}

#[rstest]
#[case("--model")]
#[case("--effort")]
fn an_option_without_a_value_is_no_default(#[case] option: &str) {
    let home = Home::new();
    let refused = home.run(&["task", "x", option, ""]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    let said = text(&refused.stderr);
    assert!(said.contains("a value is required for") && said.contains(option));
    assert!(!home.db().exists());
}

#[rstest]
#[case("once")]
#[case("always")]
fn an_agent_permits_nothing_from_its_shell(#[case] decision: &str) {
    let home = Home::new();
    let task = home.launch("permission");
    let asks = || home.json(&["output", &task, "--json"])["progress"]["questions"].is_array();
    home.until("it asks", asks);
    let mut command = home.command();
    command
        .args(["answer", &task, decision])
        .env("CLAUDECODE", "1");
    let output = command.output().expect("runs");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let said = text(&output.stderr);
    assert!(
        said.contains("only a person may grant a permission"),
        "{said}"
    );
    assert!(asks(), "it waits as before");
}

#[test]
fn a_running_task_is_told_something() {
    let home = Home::new();
    let task = home.launch("listens");
    home.until("it works", || {
        home.json(&["output", &task, "--json"])["progress"]["phase"] == "working"
    });
    let said = home.run_by_a_person(&["message", &task, "left, not right"]);
    assert_eq!(
        text(&said.stdout),
        format!(
            "The message for {task} is told to it before its next step. asyncagents output {task} \
             shows whether it got there."
        )
    );
    // Without a terminal nobody was seen to type it.
    let piped = home.fed_by_a_person(&["message", &task, "-"], "and slowly");
    assert_eq!(piped.status.code(), Some(0), "{piped:?}");
    let answer = home.ask(&["output", &task, "--block"]);
    assert!(
        answer.ends_with("told: left, not right; and slowly"),
        "{answer}"
    );
    assert!(
        answer.contains("\nTold by the user: left, not right\nTold by a script: and slowly\n"),
        "{answer}"
    );
    let trace = home.ask(&["trace", &task]);
    let told = "told     by the user: left, not right";
    assert!(trace.contains(told), "{trace}");
    let late = home.run_by_a_person(&["message", &task, "too late"]);
    assert_eq!(late.status.code(), Some(2), "{late:?}");
    let said = text(&late.stderr);
    assert!(said.contains("resume it to go on with it"), "{said}");
}
